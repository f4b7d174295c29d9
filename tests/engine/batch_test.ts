/**
 * Batches: some functions of a module run optimized code before the others do. In: programs that are switched over in
 * two steps, every second function first (`tierUpBatches`), or by a helper thread. Out: the results, traps, stack
 * traces, exceptions and suspended frames of one step. The suite runs in this mode with
 * `deno task spec --tier auto --batches`.
 */
import assert from "node:assert/strict";
import { type CompilationReport, type EngineOptions, type Module, NewEngine, TrapError } from "@waft/engine";
import { settle } from "../support/collect_garbage.ts";
import { HANG_MS } from "../support/hang.ts";

/** Functions 1, 3, … from the first defined one on stay baseline code longer than the others; all call each other. */
const PROGRAM = `(module
  (import "host" "tick" (func $tick (param i32) (result i32)))
  (type $unary (func (param i32) (result i32)))
  (tag $odd (param i32))
  (memory 1)
  (table $ops 2 funcref)
  (elem (table $ops) (i32.const 0) func $even $odd)
  (func $even (type $unary)
    (if (result i32) (i32.eqz (local.get 0)) (then (i32.const 1))
      (else (call $odd (i32.sub (local.get 0) (i32.const 1))))))
  (func $odd (type $unary)
    (if (result i32) (i32.eqz (local.get 0)) (then (i32.const 0))
      (else (call $even (i32.sub (local.get 0) (i32.const 1))))))
  (func $first (type $unary) (i32.add (call $second (local.get 0)) (i32.const 3)))
  (func $second (type $unary) (i32.mul (call $third (local.get 0)) (i32.const 5)))
  (func $third (type $unary) (i32.add (call $fourth (local.get 0)) (call $tick (local.get 0))))
  (func $fourth (type $unary)
    (i32.store8 (i32.const 7) (local.get 0))
    (if (i32.eq (local.get 0) (i32.const 13)) (then (throw $odd (local.get 0))))
    (if (i32.eq (local.get 0) (i32.const 14)) (then (drop (i32.load (i32.const -4)))))
    (i32.div_u (i32.const 1000) (i32.sub (local.get 0) (i32.const 15))))
  (func $caught (type $unary)
    (block $caught (result i32)
      (try_table (catch $odd $caught) (return (call $first (local.get 0))))
      (i32.const 0)))
  (func $caught_later (type $unary)
    (block $caught (result i32)
      (try_table (catch $odd $caught) (return (call $second (local.get 0))))
      (i32.const 0)))
  (func (export "parity") (type $unary)
    (call_indirect $ops (type $unary) (local.get 0) (i32.and (local.get 0) (i32.const 1))))
  (func (export "deep") (type $unary) (call $first (local.get 0)))
  (func (export "caught") (type $unary) (i32.add (call $caught (local.get 0)) (call $caught_later (local.get 0))))
  (func (export "loop") (param $n i32) (result i32) (local $x i32)
    (loop $again
      (local.set $x (i32.add (i32.mul (local.get $x) (i32.const 31)) (call $first (i32.const 20))))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $x)))`;

type Unary = (x: number) => number;
interface Exports {
  parity: Unary;
  deep: Unary;
  caught: Unary;
  loop: Unary;
}

const compile = (options: EngineOptions, text = PROGRAM): Module =>
  NewEngine({ verify: true, ...options }).compile(text);
const exportsOf = (module: Module, tick: (x: number) => unknown = (x) => x * 2): Exports =>
  module.instantiate({}, { host: { tick } }).exports as unknown as Exports;

/** The result of a call, or its trap with the frames. */
function outcome(call: () => unknown): unknown {
  try {
    return call();
  } catch (error) {
    if (!(error instanceof TrapError)) return (error as object).constructor.name;
    return [error.message, error.frames.map(({ funcIndex, offset }) => [funcIndex, offset])];
  }
}

/** Calls everything several times. */
function outcomes(module: Module): unknown[] {
  const { parity, deep, caught, loop } = exportsOf(module);
  const all: unknown[] = [];
  for (let round = 0; round < 3; round++) {
    for (const x of [9, 10, 13, 14, 15, 20]) {
      all.push(...[parity, deep, caught].map((call) => outcome(() => call(x))));
    }
    all.push(outcome(() => loop(5)));
  }
  return all;
}

for (const bounds of ["guard", "explicit"] as const) {
  Deno.test(`batches: results, traps and exceptions, whenever functions move up (${bounds})`, () => {
    const expected = outcomes(compile({ bounds, tier: "optimizing" }));
    for (let k = 0; k < 12; k++) {
      for (const lazy of [{}, { lazyFrom: 0 }]) {
        const calls = compile({ bounds, tier: "auto", tierUpCalls: k, tierUpBatches: true, ...lazy });
        assert.deepEqual(outcomes(calls), expected, `after ${k} calls`);
      }
      const turns = compile({ bounds, tier: "auto", tierUpIterations: k, tierUpBatches: true });
      assert.deepEqual(outcomes(turns), expected, `after ${k} turns`);
    }
  });
}

