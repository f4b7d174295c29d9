/**
 * Every numeric parameter of the API, one row each: invalid numbers are rejected with a one-line TypeError or
 * RangeError, without side effects. Conversions to WebAssembly values (arguments, globals) follow the JavaScript API
 * and are tested there.
 */
import assert from "node:assert/strict";
import { type Context, Engine, host, NewEngine, ProcessorAccount, startCall, underLimits } from "@waft/engine";
import { CodeCache, Memory } from "@waft/engine";
import { runThreads } from "@waft/engine/wasi/threads";
import { Wasi } from "@waft/engine/wasi";

/** Values that are never a whole number of at least 0. */
const NEVER: readonly unknown[] = [-1, -2, -65536, 1.5, -0.5, NaN, -Infinity, null, "", "x", true, {}, [], Symbol("s")];
const HUGE: readonly unknown[] = [Infinity, 2 ** 53, 2 ** 64, 1e300];
const BIGINTS: readonly unknown[] = [1n, -1n, 2n ** 64n];
const STRINGS: readonly unknown[] = ["1", "0x10"];
const OF_SIZES = [...NEVER, ...HUGE, ...BIGINTS, ...STRINGS];

const module = NewEngine({ interruptible: true, fuel: true }).compile(`(module
  (memory (export "memory") 1 8) (table (export "table") 2 8 funcref)
  (func (export "f")))`);
const module64 = NewEngine().compile(`(module (memory (export "memory") i64 1 8) (memory (export "other") i64 1))`);
const threads = NewEngine().compile(`(module (import "env" "memory" (memory 1 4 shared))
  (import "wasi" "thread-spawn" (func (param i32) (result i32)))
  (func (export "wasi_thread_start") (param i32 i32)) (func (export "_start")))`);

/** An API call with an invalid number in one place. */
interface Row {
  readonly name: string;
  readonly wrong: readonly unknown[];
  /** Uses the number, which has another type than declared. */
  readonly use: (value: never) => unknown;
}

function row(name: string, wrong: readonly unknown[], use: (value: never) => unknown): Row {
  return { name, wrong, use };
}

const instance = module.instantiate();
const memories: readonly (readonly [string, Memory])[] = [
  ["guarded", host.memory(1, 8, "guard")],
  ["with explicit bounds", host.memory(1, 8, "explicit")],
  ["shared", host.sharedMemory(1, 8)],
  ["exported", instance.exports["memory"] as Memory],
  ["of 64 bits", module64.instantiate().exports["memory"] as Memory],
];
const table = host.table("externref", 2, 8);

const LIMITS = ["maxMemoryPages", "maxTableElements", "maxStackBytes", "maxHeapBytes"] as const;
const OF_MEMORY_SIZES = [...OF_SIZES, 65537, 2 ** 32];
const ROWS: readonly Row[] = [
  ...memories.map(([name, memory]) =>
    // Too many pages are an answer: −1.
    row(`grow of a memory ${name}`, [...NEVER, Infinity, ...BIGINTS, ...STRINGS], (n) => memory.grow(n))
  ),
  row("grow of a table", OF_SIZES, (n) => table.grow(n)),
  row("get of a table", [...OF_SIZES, 2], (n) => table.get(n)),
  row("set of a table", [...OF_SIZES, 2], (n) => table.set(n, null)),
  row("host.memory initial", OF_MEMORY_SIZES, (n) => host.memory(n)),
  row("host.memory maximum", [...OF_MEMORY_SIZES, 0], (n) => host.memory(1, n)),
  row("host.sharedMemory initial", OF_MEMORY_SIZES, (n) => host.sharedMemory(n, 8)),
  row("host.sharedMemory maximum", [...OF_MEMORY_SIZES, undefined], (n) => host.sharedMemory(1, n)),
  row("host.table initial", [...OF_SIZES, 2 ** 32], (n) => host.table("funcref", n)),
  row("host.table maximum", [...OF_SIZES, 2 ** 32], (n) => host.table("funcref", 0, n)),
  ...[...LIMITS, "maxInstances"].map((name) =>
    row(`limit ${name} of an engine`, OF_SIZES, (n) => new Engine({ limits: { [name]: n } }))
  ),
  ...LIMITS.map((name) =>
    row(`limit ${name} of an instance`, OF_SIZES, (n) => module.instantiate({ limits: { [name]: n } }))
  ),
  row("parallel", [...NEVER, ...HUGE, ...BIGINTS, ...STRINGS], (n) => new Engine({ parallel: n })),
  row("maxBytes of a cache", OF_SIZES, (n) => new CodeCache({ directory: "none", maxBytes: n })),
  row("maxBytes of an engine's cache", OF_SIZES, (n) => new Engine({ cache: { directory: "none", maxBytes: n } })),
  row("size of a pool", OF_SIZES, (n) => module.pool({ size: n })),
  row("fuel", [...NEVER, ...HUGE, -1n, 2n ** 62n + 1n, ...STRINGS], (n) => instance.call({ fuel: n }, "f")),
  row("deadline", [NaN, new Date(NaN), 5n, "5", null, {}, true], (n) => instance.call({ deadline: n }, "f")),
  row("processor time", [-1, NaN, -Infinity, "5", 5n, null, {}, true], (n) => instance.call({ processorTime: n }, "f")),
  row("time of a processor account", [-1, NaN, -Infinity, "5", 5n, null, {}, true], (n) => new ProcessorAccount(n)),
  row("deadline of started calls", [NaN, 5n, "5", null, {}, true], (n) => {
    startCall(instance.exports["f"] as () => unknown, { deadline: n }, [], () => {}, () => {});
  }),
  row("fuel of several calls", [-1, 1.5, NaN, "5", null, {}, true], (n) => {
    underLimits(instance.exports["f"] as () => unknown, { fuel: n }, () => {});
  }),
  row("descriptors of WASI", [...OF_SIZES, 2 ** 31], (n) => new Wasi({ stdio: [0, n, 2] })),
];

