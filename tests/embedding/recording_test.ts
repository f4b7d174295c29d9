/**
 * Recordings: every way in which something enters a guest, replayed in both tiers and both bounds modes with the same
 * results, fuel and hash; damage of a log, byte by byte; refusals.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { type Context, host, type Instance, LinkError, NewEngine, TrapError, WasmException } from "@waft/engine";
import { Recorder, type RecordingEnd, RecordingError, replay, type ReplayOptions } from "@waft/engine/recording";

const SETTINGS: readonly ReplayOptions[] = [
  { tier: "optimizing", bounds: "guard" },
  { tier: "baseline", bounds: "explicit" },
];
const OPTIONS = { deterministic: true, fuel: true, interruptible: true } as const;

type Imports = Record<string, Record<string, unknown>>;

/** Instantiates `text` with a recorder. */
function recorded(text: string, imports: Imports = {}): { instance: Instance; recorder: Recorder } {
  const recorder = new Recorder(text);
  return { instance: NewEngine(OPTIONS).compile(text).instantiate({ record: recorder }, imports), recorder };
}

/** Replays under all settings, and compares fuel, hash, results and the error's message. */
function requireSame({ log, hash, fuel }: RecordingEnd, results: readonly unknown[], error?: string): void {
  for (const settings of SETTINGS) {
    const end = replay(log, settings);
    assert.deepEqual([end.hash, end.fuel, end.results], [hash, fuel, results], JSON.stringify(settings));
    assert.equal((end.error as Error | undefined)?.message, error);
  }
}

function messageOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    return (error as Error).message;
  }
  return "";
}

Deno.test("results of host functions and the memory that they write are replayed", () => {
  const { instance, recorder } = recorded(
    `(module
      (import "env" "fill" (func $fill (param i32 i32) (result i32)))
      (import "env" "all" (func $all (param i32 i64 f32 f64) (result i64 f32 f64 i32)))
      (memory (export "memory") 1 4)
      (func (export "sum") (param i32) (result i32) (local $s i32) (local $i i32)
        (drop (call $fill (i32.const 100) (local.get 0)))
        (loop $l
          (local.set $s (i32.add (local.get $s) (i32.load8_u (i32.add (i32.const 100) (local.get $i)))))
          (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get 0))))
        (local.get $s))
      (func (export "all") (result i64 f32 f64 i32)
        (call $all (i32.const -5) (i64.const -6000000000) (f32.const 1.5) (f64.const nan))))`,
    {
      env: {
        fill: (at: number, length: number) => {
          crypto.getRandomValues(
            new Uint8Array((instance.exports["memory"] as { buffer: ArrayBuffer }).buffer, at, length),
          );
          return length;
        },
        all: (...args: unknown[]) => {
          assert.deepEqual(args, [-5, -6_000_000_000n, 1.5, NaN]);
          return [2n ** 63n, 0.1, -0, NaN];
        },
      },
    },
  );
  const memory = instance.exports["memory"] as { buffer: ArrayBuffer; grow(pages: number): number };
  instance.call({}, "sum", 50);
  new Uint8Array(memory.buffer)[5000] = 9; // between two calls
  memory.grow(2);
  new Uint8Array(memory.buffer)[180_000] = 9;
  assert.deepEqual(instance.call({}, "all"), [-(2n ** 63n), Math.fround(0.1), -0, 0]);
  const sum = instance.call({}, "sum", 20);
  const end = recorder.finish();
  requireSame(end, [sum]);
  assert.ok(end.log.length < 1200, `${end.log.length} bytes`);
});

Deno.test("a view that a host function gets for the first time and keeps is followed from then on", () => {
  const text = `(module (import "env" "write" (func $write)) (memory (export "memory") 1)
    (func (export "run") (result i32) (i32.store8 (i32.const 7) (i32.const 1)) (call $write)
      (i32.store8 (i32.const 8) (i32.const 5)) (call $write)
      (i32.add (i32.load8_u (i32.const 7)) (i32.load8_u (i32.const 8)))))`;
  let view: Uint8Array | undefined;
  const { instance, recorder } = recorded(text, {
    env: {
      write: () => {
        view ??= new Uint8Array((instance.exports["memory"] as { buffer: ArrayBuffer }).buffer);
        view[7] += 10;
        view[8] += 100;
      },
    },
  });
  assert.equal(instance.call({}, "run"), 21 + 105);
  requireSame(recorder.finish(), [126]);
});