Deno.test("batches: reports name the functions, then the module, in the order of the switches", () => {
  const reports: CompilationReport[] = [];
  const module = NewEngine({ tierUpCalls: 1, tierUpBatches: true, explain: (report) => reports.push(report) })
    .compile(PROGRAM);
  const { deep } = exportsOf(module);
  for (let k = 0; k < 8; k++) assert.equal(deep(20), exportsOf(compile({ tier: "optimizing" })).deep(20));
  assert.deepEqual(reports.map(({ tier, part }) => [tier, part]), [
    ["baseline", "module"],
    ["optimizing", "functions"],
    ["optimizing", "module"],
  ]);
  const [whole, batch] = [reports[0].functions, reports[1].functions].map((rows) => rows.map(({ index }) => index));
  assert.deepEqual(batch, whole.filter((_, k) => k % 2 === 0));
  assert.ok(reports[1].functions.every(({ bodyBytes, codeBytes }) => bodyBytes > 0 && codeBytes > 0));
  assert.ok(reports[0].afterMs === undefined && reports[1].afterMs! <= reports[2].afterMs!);
});

Deno.test("batches: artifacts, shared and restored modules are as if there had been none", () => {
  const expected = compile({ tier: "optimizing" }).serialize();
  const module = compile({ tier: "auto", tierUpCalls: 1, tierUpBatches: true });
  const { deep } = exportsOf(module);
  for (let k = 0; k < 3; k++) deep(20); // the batch is in use, the module is not
  assert.deepEqual(module.serialize(), expected);
  assert.equal(deep(20), exportsOf(compile({ tier: "optimizing" })).deep(20));
});

Deno.test("batches: frames of waiting calls are in the code of all steps", async () => {
  const call = (options: EngineOptions) => {
    const module = compile(options);
    const work = [20, 16, 30].map((x) => {
      const instance = module.instantiate({}, { host: { tick: (x: number) => Promise.resolve(x * 2) } });
      return instance.callAsync({}, "loop", x).then(() => instance.callAsync({}, "caught", x));
    });
    return Promise.all(work);
  };
  const expected = await call({ tier: "optimizing" });
  for (let k = 0; k < 6; k++) {
    assert.deepEqual(await call({ tier: "auto", tierUpCalls: k, tierUpBatches: true }), expected);
    assert.deepEqual(await call({ tier: "auto", tierUpIterations: k, tierUpBatches: true }), expected);
  }
});

Deno.test("batches: code of a batch lives as long as baseline code that leads to it", async () => {
  const call = (() => {
    const module = compile({ tier: "auto", tierUpCalls: 1, tierUpBatches: true });
    const instance = module.instantiate({}, { host: { tick: (x: number) => x * 2 } });
    const { deep } = instance.exports as unknown as Exports;
    for (let k = 0; k < 8; k++) deep(20);
    return deep;
  })();
  const expected = exportsOf(compile({ tier: "optimizing" })).deep(20);
  await settle();
  // Images of other modules take the place of code that is freed.
  const others = Array.from({ length: 8 }, () => exportsOf(compile({ tier: "optimizing" })).deep(20));
  assert.ok(others.every((value) => value === expected));
  assert.equal(call(20), expected);
});

/** The functions of a module too large for native threads, which compile no batches; not large enough to be lazy. */
const COLD = 300;

/** A large module of which two functions are hot; all others are never called. */
function largeProgram(): string {
  const step = "(local.set 1 (i64.add (i64.mul (local.get 1) (i64.const 31)) (i64.xor (local.get 1) (i64.const 77))))";
  const cold = Array.from(
    { length: COLD },
    (_, k) => `(func (export "cold${k}") (param i32) (result i64) (local i64) ${step.repeat(160)} (local.get 1))`,
  );
  return `(module ${cold.join("\n")}
    (func $hot (param i32) (result i64) (local i64)
      (loop $again ${step} (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
      (local.get 1))
    (func (export "run") (param i32) (result i64) (local i64)
      (loop $again
        (local.set 1 (i64.add (local.get 1) (call $hot (i32.const 200))))
        (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
      (local.get 1)))`;
}

/** Runs a large module until `isDone`, and returns the reports. */
function runLarge(n: number, isDone: (reports: readonly CompilationReport[]) => boolean): CompilationReport[] {
  const reports: CompilationReport[] = [];
  const engine = NewEngine({ tier: "auto", explain: (report) => reports.push(report) });
  const run = (options: EngineOptions) =>
    NewEngine(options).compile(largeProgram()).instantiate().exports as unknown as { run(n: number): bigint };
  const expected = run({ tier: "optimizing" }).run(n);
  const { run: work } = engine.compile(largeProgram()).instantiate().exports as unknown as { run(n: number): bigint };
  const giveUp = performance.now() + HANG_MS;
  while (!isDone(reports)) {
    assert.equal(work(n), expected);
    assert.ok(performance.now() < giveUp, "it never came");
  }
  return reports;
}

Deno.test("batches: a thread compiles the hot functions of a large module first, then the module", () => {
  let reports: CompilationReport[];
  const giveUp = performance.now() + HANG_MS;
  do { // a very busy machine gets no samples in the time for them
    assert.ok(performance.now() < giveUp, "no functions were hot");
    reports = runLarge(1000, (all) => all.some(({ tier, part }) => tier === "optimizing" && part === "module"));
  } while (!reports.some(({ part }) => part === "functions"));
  const parts = reports.map(({ part }) => part);
  assert.ok(parts.indexOf("functions") > 0 && parts.indexOf("functions") < parts.lastIndexOf("module"), parts.join());
  const batches = reports.filter(({ part }) => part === "functions").flatMap(({ functions }) => functions);
  assert.ok(batches.some(({ index }) => index >= COLD), "the hot functions");
  assert.ok(batches.every(({ index }) => index >= COLD), "no others");
});

Deno.test("batches: one long call of a large module continues in optimized code", () => {
  const reports = runLarge(2_000_000, (all) => all.some(({ part }) => part === "loop"));
  assert.ok(reports.some(({ part, functions }) => part === "loop" && functions.length === 1));
});
