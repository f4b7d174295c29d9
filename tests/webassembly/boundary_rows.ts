/**
 * Rows about values and errors that cross between JavaScript and WebAssembly code: conversions, results, traps,
 * exceptions.
 */
import { type Namespace, type Row, run, thrown } from "./subject.ts";

const TYPES = ["i32", "i64", "f32", "f64", "externref", "funcref", "anyref", "i31ref", "(ref extern)"];
const VALUES: readonly unknown[] = [
  undefined,
  null,
  0,
  -0,
  1.7,
  -1.7,
  2 ** 31,
  2 ** 40 + 1,
  NaN,
  Infinity,
  1n,
  -1n,
  2n ** 64n + 5n,
  "7",
  "x",
  true,
  {
    valueOf: () => 3,
  },
  { valueOf: () => 3n },
  [],
  Symbol("x"),
  () => 1,
];

function raise(value: unknown): never {
  throw value;
}

const TRAPS: readonly (readonly [name: string, body: string])[] = [
  ["unreachable", "unreachable"],
  ["division by zero", "(drop (i32.div_s (i32.const 1) (i32.const 0)))"],
  ["a load out of bounds", "(drop (i32.load (i32.const 65533)))"],
  ["a call of nothing", "(call_indirect (i32.const 0))"],
  ["a conversion", "(drop (i32.trunc_f32_s (f32.const nan)))"],
  ["a null reference", "(drop (ref.as_non_null (ref.null func)))"],
];

/** A module that throws with imported tags, and catches. */
const CATCHER =
  `(module (import "m" "js" (tag $js (param externref))) (import "m" "t" (tag $t (param i32))) (import "m" "f" (func $f))
  (func (export "catch") (result externref) (block $h (result externref) (try_table (catch $js $h) (call $f)) (ref.null extern)))
  (func (export "catchT") (result i32) (block $h (result i32) (try_table (catch $t $h) (call $f)) (i32.const -1)))
  (func (export "all") (result i32) (block $h (try_table (catch_all $h) (call $f)) (return (i32.const 0))) (i32.const 1))
  (func (export "throwJs") (param externref) (throw $js (local.get 0)))
  (func (export "throwT") (param i32) (throw $t (local.get 0)))
  (func (export "both") (param externref) (result externref)
    (block $h (result externref) (try_table (catch $js $h) (throw $js (local.get 0))) (ref.null extern)))
  (func (export "again") (block $h (result exnref) (try_table (catch_all_ref $h) (call $f)) (return)) (throw_ref)))`;

function catcher(W: Namespace, f: () => void) {
  const t = new W.Tag({ parameters: ["i32"] });
  return { t, ...run(W, CATCHER, { m: { js: W.JSTag, t, f } }) };
}

function throwing(value: unknown): () => never {
  return () => {
    throw value;
  };
}

