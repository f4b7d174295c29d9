import { strict as assert } from "node:assert";
import { allocateRegisters } from "./allocate.ts";
import { Allocation } from "./allocation.ts";
import { checkAllocation } from "./check_allocation.ts";
import { interpretVCode } from "./interpret_vcode.ts";
import { printVCode } from "./print_vcode.ts";
import { randomVCode, toyRegisters, type ToyShape } from "./random_vcode.ts";

const allocation = new Allocation();

/** Allocates a random function and checks the result with both oracles. */
function checkRandom(seed: number, shape: ToyShape): void {
  const v = randomVCode(seed, shape), registers = toyRegisters(shape.general, shape.vector);
  const name = `seed ${seed}, ${JSON.stringify(shape)}`;
  try {
    allocateRegisters(v, registers, {}, allocation);
  } catch (error) {
    throw new Error(`${name}: ${(error as Error).stack}\n${v.count < 200 ? printVCode(v) : ""}`);
  }
  const problems = checkAllocation(v, registers, allocation);
  if (problems.length > 0) {
    assert.fail(`${name}:\n${problems.join("\n")}\n${v.count < 200 ? printVCode(v, allocation) : ""}`);
  }
  assert.equal(interpretVCode(v, 3000, allocation), interpretVCode(v, 3000), name);
}

const SHAPES: ToyShape[] = [
  { general: 4, vector: 4, variables: 4, statements: 12, calls: 5 },
  { general: 3, vector: 3, variables: 6, statements: 30, calls: 0 },
  { general: 4, vector: 4, variables: 8, statements: 60, calls: 10 },
  { general: 13, vector: 15, variables: 12, statements: 100, calls: 5 },
  { general: 5, vector: 5, variables: 20, statements: 150, calls: 3 },
  { general: 13, vector: 15, variables: 40, statements: 300, calls: 8 },
];

for (const shape of SHAPES) {
  Deno.test(`allocateRegisters() is right for random functions of ${shape.statements} statements, ${shape.general} registers`, () => {
    const cases = Math.ceil(12000 / shape.statements);
    for (let seed = 0; seed < cases; seed++) checkRandom(seed, shape);
  });
}
