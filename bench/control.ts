/**
 * The cost of control. Out: ratios. Polls and fuel are relative to waft without them; suspension in a host function
 * that returns a promise (V8's JSPI), and instantiating and resetting a module with a memory and data, to V8.
 */
import { type EngineOptions, NewEngine } from "@waft/engine";
import { alternate, type Effort, geometricMean, median, warmUp } from "./measure.ts";
import { programBytes, PROGRAMS } from "./programs.ts";
import type { Call } from "./sides.ts";

/** A ratio and the times it comes from: nanoseconds per operation, or milliseconds per run for polls and fuel. */
export interface ControlResult {
  name: string;
  group: "polls" | "fuel" | "async" | "reset" | "instantiate";
  unit: "ns" | "ms";
  waft: number;
  against: number;
  ratio: number;
}

/** Programs of every kind, including fuel's worst cases. */
const PRICED = ["fibonacci", "sha256", "quicksort", "json", "nbody", "brainfuck", "tokens", "binary_trees", "crc32"];

const WAITS = `(module (import "host" "wait" (func $wait (param i32) (result i32)))
  (func (export "run") (param i32) (result i32) (local i32)
    (loop (local.set 1 (i32.add (local.get 1) (call $wait (local.get 0))))
      (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 1)))`;

/** One page with data, like a small plugin; `f` reads the data and writes to it. */
const PAGE = `(module
  (memory (export "memory") 1) (table 4 funcref) (global (mut i32) (i32.const 7))
  (elem (i32.const 0) $f $f) (data (i32.const 8) "some bytes of data")
  (func $f (export "f") (result i32)
    (i32.store (i32.const 1024) (i32.const 1)) (i32.load (i32.const 8))))`;

/** JSPI, which Deno's type declarations lack. */
interface Jspi {
  Suspending: new (f: (x: number) => Promise<number>) => WebAssembly.ImportValue;
  promising(f: unknown): (n: number) => Promise<number>;
}

async function measureMetering(option: "polls" | "fuel", effort: Effort): Promise<ControlResult[]> {
  const results: ControlResult[] = [];
  const options: EngineOptions = option === "polls" ? { interruptible: true } : { fuel: true };
  for (const program of PROGRAMS.filter(({ name }) => PRICED.includes(name))) {
    const runOf = (engine: EngineOptions) =>
      NewEngine({ tier: "optimizing", ...engine }).compile(programBytes(program)).instantiate().exports["run"] as Call;
    const [a, b] = [runOf(options), runOf({})];
    const [workA, workB] = [() => a(program.n), () => b(program.n)];
    if (!Object.is(workA(), workB())) throw new Error(`${program.name} differs with ${option}`);
    await warmUp(workB, { ...effort, warmMs: effort.warmMs / 4 });
    const { a: waft, b: against } = alternate(workA, workB, effort.rounds);
    results.push({
      name: `${option}: ${program.name}`,
      group: option,
      unit: "ms",
      waft,
      against,
      ratio: waft / against,
    });
  }
  return results;
}

/** Medians of asynchronous work over alternating rounds, in nanoseconds per operation. */
async function alternateAsync(
  a: () => Promise<unknown>,
  b: () => Promise<unknown>,
  times: number,
  rounds: number,
): Promise<{ a: number; b: number }> {
  const timed = async (work: () => Promise<unknown>) => {
    const start = performance.now();
    await work();
    return (performance.now() - start) * 1e6 / times;
  };
  const [timesA, timesB]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds + 2; round++) {
    timesA.push(await timed(a));
    timesB.push(await timed(b));
  }
  return { a: median(timesA.slice(2)), b: median(timesB.slice(2)) };
}

