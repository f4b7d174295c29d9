/** Constants moved in front of loops: in which loops they move, and that random functions behave the same. */
import { optimizationSet } from "../settings/optimizations.ts";
import { Statistics } from "../base/statistics.ts";
import { strict as assert } from "node:assert";
import { BLOCK_LOOP } from "../ir/function.ts";
import { TY } from "../ir/types.ts";
import { allocateRegisters } from "./allocate.ts";
import { Allocation } from "../codegen/allocation.ts";
import { checkAllocation } from "./check_allocation.ts";
import { ConstantHoister } from "./hoist_constants.ts";
import { interpretVCode } from "../codegen/testing/interpret_vcode.ts";
import { printVCode } from "../codegen/print_vcode.ts";
import { randomVCode, TOY, toyRegisters } from "../codegen/testing/random_vcode.ts";
import { ToyBuilder, word } from "../codegen/testing/toy_builder.ts";
import type { VCode } from "../codegen/vcode.ts";

const registers = toyRegisters(8, 8);
/** The maximum number of instructions of a run: random loops may not terminate. */
const STEPS = 3000;
const toyCost = (v: VCode, i: number) => v.op[i] === TOY.CONST ? 2 : 0;

type Six = [number, number, number, number, number, number];

/** The number of constants that block `k` makes. */
function constantsIn(v: VCode, k: number): number {
  let n = 0;
  for (let i = v.blockFirst[k]; i < v.blockFirst[k + 1]; i++) if (v.op[i] === TOY.CONST) n++;
  return n;
}

/** A loop that makes two constants, after a call if `calls`. */
function loop(calls: boolean): VCode {
  const b = new ToyBuilder(), [n, i, x, y, z, next] = b.vregs(TY.I32, 6) as Six;
  b.block();
  b.add(TOY.ENTRY, [word.defIn(n, 0)]);
  b.jump(1, [n]);
  b.block(1, [i]);
  if (calls) b.call([]);
  const one = b.constant(TY.I32);
  b.add(TOY.OP, [word.reuse(x, 1), word.use(i), word.use(one)]);
  const other = b.constant(TY.I32);
  b.add(TOY.OP, [word.reuse(y, 1), word.use(x), word.use(other)]);
  b.add(TOY.OP, [word.reuse(z, 1), word.use(y), word.use(one)]);
  b.add(TOY.OP, [word.reuse(next, 1), word.use(z)]);
  b.add(TOY.BRANCH, [word.use(next), word.any(n)]);
  b.edge(1, [next]);
  b.edge(2);
  b.block();
  b.add(TOY.RETURN, [word.useIn(next, 0)]);
  const v = b.done();
  v.blockFlags[1] = BLOCK_LOOP;
  v.blockDepth[1] = 1;
  return v;
}

Deno.test("ConstantHoister: constants of a loop are made in front of it", () => {
  const v = loop(false);
  new ConstantHoister().run(v, registers.general, toyCost);
  assert.equal(constantsIn(v, 1), 0, printVCode(v));
  assert.ok(constantsIn(v, 0) > 0, printVCode(v));
});

Deno.test("ConstantHoister: a loop that loses its registers to a call keeps its constants", () => {
  const v = loop(true);
  const before = constantsIn(v, 1);
  assert.ok(before > 0);
  assert.equal(new ConstantHoister().run(v, registers.general, toyCost), 0);
  assert.equal(constantsIn(v, 1), before);
});

Deno.test("ConstantHoister: random functions behave the same, and can be allocated", () => {
  const shape = { general: 8, vector: 8, variables: 6, statements: 40, calls: 0 };
  const allocation = new Allocation();
  let gone = 0;
  for (let seed = 1; seed <= 200; seed++) {
    const expected = interpretVCode(randomVCode(seed, shape), STEPS);
    const v = randomVCode(seed, shape);
    gone += new ConstantHoister().run(v, registers.general, toyCost);
    assert.equal(interpretVCode(v, STEPS), expected, `seed ${seed}`);
    allocateRegisters(v, registers, optimizationSet(), allocation, new Statistics());
    assert.deepEqual(checkAllocation(v, registers, allocation), [], `seed ${seed}`);
    assert.equal(interpretVCode(v, STEPS, allocation), expected, `seed ${seed}, allocated`);
  }
  assert.ok(gone > 100, `only ${gone} constants moved`);
});