Deno.test("tables, globals and references of the host are replayed by identity", () => {
  const text = `(module
    (import "env" "swap" (func $swap (param externref) (result externref)))
    (import "env" "callee" (func $callee (result funcref)))
    (table (export "table") 4 funcref)
    (table $objects (export "objects") 2 externref)
    (global $g (export "g") (mut i64) (i64.const 1))
    (global $r (export "r") (mut externref) (ref.null extern))
    (type $f (func (result i32)))
    (func $one (export "one") (result i32) (i32.const 1))
    (func (export "two") (result i32) (i32.const 2))
    (func (export "call") (param i32) (result i32) (call_indirect (type $f) (local.get 0)))
    (func (export "given") (result i32) (table.set 0 (i32.const 3) (call $callee)) (call_indirect (type $f) (i32.const 3)))
    (func (export "objects?") (result externref)
      (table.set $objects (i32.const 0) (call $swap (global.get $r)))
      (global.set $r (call $swap (table.get $objects (i32.const 0))))
      (global.get $r))
    (func (export "get") (result i64) (global.get $g)))`;
  const things = new Map<unknown, unknown>();
  const { instance, recorder } = recorded(text, {
    env: {
      swap: (value: unknown) => {
        const answer = things.get(value) ?? { value };
        things.set(value, answer);
        things.set(answer, value);
        return answer;
      },
      callee: () => instance.exports["two"],
    },
  });
  const { table, g, r } = instance.exports as unknown as {
    table: { set(at: number, value: unknown): void; grow(by: number, value: unknown): number };
    g: { value: bigint };
    r: { value: unknown };
  };
  table.set(2, instance.exports["one"]);
  table.grow(2, instance.exports["two"]);
  assert.equal(instance.call({}, "call", 2), 1);
  assert.equal(instance.call({}, "call", 5), 2);
  assert.equal(instance.call({}, "given"), 2);
  r.value = "text \ud800";
  assert.equal(instance.call({}, "objects?"), "text \ud800");
  g.value = 7n;
  assert.equal(instance.call({}, "get"), 7n);
  requireSame(recorder.finish(), [7n]);
});

Deno.test("imported memories, tables, globals and tags are replayed with their contents", () => {
  const text = `(module
    (import "env" "memory" (memory 1 3)) (import "env" "table" (table 2 externref))
    (import "env" "g" (global $g (mut i32))) (import "env" "c" (global $c f64))
    (import "env" "tag" (tag $t (param i32))) (import "env" "throw" (func $throw))
    (global $d f64 (global.get $c))
    (func (export "run") (param i32) (result i32 f64)
      (block $caught (result i32)
        (try_table (catch $t $caught) (call $throw)) (i32.const -1))
      (i32.add (i32.load (i32.const 12))) (i32.add (global.get $g))
      (i32.add (ref.is_null (table.get (i32.const 1))))
      (global.get $d)))`;
  const memory = host.memory(1, 3);
  new Int32Array(memory.buffer)[3] = 1000;
  const table = host.table("externref", 2);
  table.set(1, memory);
  const g = host.global("i32", true, 20);
  const tag = host.tag("i32");
  const { instance, recorder } = recorded(text, {
    env: {
      memory,
      table,
      g,
      c: host.global("f64", false, 0.25),
      tag,
      throw: () => {
        g.value = Number(g.value) + 1;
        throw new WasmException(tag, [300]);
      },
    },
  });
  assert.deepEqual(instance.call({}, "run"), [1321, 0.25]);
  table.set(1, null);
  assert.deepEqual(instance.call({}, "run"), [1323, 0.25]);
  requireSame(recorder.finish(), [1323, 0.25]);
});

