/**
 * Rows about promise-returning operations: compile, instantiate, their streaming forms, Suspending and promising.
 */
import { describeError, type Namespace, type Row, run, wasm } from "./subject.ts";

const EMPTY = wasm("(module)");
const NEEDS = wasm(`(module (import "m" "f" (func)))`);

async function settled(W: Namespace, action: () => Promise<unknown>): Promise<unknown> {
  let promise: Promise<unknown>;
  try {
    promise = action();
  } catch (error) {
    return `thrown at once: ${describeError(W, error)}`;
  }
  if (!(promise instanceof Promise)) return "no promise";
  try {
    const value = await promise;
    return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype
      ? Object.entries(value).map(([key, part]) => `${key}: ${String(part)}`)
      : String(value);
  } catch (error) {
    return `rejected: ${describeError(W, error)}`;
  }
}

function response(bytes: Uint8Array<ArrayBuffer>, type = "application/wasm", status = 200): Response {
  return new Response(bytes, { status, headers: type === "" ? {} : { "content-type": type } });
}

const SOURCES: readonly (readonly [string, () => unknown])[] = [
  ["a response", () => response(EMPTY)],
  ["a promise of one", () => Promise.resolve(response(EMPTY))],
  ["nothing", () => undefined],
  ["bytes", () => EMPTY],
  ["a rejected promise", () => Promise.reject(new SyntaxError("x"))],
  ["another type", () => response(EMPTY, "text/html")],
  ["no type", () => response(EMPTY, "")],
  ["capital letters", () => response(EMPTY, "Application/Wasm")],
  ["a type with parameters", () => response(EMPTY, "application/wasm; charset=utf-8")],
  ["a failure", () => response(EMPTY, "application/wasm", 404)],
  ["damaged bytes", () => response(EMPTY.slice(0, 6))],
  ["no bytes", () => response(EMPTY.slice(0, 0))],
];

/** Makers of values that throw when they are awaited, or soon after. */
const AWKWARD: readonly (() => unknown)[] = [
  () =>
    Object.defineProperty(Promise.resolve(3), "constructor", {
      get: () => {
        throw new SyntaxError("constructor");
      },
    }),
  () => ({
    get then(): never {
      throw new SyntaxError("then");
    },
  }),
  () => ({
    then: () => {
      throw new SyntaxError("call of then");
    },
  }),
  () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  },
  () => Object.assign(Promise.resolve(5), { then: null }),
  () => new (class Own extends Promise<number> {})((resolve) => resolve(6)),
];