export const BOUNDARY_ROWS: readonly Row[] = [
  ...TYPES.map((type): Row => [`arguments for ${type}`, (W) => {
    const { f } = run(W, `(module (func (export "f") (param ${type}) (result ${type}) (local.get 0)))`);
    return [...VALUES.map((value) => thrown(W, () => f(value))), thrown(W, () => f())];
  }]),
  ...TYPES.map((type): Row => [`results of host functions for ${type}`, (W) => {
    let value: unknown;
    const { f } = run(
      W,
      `(module (import "m" "f" (func (result ${type}))) (func (export "f") (result ${type}) (call 0)))`,
      { m: { f: () => value } },
    );
    return VALUES.map((given) => thrown(W, () => (value = given, f())));
  }]),
  ["identity of values that pass through", (W) => {
    const { f } = run(W, `(module (func (export "f") (param externref) (result externref) (local.get 0)))`);
    return VALUES.every((value) => Object.is(f(value), value));
  }],
  ["several results", (W) => {
    const text = `(module (import "m" "f" (func $f (result i32 i64))) (func (export "f") (result i32 i64) (call $f)))`;
    const given: unknown[] = [[1, 2n], new Set([3, 4n]), [1], [1, 2n, 3], 5, null, undefined, [1, 2], "ab", {
      length: 2,
    }];
    return given.map((value) => thrown(W, () => run(W, text, { m: { f: () => value } }).f()));
  }],
  [
    "several results are a plain array",
    (W) => Array.isArray(run(W, `(module (func (export "f") (result i32 i32) (i32.const 1) (i32.const 2)))`).f()),
  ],
  ["arguments of host functions", (W) => {
    let seen: unknown;
    function f(this: unknown, ...args: unknown[]) {
      seen = [this, args];
    }
    run(
      W,
      `(module (import "m" "f" (func $f (param i32 i64 f32 externref))) (func (export "f") (param externref)
      (call $f (i32.const -1) (i64.const -1) (f32.const 0.1) (local.get 0))))`,
      { m: { f } },
    ).f("x");
    return seen;
  }],
  ["more and fewer arguments", (W) => {
    const { f } = run(
      W,
      `(module (func (export "f") (param i32 f64) (result f64) (f64.add (local.get 1) (f64.convert_i32_s (local.get 0)))))`,
    );
    return [f(1, 2, 3), f(1), f()];
  }],
  ["arguments are converted in order, before the call", (W) => {
    const seen: string[] = [];
    const arg = (name: string) => ({ valueOf: () => (seen.push(name), 1) });
    run(W, `(module (func (export "f") (param i32 f32 f64)))`).f(arg("a"), arg("b"), arg("c"));
    return seen;
  }],
  ["functions with v128", (W) => {
    const { f, g } = run(
      W,
      `(module (func (export "f") (param v128)) (func (export "g") (result v128) (v128.const i64x2 0 0)))`,
    );
    return [thrown(W, () => f(1)), thrown(W, () => f()), thrown(W, () => g())];
  }],
  ["a host function with v128", (W) => {
    let called = false;
    const { f } = run(
      W,
      `(module (import "m" "f" (func $f (param v128))) (func (export "f") (call $f (v128.const i64x2 0 0))))`,
      { m: { f: () => (called = true) } },
    );
    return [thrown(W, () => f()), called];
  }],
  ["functions as values keep their identity", (W) => {
    const { f, g } = run(
      W,
      `(module (func $f (export "f") (param funcref) (result funcref) (local.get 0)) (elem declare func $f) (func (export "g") (result funcref) (ref.func $f)))`,
    );
    return [g() === f, f(f) === f, f(g) === g, f(null)];
  }],
  ["objects of the collected heap are opaque", (W) => {
    const { make, get } = run(
      W,
      `(module (type $s (struct (field (mut i32)))) (func (export "make") (param i32) (result (ref $s)) (struct.new $s (local.get 0)))
      (func (export "get") (param (ref $s)) (result i32) (struct.get $s 0 (local.get 0))))`,
    );
    const s = make(7);
    return [
      get(s),
      typeof s,
      Object.getPrototypeOf(s),
      Object.keys(s),
      thrown(W, () => get({})),
      thrown(W, () => get(null)),
      thrown(W, () => {
        "use strict";
        s.x = 1;
      }),
    ];
  }],
  ...TRAPS.map(([name, body]): Row => [`the trap of ${name}`, (W) => {
    const { f } = run(W, `(module (memory 1) (table 1 funcref) (func (export "f") ${body}))`);
    return [thrown(W, f), thrown(W, f)];
  }]),
  ["an exhausted stack", (W) => {
    const { f } = run(
      W,
      `(module (func $f (export "f") (param i32) (result i32) (i32.add (call $f (local.get 0)) (i32.const 1))))`,
    );
    return [thrown(W, () => f(1)), thrown(W, () => f(1))];
  }],
  ["errors of host functions pass through", (W) => {
    const error = new SyntaxError("x");
    const { f } = run(W, `(module (import "m" "f" (func)) (func (export "f") (call 0)))`, {
      m: { f: throwing(error) },
    });
    try {
      f();
    } catch (caught) {
      return caught === error;
    }
  }],
  ["a trap below a host function is seen by it, and is not caught by code", (W) => {
    const inner = run(W, `(module (func (export "f") unreachable))`);
    let seen: unknown;
    const { all } = catcher(W, () => {
      try {
        inner.f();
      } catch (error) {
        seen = error;
        throw error;
      }
    });
    return [thrown(W, all), thrown(W, throwing(seen))];
  }],
  ["a RuntimeError that JavaScript makes is caught", (W) => catcher(W, throwing(new W.RuntimeError("x"))).all()],
  ["JSTag catches what JavaScript throws", (W) =>
    [5, "x", null, undefined, { a: 1 }].map((value) => {
      const { catch: caught } = catcher(W, throwing(value));
      return Object.is(caught(), value);
    })],
  ["JSTag does not catch other tags", (W) => {
    const c = catcher(W, () => c.throwT(5));
    return [thrown(W, () => c.catch()), c.catchT(), c.all()];
  }],
  ["code throws JavaScript values", (W) => {
    const c = catcher(W, () => {});
    const value = { a: 1 };
    let same = false;
    try {
      c.throwJs(value);
    } catch (error) {
      same = error === value;
    }
    return [same, thrown(W, () => c.throwJs(null)), c.both(value) === value, c.both(undefined)];
  }],
  ["code throws and JavaScript catches", (W) => {
    const c = catcher(W, () => {});
    try {
      c.throwT(9);
    } catch (error) {
      const e = error as { is(tag: unknown): boolean; getArg(tag: unknown, k: number): unknown; stack: unknown };
      return [e instanceof W.Exception, e.is(c.t), e.is(W.JSTag), e.getArg(c.t, 0), Object.prototype.toString.call(e)];
    }
  }],
  ["JavaScript throws and code catches", (W) => {
    const give: unknown[] = [];
    const c = catcher(W, () => {
      throw give[0];
    });
    give.push(new W.Exception(c.t, [11]));
    return [c.catchT(), c.all(), thrown(W, () => c.catch())];
  }],
  ["values that pass through keep their identity", (W) => {
    let give: unknown;
    const c = catcher(W, () => {
      throw give;
    });
    return [new W.Exception(c.t, [11]), new SyntaxError("x"), 5].map((value) => {
      give = value;
      try {
        c.again();
      } catch (error) {
        return error === value;
      }
    });
  }],
  ["an exception of code through JavaScript and code", (W) => {
    let first: unknown;
    const c = catcher(W, () => {
      try {
        c.throwT(3);
      } catch (error) {
        first = error;
        throw error;
      }
    });
    try {
      c.again();
    } catch (error) {
      return [error === first, c.catchT()];
    }
  }],
  ["functions of two instances are linked", (W) => {
    const a = run(W, `(module (func (export "f") (param i32) (result i32) (i32.mul (local.get 0) (i32.const 3))))`);
    const b = run(
      W,
      `(module (import "m" "f" (func $f (param i32) (result i32))) (export "f" (func $f)) (func (export "g") (param i32) (result i32) (call $f (call $f (local.get 0)))))`,
      { m: a },
    );
    return [b.g(5), b.f === a.f, b.f.name];
  }],
  ["whatever a host function throws, the guest catches or passes on, and no property of it is read", (W) => {
    const text = `(module (import "m" "s" (func $s)) (import "m" "t" (tag $t (param i32)))
      (import "m" "js" (tag $js (param externref)))
      (func (export "pass") (call $s))
      (func (export "all") (result i32) (block $h (try_table (catch_all $h) (call $s))) (i32.const 1))
      (func (export "tag") (result i32) (block $h (result i32) (try_table (catch $t $h) (call $s)) (i32.const -2)))
      (func (export "js") (result externref)
        (block $h (result externref) (try_table (catch $js $h) (call $s)) (ref.null extern))))`;
    const t = new W.Tag({ parameters: ["i32"] });
    const traps: string[] = [];
    const noted = new Proxy({}, { get: (_, name) => () => void traps.push(String(name)) });
    const revoked = () => {
      const { proxy, revoke } = Proxy.revocable({}, {});
      revoke();
      return proxy;
    };
    const values = [
      revoked(),
      new Proxy(new W.Exception(t, [3]), noted),
      new Proxy(new Error(), noted),
      Object.create(new W.Exception(t, [4])),
      Object.create(W.RuntimeError.prototype),
      Object.freeze(new W.Exception(t, [5])),
      undefined,
    ];
    return values.map((value) => {
      const exports = run(W, text, { m: { t, js: W.JSTag, s: () => raise(value) } });
      const attempt = (name: string) => {
        try {
          return exports[name]() === value ? "caught" : exports[name]();
        } catch (error) {
          return error === value ? "passed" : "another";
        }
      };
      return [...["pass", "all", "tag", "js"].map(attempt), traps.splice(0)];
    });
  }],
  ["results of several values come from the iterator", (W) => {
    const text = `(module (import "m" "f" (func $f (result i32 i32))) (func (export "f") (result i32 i32) (call $f)))`;
    const results: unknown[] = [
      [1, 2],
      Object.assign([1, 2], { [Symbol.iterator]: undefined }),
      Object.assign([1, 2], { [Symbol.iterator]: null }),
      { length: 2, 0: 1, 1: 2 },
      Object.assign([1, 2], {
        *[Symbol.iterator]() {
          yield* [3, 4];
        },
      }),
      new Set([5, 6]),
      "78",
      [1],
      null,
    ];
    return results.map((result) => thrown(W, () => run(W, text, { m: { f: () => result } }).f().join()));
  }],
];