const CALLS = `(module
  (import "env" "back" (func $back (param i32) (result i32)))
  (import "env" "wait" (func $wait (param i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "nest") (param i32) (result i32) (i32.store (i32.const 0) (local.get 0)) (call $back (local.get 0)))
  (func $inc (export "inc") (param i32) (result i32)
    (i32.store (i32.const 4) (i32.add (i32.load (i32.const 4)) (local.get 0))) (i32.load (i32.const 4)))
  (func (export "spin") (loop $l (drop (call $inc (i32.const 1))) (br $l)))
  (func (export "spin after") (drop (call $back (i32.const -1)))
    (loop $l (drop (call $inc (i32.const 1))) (br $l)))
  (func (export "deep") (param i32) (result i32)
    (i32.store (i32.const 8) (local.get 0)) (call $deep (i32.add (local.get 0) (i32.const 1))))
  (func $deep (param i32) (result i32)
    (i32.store (i32.const 8) (local.get 0)) (i32.add (call $deep (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))
  (func (export "trap") (unreachable))
  (func (export "catch") (result i32)
    (block $caught (try_table (catch_all $caught) (return (call $back (i32.const 0))))) (i32.const 99))
  (func (export "wait twice") (param i32) (result i64)
    (i64.add (call $wait (local.get 0)) (call $wait (i32.const 7)))))`;

/** Imports for CALLS; waiting for n takes n milliseconds and gives a random number, or an error. */
function callImports(instance: () => Instance): Imports {
  return {
    env: {
      back: (n: number) => {
        if (n < 0) return 0;
        if (n === 0) throw new RangeError("none left");
        const { nest } = instance().exports as { nest: (n: number) => number };
        return instance().call<number>({}, "inc", n) + nest(n - 1);
      },
      wait: async (n: number) => {
        await new Promise((resolve) => setTimeout(resolve, n));
        if (n === 3) throw new Error("refused");
        return BigInt(Math.floor(Math.random() * 1e6));
      },
    },
  };
}

Deno.test("nested calls, traps, exceptions of the host and limits end in the same way", () => {
  const cases: readonly [name: string, error: string, context?: Context, ...args: unknown[]][] = [
    ["nest", "none left", {}, 4],
    ["trap", "unreachable"],
    ["deep", "call stack exhausted", {}, 0],
    ["spin", "out of fuel", { fuel: 12_345 }],
    ["spin", "interrupted", { deadline: 5 }],
    ["spin after", "interrupted", { deadline: 5, fuel: 10n ** 12n }],
    ["spin", "interrupted", { processorTime: 5 }],
    ["catch", ""],
  ];
  for (const [name, error, context = {}, ...args] of cases) {
    const { instance, recorder } = recorded(CALLS, callImports(() => instance));
    instance.call({}, "inc", 5);
    assert.equal(messageOf(() => instance.call({ ...context }, name, ...args)), error, name);
    const end = recorder.finish();
    requireSame(end, error === "" ? [99] : [], error === "" ? undefined : error);
  }
});