export const ASYNC_ROWS: readonly Row[] = [
  ["compile", async (W) => [
    await settled(W, () => W.compile(EMPTY)),
    await settled(W, () => W.compile(EMPTY.slice(0, 5))),
    await settled(W, () => W.compile()),
    await settled(W, () => W.compile({})),
  ]],
  ["instantiate bytes", async (W) => [
    await settled(W, () => W.instantiate(EMPTY)),
    await settled(W, () => W.instantiate(EMPTY.buffer, {})),
    await settled(W, () => W.instantiate(NEEDS)),
    await settled(W, () => W.instantiate(NEEDS, {})),
    await settled(W, () => W.instantiate(NEEDS, { m: {} })),
    await settled(W, () => W.instantiate(NEEDS, { m: { f: () => {} } })),
    await settled(W, () => W.instantiate(EMPTY, 5)),
    await settled(W, () => W.instantiate(EMPTY, null)),
    await settled(W, () => W.instantiate()),
    await settled(W, () => W.instantiate(Uint8Array.of(1, 2))),
  ]],
  ["instantiate a module", async (W) => [
    await settled(W, () => W.instantiate(new W.Module(EMPTY))),
    await settled(W, () => W.instantiate(new W.Module(NEEDS))),
    await settled(W, () => W.instantiate(new W.Module(NEEDS), { m: { f: 1 } })),
    await settled(W, () => W.instantiate(new W.Module(wasm(`(module (func $s unreachable) (start $s))`)))),
  ]],
  ["bytes may change after the call", async (W) => {
    const bytes = EMPTY.slice();
    const promise = W.compile(bytes);
    bytes.fill(0);
    return String(await promise);
  }],
  ["imports of a module are read before the call returns", async (W) => {
    const seen: string[] = [];
    const imports = {
      get m() {
        seen.push("read");
        return { f: () => {} };
      },
    };
    const promise = W.instantiate(new W.Module(NEEDS), imports);
    seen.push("returned");
    await promise;
    return seen;
  }],
  ...SOURCES.flatMap(([name, source]): Row[] => [
    [`compileStreaming of ${name}`, (W) => settled(W, () => W.compileStreaming(source()))],
    [`instantiateStreaming of ${name}`, (W) => settled(W, () => W.instantiateStreaming(source(), {}))],
  ]),
  ["a body that was used", (W) => {
    const used = response(EMPTY);
    return used.arrayBuffer().then(() => settled(W, () => W.compileStreaming(used)));
  }],
  ["instantiateStreaming without imports", (W) => settled(W, () => W.instantiateStreaming(response(NEEDS)))],

  ["a promise is a value like any other", (W) => {
    const promise = Promise.resolve(1);
    const { f, n } = run(
      W,
      `(module (import "m" "f" (func $f (result externref))) (import "m" "f" (func $n (result i32))) (export "n" (func $n))
      (func (export "f") (result externref) (call $f)))`,
      { m: { f: () => promise } },
    );
    return [f() === promise, n()];
  }],
  ["suspending and promising", async (W) => {
    const text =
      `(module (import "m" "f" (func $f (param i32) (result i32))) (func (export "g") (param i32) (result i32) (i32.add (call $f (local.get 0)) (i32.const 1))))`;
    const { g } = run(W, text, { m: { f: new W.Suspending((x: number) => Promise.resolve(x * 10)) } });
    const later = W.promising(g);
    return [later instanceof Function, await later(4), await Promise.all([1, 2, 3].map((x) => later(x)))];
  }],
  ["a promising call that fails", async (W) => {
    const text = `(module (import "m" "f" (func $f)) (func (export "g") (call $f) unreachable))`;
    const trap = run(W, text, { m: { f: new W.Suspending(() => Promise.resolve()) } });
    const rejects = run(W, text, { m: { f: new W.Suspending(() => Promise.reject(new SyntaxError("x"))) } });
    return [await settled(W, () => W.promising(trap.g)()), await settled(W, () => W.promising(rejects.g)())];
  }],
  ["promising a value other than an exported function", (W) =>
    [undefined, {}, () => {}].map((value) => {
      try {
        return W.promising(value);
      } catch (error) {
        return describeError(W, error);
      }
    })],
  ["the name and the length of a promising function", (W) => {
    const { a, b } = run(W, `(module (func (export "a")) (func (export "b") (param i32 i64)))`);
    return [a, b].map((exported) => {
      const later = W.promising(exported);
      return [later.name, later.length, Object.hasOwn(later, "prototype")];
    });
  }],
  ["a suspending import is not called where its caller cannot wait", async (W) => {
    let calls = 0;
    const s = new W.Suspending(() => ++calls);
    const through = (call: () => unknown) => call();
    const text = (start: string) =>
      `(module (import "m" "s" (func $s (result i32))) (import "m" "j" (func $j))
        (func (export "f") (result i32) (call $s)) (func (export "g") (call $j))
        (func $start (drop (call $s))) (export "s" (func $s)) ${start})`;
    const exports = run(W, text(""), { m: { s, j: () => through(() => exports.f()) } });
    const refused = (call: () => unknown) => {
      try {
        return call();
      } catch (error) {
        return (error as Error).name;
      }
    };
    return [
      refused(exports.f),
      refused(exports.s),
      refused(() => run(W, text("(start $start)"), { m: { s, j: () => {} } })),
      await W.promising(exports.g)().catch((error: Error) => error.name),
      calls,
      await W.promising(exports.s)(),
    ];
  }],
  ["a guest catches the error of a suspending import", (W) => {
    const { f } = run(
      W,
      `(module (import "m" "s" (func $s)) (import "m" "t" (tag $t (param externref)))
        (func (export "f") (result externref)
          (block $h (result externref) (try_table (catch $t $h) (call $s)) (unreachable))))`,
      { m: { s: new W.Suspending(() => {}), t: W.JSTag } },
    );
    return [f() instanceof W.SuspendError, f().name];
  }],
  ["a suspending import whose function returns no promise", async (W) => {
    const log: string[] = [];
    const { f } = run(
      W,
      `(module (import "m" "s" (func $s (param i32) (result i32))) (import "m" "log" (func $log (param i32)))
        (func (export "f") (call $log (call $s (i32.const 1)))))`,
      { m: { s: new W.Suspending((x: number) => x + 1), log: (x: number) => log.push(`guest ${x}`) } },
    );
    const promise = W.promising(f)();
    log.push("caller");
    await promise;
    return log;
  }],
  ["promises that cannot be awaited are exceptions in the guest", async (W) => {
    const text = `(module (import "m" "s" (func $s (result i32)))
      (func (export "f") (result i32) (call $s))
      (func (export "g") (result i32) (block $h (try_table (catch_all $h) (return (call $s)))) (i32.const -1)))`;
    const log: unknown[] = [];
    for (const value of AWKWARD) {
      const { f, g } = run(W, text, { m: { s: new W.Suspending(value) } });
      log.push(await settled(W, () => W.promising(f)()), await settled(W, () => W.promising(g)()));
    }
    return log;
  }],
  ["promises are those of the realm, whatever the program has put into Promise", (W) => {
    const species = Object.getOwnPropertyDescriptor(Promise, Symbol.species)!;
    const { then } = Promise.prototype;
    const global = globalThis.Promise;
    const { f } = run(W, `(module (func (export "f") (result i32) (i32.const 7)))`);
    const made: Promise<unknown>[] = [];
    try {
      Object.defineProperty(Promise, Symbol.species, { value: Array, configurable: true });
      Promise.prototype.then = () => {
        throw new SyntaxError("then");
      };
      globalThis.Promise = class {} as unknown as PromiseConstructor;
      made.push(W.compile(EMPTY), W.instantiate(EMPTY), W.promising(f)(), W.compile(EMPTY.slice(1)));
    } finally {
      Object.defineProperty(global, Symbol.species, species);
      global.prototype.then = then;
      globalThis.Promise = global;
    }
    return Promise.all(made.map(async (promise) => [promise instanceof Promise, await settled(W, () => promise)]));
  }],
];