async function measureSuspension(
  encode: (text: string) => Uint8Array<ArrayBuffer>,
  effort: Effort,
): Promise<ControlResult[]> {
  const times = 20_000;
  const wait = (x: number) => Promise.resolve(x);
  const { Suspending, promising } = WebAssembly as unknown as Jspi;
  const v8 = new WebAssembly.Instance(new WebAssembly.Module(encode(WAITS)), { host: { wait: new Suspending(wait) } });
  const runV8 = promising(v8.exports["run"]);
  const results: ControlResult[] = [];
  for (const [mode, options] of [["", {}], [", in slices", { interruptible: true }]] as const) {
    const instance = NewEngine({ tier: "optimizing", ...options }).compile(WAITS).instantiate({}, { host: { wait } });
    const runs: readonly (readonly [string, () => Promise<unknown>, () => Promise<unknown>])[] = [
      [`suspend and resume${mode}`, () => instance.callAsync({}, "run", times), () => runV8(times)],
      [`call, suspend, resume, return${mode}`, async () => {
        for (let k = 0; k < times; k++) await instance.callAsync({}, "run", 1);
      }, async () => {
        for (let k = 0; k < times; k++) await runV8(1);
      }],
    ];
    for (const [name, a, b] of runs) {
      const { a: waft, b: against } = await alternateAsync(a, b, times, effort.rounds);
      results.push({ name, group: "async", unit: "ns", waft, against, ratio: waft / against });
    }
  }
  return results;
}

async function measureRenewal(
  encode: (text: string) => Uint8Array<ArrayBuffer>,
  effort: Effort,
): Promise<ControlResult[]> {
  const bytes = encode(PAGE);
  const v8 = new WebAssembly.Module(bytes);
  const module = NewEngine({ tier: "optimizing" }).compile(bytes);
  const instance = module.instantiate();
  const pool = module.pool();
  const snapshot = instance.snapshot();
  const times = 500;
  const repeat = (action: () => unknown) => () => {
    for (let k = 0; k < times; k++) action();
  };
  const against = repeat(() => (new WebAssembly.Instance(v8).exports["f"] as Call)());
  const rows: readonly (readonly [string, ControlResult["group"], () => unknown])[] = [
    ["instantiate, call, close", "instantiate", () => {
      const made = module.instantiate();
      (made.exports["f"] as Call)();
      made.close();
    }],
    ["call, reset", "reset", () => {
      (instance.exports["f"] as Call)();
      instance.reset();
    }],
    ["take from a pool, call, put", "reset", () => {
      const taken = pool.take();
      (taken.exports["f"] as Call)();
      pool.put(taken);
    }],
    ["restore, call, close", "instantiate", () => {
      const made = module.restore(snapshot);
      (made.exports["f"] as Call)();
      made.close();
    }],
  ];
  const results: ControlResult[] = [];
  await warmUp(against, effort);
  for (const [name, group, action] of rows) {
    const work = repeat(action);
    await warmUp(work, { ...effort, warmMs: effort.warmMs / 2 });
    const { a, b } = alternate(work, against, effort.rounds);
    const [waftNs, v8Ns] = [a * 1e6 / times, b * 1e6 / times];
    results.push({ name, group, unit: "ns", waft: waftNs, against: v8Ns, ratio: waftNs / v8Ns });
  }
  return results;
}

/** Measures all rows. `encode` turns module text into binary. */
export async function measureControl(
  encode: (text: string) => Uint8Array<ArrayBuffer>,
  effort: Effort,
): Promise<ControlResult[]> {
  return [
    ...await measureSuspension(encode, effort),
    ...await measureRenewal(encode, effort),
    ...await measureMetering("polls", effort),
    ...await measureMetering("fuel", effort),
  ];
}

/** The figures with targets, as name, ratio and limit. */
export function summarizeControl(rows: readonly ControlResult[]): { name: string; value: number; limit: number }[] {
  const of = (test: (row: ControlResult) => boolean) => rows.filter(test).map(({ ratio }) => ratio);
  return [
    { name: "async suspend and resume / JSPI", values: of(({ group }) => group === "async"), limit: 5 },
    {
      name: "instantiate a page with data / V8",
      values: of(({ name }) => name === "instantiate, call, close"),
      limit: 1,
    },
    { name: "reset / V8's instantiate", values: of(({ group }) => group === "reset"), limit: 0.5 },
    { name: "polls / without", values: of(({ group }) => group === "polls"), limit: 1.03 },
    { name: "fuel / without", values: of(({ group }) => group === "fuel"), limit: 1.15 },
  ].filter(({ values }) => values.length > 0).map(({ name, values, limit }) => ({
    name,
    value: geometricMean(values),
    limit,
  }));
}
