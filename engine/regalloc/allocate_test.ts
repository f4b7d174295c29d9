/** Register allocation of random functions, checked by execution and by the allocation checker, with every key. */
import { type OptimizationSet, optimizationSet } from "../settings/optimizations.ts";
import { Statistics } from "../base/statistics.ts";
import { defaultsBut } from "../testing/optimizations.ts";
import { strict as assert } from "node:assert";
import { allocateRegisters, AllocatorWorkspace } from "./allocate.ts";
import { Allocation } from "../codegen/allocation.ts";
import { allocatorOptions } from "./allocator_options.ts";
import { BlockFacts } from "./block_facts.ts";
import { checkAllocation } from "./check_allocation.ts";
import { interpretVCode } from "../codegen/testing/interpret_vcode.ts";
import { LinearScan } from "./linear_scan.ts";
import { Liveness } from "./liveness.ts";
import { printVCode } from "../codegen/print_vcode.ts";
import { randomVCode, toyRegisters, type ToyShape } from "../codegen/testing/random_vcode.ts";
import { Resolver } from "./resolve.ts";
import { SpillSlots } from "./spill_slots.ts";

/** Shared by all tests, so that state left by one function would show in the next. */
const workspace = new AllocatorWorkspace();

const allocation = new Allocation();

/** Allocates a random function and checks the result with both oracles. */
function checkRandom(
  seed: number,
  shape: ToyShape,
  options: OptimizationSet = optimizationSet(),
  statistics: Statistics = new Statistics(),
): void {
  const v = randomVCode(seed, shape), registers = toyRegisters(shape.general, shape.vector);
  const name = `seed ${seed}, ${JSON.stringify(shape)}, ${JSON.stringify(options)}`;
  try {
    allocateRegisters(v, registers, options, allocation, statistics, workspace);
  } catch (error) {
    throw new Error(`${name}: ${(error as Error).stack}\n${v.count < 200 ? printVCode(v) : ""}`);
  }
  const problems = checkAllocation(v, registers, allocation);
  if (problems.length > 0) {
    assert.fail(`${name}:\n${problems.join("\n")}\n${v.count < 200 ? printVCode(v, allocation) : ""}`);
  }
  assert.equal(interpretVCode(v, 3000, allocation), interpretVCode(v, 3000), name);
}

const KEYS = [
  "call-next-use",
  "stack-reg",
  "reg-merge",
  "v128-pins",
  "loop-region-pins",
  "tee-sink",
  "unary-sink",
  "v128-sink",
  "tee-spill-elide",
  "entry-arg-pins",
  "ext-fp-pins",
  "compact-i32-frame",
];

const SHAPES: ToyShape[] = [
  { general: 4, vector: 4, variables: 4, statements: 12, calls: 5 },
  { general: 3, vector: 3, variables: 6, statements: 30, calls: 0 },
  { general: 4, vector: 4, variables: 8, statements: 60, calls: 10 },
  { general: 13, vector: 15, variables: 12, statements: 100, calls: 5 },
  { general: 5, vector: 5, variables: 20, statements: 150, calls: 3 },
  { general: 13, vector: 15, variables: 40, statements: 300, calls: 8 },
];

for (const shape of SHAPES) {
  Deno.test(`allocateRegisters() is correct for random functions of ${shape.statements} statements, ${shape.general} registers`, () => {
    const cases = Math.ceil(8000 / shape.statements);
    for (let seed = 0; seed < cases; seed++) checkRandom(seed, shape);
  });
}

Deno.test("allocateRegisters() is correct with each key off alone, and with all keys off", () => {
  const all = defaultsBut(Object.fromEntries(KEYS.map((key) => [key, false])));
  for (const options of [...KEYS.map((key) => defaultsBut({ [key]: false })), all]) {
    for (let seed = 0; seed < 12; seed++) {
      for (const shape of [SHAPES[2], SHAPES[4], { ...SHAPES[3], calls: 0 }]) checkRandom(seed, shape, options);
    }
  }
});

Deno.test("allocateRegisters() differs when a key is off, and counts applications when it is on", () => {
  for (const key of KEYS) {
    const statistics = new Statistics(), off = new Statistics();
    let different = 0;
    for (let seed = 0; seed < 30; seed++) {
      const shape = key === "entry-arg-pins" ? { ...SHAPES[3], calls: 0 } : SHAPES[3];
      const v = randomVCode(seed, shape), registers = toyRegisters(shape.general, shape.vector);
      allocateRegisters(v, registers, optimizationSet(), allocation, statistics, workspace);
      const before = printVCode(v, allocation);
      allocateRegisters(v, registers, defaultsBut({ [key]: false }), allocation, off, workspace);
      if (printVCode(v, allocation) !== before) different++;
    }
    assert.ok(different > 0, `${key}: no difference`);
    assert.ok(statistics.of(key) > 0, `${key} was never counted`);
    assert.equal(off.of(key), 0, `${key} was counted although it is off`);
  }
});

Deno.test("allocateRegisters() is correct with live ranges without holes, as for huge functions", () => {
  const facts = new BlockFacts(), live = new Liveness(), scan = new LinearScan(live, facts), slots = new SpillSlots();
  const resolver = new Resolver(live, facts),
    options = allocatorOptions(optimizationSet());
  live.copyLimit = 3;
  for (let seed = 0; seed < 30; seed++) {
    for (const shape of [SHAPES[2], SHAPES[4]]) {
      const v = randomVCode(seed, shape), registers = toyRegisters(shape.general, shape.vector);
      facts.compute(v);
      live.compute(v, facts, registers);
      scan.run(v, registers, options);
      slots.assign(v, live, scan.slotted, scan.slottedCount, true, options, allocation);
      resolver.run(v, slots.location, options, allocation);
      assert.deepEqual(checkAllocation(v, registers, allocation), [], `seed ${seed}`);
      assert.equal(interpretVCode(v, 3000, allocation), interpretVCode(v, 3000), `seed ${seed}`);
    }
  }
});

Deno.test("allocateRegisters() gives the same result again after other functions", () => {
  const registers = toyRegisters(6, 6), prints: string[] = [];
  const shape = { general: 6, vector: 6, variables: 15, statements: 100, calls: 8 };
  for (let round = 0; round < 2; round++) {
    for (let k = 0; k < 20; k++) {
      const seed = round === 0 ? k : 19 - k, v = randomVCode(seed, shape);
      allocateRegisters(v, registers, optimizationSet(), allocation, new Statistics(), workspace);
      if (round === 0) prints[seed] = printVCode(v, allocation);
      else assert.equal(printVCode(v, allocation), prints[seed]);
    }
  }
});