/** Endless loops whose state differs at every poll: with calls, inlined or not, recursion, and bulk instructions. */
const ENDLESS = `(module (memory (export "memory") 1)
  (func $leaf (param i32) (result i32)
    (i32.store offset=16 (i32.const 0) (local.get 0)) (i32.add (local.get 0) (i32.const 1)))
  (func $middle (param i32) (result i32) (local $k i32)
    (local.set $k (call $leaf (local.get 0)))
    (if (i32.and (local.get $k) (i32.const 3))
      (then (i32.store offset=20 (i32.const 0) (local.get $k)))
      (else (i32.store offset=24 (i32.const 0) (call $leaf (local.get $k)))))
    (loop $in
      (i32.store offset=28 (i32.const 0) (i32.add (i32.load offset=28 (i32.const 0)) (i32.const 1)))
      (local.set $k (i32.add (local.get $k) (i32.const 1)))
      (br_if $in (i32.lt_u (i32.rem_u (local.get $k) (i32.const 7)) (i32.const 5))))
    (local.get $k))
  (func $recursive (param i32) (result i32)
    (i32.store offset=32 (i32.const 0) (local.get 0))
    (if (result i32) (i32.eqz (local.get 0))
      (then (i32.const 1))
      (else (i32.add (call $recursive (i32.sub (local.get 0) (i32.const 1))) (call $leaf (local.get 0))))))
  (func (export "count") (local $i i32)
    (loop $l (i32.store (i32.const 0) (local.tee $i (i32.add (local.get $i) (i32.const 1)))) (br $l)))
  (func (export "call") (local $i i32)
    (loop $l (i32.store (i32.const 4) (local.tee $i (call $middle (local.get $i)))) (br $l)))
  (func (export "recurse") (local $i i32)
    (loop $l
      (i32.store (i32.const 8)
        (call $recursive (i32.and (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 31))))
      (br $l)))
  (func (export "fill")
    (loop $l (memory.fill (i32.const 100) (i32.load (i32.const 40)) (i32.const 5000))
      (i32.store (i32.const 40) (i32.add (i32.const 1) (i32.load (i32.const 40)))) (br $l))))`;

Deno.test("a recording has the NaNs of the code that it was made with, in every tier of a replay", () => {
  const text = `(module (memory (export "memory") 1)
    (func (export "run") (param f64 f64) (f64.store (i32.const 0) (f64.div (local.get 0) (local.get 1)))
      (v128.store (i32.const 16) (f32x4.max (v128.load (i32.const 16)) (v128.load (i32.const 32))))
      (f64.store (i32.const 8) (f64.mul (f64.load (i32.const 16)) (f64.load (i32.const 32))))))`;
  const hashes = (["canonical", "x64", "arm64"] as const).map((nans) => {
    const recorder = new Recorder(text);
    const instance = NewEngine({ deterministic: true, nans }).compile(text).instantiate({ record: recorder });
    const memory = new Uint32Array((instance.exports["memory"] as { buffer: ArrayBuffer }).buffer);
    memory.set([1, 0xfff80000, 0x7fa00000, 0x7fc00001, 2, 0xfff00000, 1, 2], 4);
    instance.call({}, "run", 0, 0);
    const { log, hash } = recorder.finish();
    for (const tier of ["optimizing", "baseline"] as const) assert.equal(replay(log, { tier }).hash, hash);
    return hash;
  });
  assert.equal(new Set(hashes).size, 3);
});

Deno.test("an interruption happens at the same place in code of every tier", () => {
  for (const tier of ["optimizing", "baseline"] as const) {
    const module = NewEngine({ ...OPTIONS, tier }).compile(ENDLESS);
    for (const name of ["count", "call", "recurse", "fill"]) {
      const recorder = new Recorder(ENDLESS);
      const instance = module.instantiate({ record: recorder });
      for (let round = 0; round < 3; round++) {
        assert.equal(messageOf(() => instance.call({ deadline: 1 + Math.random() }, name)), "interrupted");
      }
      requireSame(recorder.finish(), [], "interrupted");
    }
  }
});

Deno.test("a replayed trap has the guest's frames and a core dump", () => {
  const { instance, recorder } = recorded(CALLS, callImports(() => instance));
  const error = messageOf(() => instance.call({ deadline: 3 }, "spin"));
  const again = replay(recorder.finish().log).error;
  assert.ok(again instanceof TrapError);
  assert.equal(again.message, error);
  assert.ok(again.frames.length > 0);
  assert.ok(again.coredump("replayed").length > 100);
});

Deno.test("asynchronous calls are replayed in the order of their waits", async () => {
  const { instance, recorder } = recorded(CALLS, callImports(() => instance));
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 4);
  const calls = await Promise.allSettled([
    instance.callAsync({}, "wait twice", 9),
    instance.callAsync({ fuel: 500 }, "wait twice", 2),
    instance.callAsync({}, "wait twice", 3),
    instance.callAsync({ deadline: 5 }, "wait twice", 60_000),
    instance.callAsync({ signal: controller.signal }, "wait twice", 60_000),
    instance.callAsync({ deadline: 2 }, "spin"),
    instance.callAsync({ fuel: 300 }, "spin"),
  ]);
  assert.deepEqual(calls.map(({ status }) => status === "fulfilled"), [true, true, false, false, false, false, false]);
  const last = await instance.callAsync({}, "wait twice", 1);
  requireSame(recorder.finish(), [last]);
});