for (const { name, wrong, use } of ROWS) {
  Deno.test(`numbers: ${name}`, () => {
    const sizes = () => [...memories.map(([, memory]) => [memory.pages, memory.byteLength]), table.length];
    const before = sizes();
    for (const value of wrong) {
      assert.throws(() => use(value as never), (error) => {
        assert.ok(error instanceof TypeError || error instanceof RangeError, `${String(value)}: ${error}`);
        assert.doesNotMatch(error.message, /\n|undefined \(reading|Cannot (convert|mix)/, String(value));
        return true;
      }, `${name}: ${String(value)}`);
    }
    assert.deepEqual(sizes(), before);
  });
}

Deno.test("numbers: more pages than there can be are answered by −1, and the memory stays as it is", () => {
  for (const [name, memory] of memories) {
    for (const pages of [8, 65536, 2 ** 32, 2 ** 48, 2 ** 53, 2 ** 64, 1e300]) {
      assert.equal(memory.grow(pages), -1, `${name} ${pages}`);
    }
    assert.equal(memory.grow(0), 1);
    assert.equal(memory.pages, 1);
  }
});

Deno.test("numbers: a memory that was asked to shrink reaches no other memory", () => {
  const explicit = NewEngine({ bounds: "explicit" }).compile(`(module (memory (export "memory") 1 8)
    (func (export "load") (param i32) (result i32) (i32.load8_u (local.get 0))))`);
  const [one, other] = [explicit.instantiate(), explicit.instantiate()];
  const memory = one.exports["memory"] as Memory;
  new Uint8Array((other.exports["memory"] as Memory).buffer).fill(7);
  for (const pages of [-2, -1, 1.5, -0.5]) assert.throws(() => memory.grow(pages), TypeError);
  assert.equal(memory.byteLength, 65536);
  assert.equal(one.call({}, "load", 65535), 0);
  assert.throws(() => one.call({}, "load", 65536), { message: "out of bounds memory access" });
  assert.throws(() => one.call({}, "load", -1), { message: "out of bounds memory access" });
});

Deno.test("numbers: instruction sets of a machine are an array of names", async () => {
  for (const cpu of [5, "avx2", {}, [5], null]) {
    const machine = { os: "linux", arch: "x64", cpu: cpu as string[] } as const;
    await assert.rejects(
      NewEngine().compileFor(machine, "(module)"),
      /^TypeError: The instruction sets of a machine must/,
    );
  }
});

Deno.test("numbers: threads of a program", async () => {
  for (const value of [...OF_SIZES, 0]) {
    await assert.rejects(runThreads(threads, { maxThreads: value as number }), RangeError, String(value));
  }
});

Deno.test("numbers: asynchronous calls refuse the same values as calls", async () => {
  const wrong: Record<string, unknown>[] = [{ fuel: 1.5 }, { fuel: -1n }, { deadline: NaN }, { deadline: "5" }];
  for (const context of wrong) {
    await assert.rejects(instance.callAsync(context as Context, "f"), /must be/);
    await assert.rejects(module.instantiateAsync({ limits: { maxMemoryPages: -1 } }), RangeError);
  }
});

Deno.test("numbers: tokens of memories", () => {
  const token = host.sharedMemory(1, 8).share();
  const described = JSON.parse(token.description);
  const wrong: readonly (readonly [string, unknown])[] = [
    ["maxPages", -1],
    ["maxPages", 1.5],
    ["maxPages", 2 ** 40],
    ["maxPages", "8"],
    ["min", "-1"],
    ["min", "9"],
    ["max", String(2n ** 40n)],
    ["isWide", true],
    ["guarded", 1],
  ];
  for (const [field, value] of wrong) {
    const description = JSON.stringify({ ...described, [field]: value });
    assert.throws(() => Memory.fromShared({ ...token, description }), TypeError, `${field} ${value}`);
  }
  for (const value of [undefined, null, 5, "memory", {}, []]) {
    assert.throws(() => Memory.fromShared(value as never), TypeError);
  }
  assert.equal(Memory.fromShared(token).pages, 1);
});
