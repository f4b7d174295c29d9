/** The allocation checker: it finds changed operands, missing edits, and slots outside of the frame. */
import { optimizationSet } from "../settings/optimizations.ts";
import { Statistics } from "../base/statistics.ts";
import { strict as assert } from "node:assert";
import { allocateRegisters } from "./allocate.ts";
import { Allocation } from "../codegen/allocation.ts";
import { checkAllocation } from "./check_allocation.ts";
import { interpretVCode } from "../codegen/testing/interpret_vcode.ts";
import { Random, randomVCode, toyRegisters } from "../codegen/testing/random_vcode.ts";
import { CONSTRAINT, operandConstraint, operandRole, ROLE } from "../codegen/vcode.ts";

const SHAPE = { general: 5, vector: 5, variables: 10, statements: 50, calls: 10 };
const registers = toyRegisters(SHAPE.general, SHAPE.vector);

Deno.test("checkAllocation() finds the location of an operand changed", () => {
  const random = new Random(3), a = new Allocation();
  let tried = 0, found = 0;
  for (let seed = 0; seed < 120; seed++) {
    const v = randomVCode(seed, SHAPE);
    allocateRegisters(v, registers, optimizationSet(), a, new Statistics());
    let o = random.below(v.operandCount);
    const suits = () => operandRole(v.operands[o]) === ROLE.USE && operandConstraint(v.operands[o]) === CONSTRAINT.REG;
    while (o < v.operandCount && !suits()) o++;
    if (o === v.operandCount) continue;
    a.location[o] = (a.location[o] & 32) | ((a.location[o] + 1 + random.below(4)) % 5);
    tried++;
    if (checkAllocation(v, registers, a).length > 0) found++;
  }
  assert.ok(tried > 30);
  // A value may be in two registers, and either is correct.
  assert.ok(found > tried * 0.8, `found ${found} of ${tried}`);
});

Deno.test("checkAllocation() finds every edit left out that matters to a run", () => {
  const random = new Random(4), a = new Allocation();
  let wrong = 0;
  for (let seed = 0; seed < 200; seed++) {
    const v = randomVCode(seed, SHAPE);
    allocateRegisters(v, registers, optimizationSet(), a, new Statistics());
    if (a.editCount === 0) continue;
    // Leave the edit out by moving a register to itself.
    const e = random.below(a.editCount);
    a.editFrom[e] = a.editTo[e];
    a.editRemat[e] = 0;
    const differs = interpretVCode(v, 2000, a) !== interpretVCode(v, 2000);
    if (!differs) continue;
    wrong++;
    assert.notEqual(checkAllocation(v, registers, a).length, 0, `seed ${seed}, edit ${e}`);
  }
  assert.ok(wrong > 20, `${wrong} runs went wrong`);
});

Deno.test("checkAllocation() reports slots out of the frame and incomplete masks", () => {
  const a = new Allocation(), v = randomVCode(7, SHAPE);
  allocateRegisters(v, registers, optimizationSet(), a, new Statistics());
  assert.deepEqual(checkAllocation(v, registers, a), []);
  assert.ok(a.slotCount > 0);
  a.slotCount -= 2;
  assert.match(checkAllocation(v, registers, a).join("\n"), /slot \d+ of \d+/);
  a.slotCount += 2;
  a.writtenGeneral = 0;
  assert.match(checkAllocation(v, registers, a).join("\n"), /masks of written registers/);
});