Deno.test("an asynchronous start function, and a start function that traps", async () => {
  const text = `(module (import "env" "wait" (func $wait (result i32))) (memory (export "memory") 1)
    (func $start (i32.store (i32.const 0) (call $wait))) (start $start))`;
  const recorder = new Recorder(text);
  await NewEngine(OPTIONS).compile(text).instantiateAsync({ record: recorder }, {
    env: { wait: () => Promise.resolve(77) },
  });
  requireSame(recorder.finish(), []);
  const trapping = text.replace("(call $wait)", "(i32.div_s (i32.const 1) (i32.sub (call $wait) (i32.const 77)))");
  const other = new Recorder(trapping);
  const failing = () =>
    NewEngine(OPTIONS).compile(trapping).instantiate({ record: other }, { env: { wait: () => 77 } });
  assert.throws(failing, /divide by zero/);
  requireSame(other.finish(), [], "integer divide by zero");
});

Deno.test("a segment that does not fit is replayed", () => {
  const text = `(module (memory 1) (data (i32.const 0) "kept") (data (i32.const 65535) "ab"))`;
  const recorder = new Recorder(text);
  const failing = () => NewEngine(OPTIONS).compile(text).instantiate({ record: recorder });
  assert.throws(failing, /out of bounds memory access/);
  requireSame(recorder.finish(), [], "out of bounds memory access");
});

Deno.test("a change of any byte of a log is refused with its place, and so is every shorter log", () => {
  const { instance, recorder } = recorded(CALLS, callImports(() => instance));
  instance.call({}, "inc", 5);
  messageOf(() => instance.call({}, "nest", 2));
  const { log } = recorder.finish();
  const refused = (bytes: Uint8Array) => {
    assert.throws(() => replay(bytes), (error) => {
      assert.ok(error instanceof RecordingError);
      assert.match(error.message, /^The recording cannot be read: /);
      return error.place.offset !== undefined && error.place.offset <= bytes.length;
    });
  };
  for (let at = 0; at < log.length; at++) {
    const bytes = log.slice();
    bytes[at] ^= 1 << (at % 8);
    refused(bytes);
    refused(log.slice(0, at));
  }
  refused(Uint8Array.of(...log, 0));
});

Deno.test("a run that cannot be repeated is refused", () => {
  const text = `(module (func (export "f") (result funcref) (ref.null func)) (memory (export "memory") 1)
    (func (export "take") (param funcref)))`;
  const make = (options: object, context: Context = {}) => () => {
    return NewEngine(options).compile(text).instantiate({ record: new Recorder(text), ...context });
  };
  assert.throws(make({}), /compile the module with \{ deterministic: true \}/);
  assert.throws(make({ deterministic: true, interruptible: true }), /add \{ fuel: true \}/);
  assert.throws(make(OPTIONS, { promises: "values" }), /record and promises exclude each other/);
  assert.throws(make(OPTIONS, { resettable: true }), /record and resettable exclude each other/);
  const other = new Recorder("(module)");
  assert.throws(
    () => NewEngine(OPTIONS).compile(text).instantiate({ record: other }),
    /another module than the one that is instantiated/,
  );
  const instance = make(OPTIONS)();
  assert.throws(() => instance.reset(), /is recorded: it cannot be reset/);
  const user = NewEngine(OPTIONS).compile(`(module (import "a" "memory" (memory 1)))`);
  assert.throws(() => user.instantiate({}, { a: instance.exports }), LinkError);
  const foreign = NewEngine(OPTIONS).compile(`(module (func (export "f")))`).instantiate().exports["f"];
  assert.throws(() => instance.call({}, "take", foreign), /a function or an object of another instance/);
  const used = new Recorder(text);
  const module = NewEngine(OPTIONS).compile(text);
  module.instantiate({ record: used });
  assert.throws(() => module.instantiate({ record: used }), /records one instance/);
  used.finish();
  assert.throws(() => used.finish(), /has ended already/);
});

Deno.test("a recording does not end with a function of another instance in its table", () => {
  const { instance, recorder } = recorded(`(module (table (export "table") 1 funcref) (func (export "f")))`);
  const foreign = NewEngine(OPTIONS).compile(`(module (func (export "f")))`).instantiate().exports["f"];
  instance.call({}, "f");
  (instance.exports["table"] as { set(index: number, value: unknown): void }).set(0, foreign);
  assert.throws(() => recorder.finish(), /a function or an object of another instance/);
  assert.throws(() => recorder.finish(), /a function or an object of another instance/);
});

Deno.test("functions of other instances are host functions of a recording, in both directions", () => {
  const engine = NewEngine(OPTIONS);
  const library = engine.compile(`(module (global $n (mut i32) (i32.const 0))
    (func (export "next") (result i32) (global.set $n (i32.add (global.get $n) (i32.const 3))) (global.get $n)))`)
    .instantiate();
  const { instance, recorder } = recorded(
    `(module (import "a" "next" (func $next (result i32)))
      (func (export "sum") (result i32) (i32.add (call $next) (call $next))))`,
    { a: library.exports },
  );
  const outer = engine.compile(`(module (import "a" "sum" (func $sum (result i32)))
    (func (export "twice") (result i32) (i32.add (call $sum) (call $sum))))`).instantiate({}, { a: instance.exports });
  assert.equal(outer.call({}, "twice"), 3 + 6 + 9 + 12);
  const end = recorder.finish();
  requireSame(end, [21]);
  assert.equal(replay(end.log).calls, 2);
});

Deno.test("observers see each call of the host with the memory that it wrote", () => {
  const { instance, recorder } = recorded(
    `(module (import "env" "put" (func $put (param i32))) (memory (export "memory") 1)
      (func (export "run") (call $put (i32.const 3)) (call $put (i32.const 4))))`,
    {
      env: {
        put: (at: number) => {
          new Uint8Array((instance.exports["memory"] as { buffer: ArrayBuffer }).buffer)[at] = at * 10;
        },
      },
    },
  );
  instance.call({}, "run");
  const { log } = recorder.finish();
  const seen: unknown[] = [];
  replay(log, {
    observe: ({ module, name, args, memory }) => seen.push([module, name, ...args, memory![args[0] as number]]),
  });
  assert.deepEqual(seen, [["env", "put", 3, 30], ["env", "put", 4, 40]]);
  assert.ok(Buffer.from(log).subarray(1, 8).toString() === "waftrec");
});

Deno.test("the error for a value of another type names no number that differs between processes", () => {
  // Other types first: the types of the module have other numbers in each process.
  const message = (types: number) => {
    const text = `(module ${"(type (struct (field i32) (field i64) (field f32)))".repeat(types)}
      (type $t (struct (field f64) (field i8)))
      (func (export "f") (param (ref $t))))`;
    const { instance, recorder } = recorded(text);
    const error = messageOf(() => instance.call({}, "f", {}));
    requireSame(recorder.finish(), [], error);
    return error;
  };
  assert.equal(message(0), "Cannot pass object as a reference of a type of the module");
  assert.equal(message(1), message(0));
});

Deno.test("errors of the boundary name the same JavaScript type in a replay", () => {
  const text = `(module (type $t (struct (field f64))) (func (export "f") (param externref (ref $t))))`;
  for (const value of [{}, () => {}, Symbol("s"), 7, "s", undefined]) {
    const { instance, recorder } = recorded(text);
    const error = messageOf(() => instance.call({}, "f", value, value));
    assert.match(error, new RegExp(`Cannot pass ${typeof value} as a reference`));
    requireSame(recorder.finish(), [], error);
  }
});
