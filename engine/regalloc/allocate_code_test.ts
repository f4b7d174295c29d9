/** Register allocation of small functions: the number and place of its moves, stores and loads. */
import { optimizationSet } from "../settings/optimizations.ts";
import { Statistics } from "../base/statistics.ts";
import { strict as assert } from "node:assert";
import { TY } from "../ir/types.ts";
import { allocateRegisters } from "./allocate.ts";
import { Allocation } from "../codegen/allocation.ts";
import { checkAllocation } from "./check_allocation.ts";
import { printVCode } from "../codegen/print_vcode.ts";
import { TOY, toyRegisters } from "../codegen/testing/random_vcode.ts";
import { ToyBuilder, word } from "../codegen/testing/toy_builder.ts";
import type { VCode } from "../codegen/vcode.ts";

const registers = toyRegisters(6, 6);
const allocation = new Allocation();

function allocate(v: VCode): string {
  allocateRegisters(v, registers, optimizationSet(), allocation, new Statistics());
  assert.deepEqual(checkAllocation(v, registers, allocation), []);
  return printVCode(v, allocation);
}

/** Number of edits in blocks first to last and on the edges between them. */
function editsWithin(v: VCode, first: number, last: number): number {
  let n = 0;
  const end = last + 1 < v.blockCount ? v.blockFirst[last + 1] : v.count;
  for (let e = 0; e < (v.edgeCount > 0 ? allocation.edgeFirst[0] : allocation.editCount); e++) {
    if (allocation.editAt[e] >= 2 * v.blockFirst[first] && allocation.editAt[e] < 2 * end) n++;
  }
  for (let e = 0; e < v.edgeCount; e++) {
    const inside = (k: number) => k >= first && k <= last;
    if (inside(v.edgeFrom[e]) && inside(v.edgeTo[e])) n += allocation.edgeFirst[e + 1] - allocation.edgeFirst[e];
  }
  return n;
}

Deno.test("allocateRegisters(): a counting loop has no moves in it", () => {
  const b = new ToyBuilder(), [n, i, sum, next, total] = b.vregs(TY.I32, 5) as [number, number, number, number, number];
  b.block();
  b.add(TOY.ENTRY, [word.defIn(n, 0)]);
  const zero = b.constant(TY.I32);
  b.jump(1, [zero, zero]);
  b.block(1, [i, sum]);
  b.add(TOY.OP, [word.reuse(total, 1), word.use(sum), word.use(i)]);
  b.add(TOY.OP, [word.reuse(next, 1), word.use(i)]);
  b.add(TOY.BRANCH, [word.use(next), word.any(n)]);
  b.edge(1, [next, total]);
  b.edge(2);
  b.block();
  b.add(TOY.RETURN, [word.useIn(total, 0)]);
  const v = b.done(), text = allocate(v);
  assert.equal(editsWithin(v, 1, 1), 0, text);
  assert.equal(allocation.slotCount, 0);
  assert.equal(allocation.skip[1], 1, "the constant is made on the edge only");
});

Deno.test("allocateRegisters(): results of loops that live through a later call are stored after the loops", () => {
  const b = new ToyBuilder(), [n, i, next, r] = b.vregs(TY.I32, 4) as [number, number, number, number];
  b.block();
  b.add(TOY.ENTRY, [word.defIn(n, 0)]);
  b.jump(1, [n]);
  b.block(1, [i]);
  b.add(TOY.OP, [word.reuse(next, 1), word.use(i)]);
  b.branch(next, 1, 2, [next]);
  b.block();
  b.call([word.defIn(r, 0)]);
  b.add(TOY.RETURN, [word.useIn(next, 0), word.useIn(r, 1)]);
  const v = b.done(), text = allocate(v);
  assert.equal(editsWithin(v, 1, 1), 0, text);
  assert.equal(allocation.slotOffset(allocation.slotCount), 8);
});

Deno.test("allocateRegisters(): a call on a rare path costs the frequent one nothing", () => {
  const b = new ToyBuilder(), [n, i, next, c] = b.vregs(TY.I32, 4) as [number, number, number, number];
  b.block();
  b.add(TOY.ENTRY, [word.defIn(n, 0)]);
  b.jump(1, [n]);
  b.block(1, [i]);
  b.add(TOY.OP, [word.def(c), word.use(i), word.use(n)]);
  b.branch(c, 2, 3);
  b.block(1);
  b.v.blockFlags[2] = 2; // cold
  b.call([word.useIn(i, 0)]);
  b.jump(3);
  b.block(1);
  b.add(TOY.OP, [word.reuse(next, 1), word.use(i), word.use(n)]);
  b.branch(next, 1, 4, [next]);
  b.block();
  b.add(TOY.RETURN, [word.useIn(n, 0)]);
  const v = b.done(), text = allocate(v);
  // Blocks 1 and 3 and their edges; the edges of the cold block 2 carry the stores and reloads.
  assert.equal(editsWithin(v, 1, 1) + editsWithin(v, 3, 3), 0, text);
  for (let e = 0; e < v.edgeCount; e++) {
    if (v.edgeFrom[e] === 3 || (v.edgeFrom[e] === 1 && v.edgeTo[e] === 3)) {
      assert.equal(allocation.edgeFirst[e + 1], allocation.edgeFirst[e], text);
    }
  }
});

Deno.test("allocateRegisters(): values that a loop does not use are spilled before it", () => {
  const b = new ToyBuilder(), idle = b.vregs(TY.I64, 5), busy = b.vregs(TY.I64, 5);
  b.block();
  for (const x of [...idle, ...busy]) b.add(TOY.OP, [word.def(x)]);
  b.jump(1);
  b.block(1);
  for (const x of busy) b.add(TOY.EFFECT, [word.use(x), word.use(busy[0])]);
  b.branch(busy[1], 1, 2);
  b.block();
  for (const x of idle) b.add(TOY.EFFECT, [word.use(x)]);
  b.add(TOY.RETURN, []);
  const v = b.done(), text = allocate(v);
  assert.equal(editsWithin(v, 1, 1), 0, text);
});

Deno.test("allocateRegisters(): a loop that exchanges two values exchanges their registers once", () => {
  const b = new ToyBuilder(), [x, y, p, q] = b.vregs(TY.I64, 4) as [number, number, number, number];
  b.block();
  b.add(TOY.ENTRY, [word.defIn(x, 0), word.defIn(y, 1)]);
  b.jump(1, [x, y]);
  b.block(1, [p, q]);
  b.branch(p, 1, 2, [q, p]);
  b.block();
  b.add(TOY.RETURN, [word.useIn(p, 0), word.useIn(q, 1)]);
  const v = b.done(), text = allocate(v);
  assert.equal(editsWithin(v, 1, 1), 1, text);
  assert.equal(allocation.editRemat[allocation.edgeFirst[1]], -1);
});

Deno.test("allocateRegisters(): a value in many calls is stored once and loaded straight into its argument register", () => {
  const b = new ToyBuilder(), x = b.vreg(TY.I32);
  b.block();
  b.add(TOY.ENTRY, [word.defIn(x, 0)]);
  for (let k = 0; k < 4; k++) b.call([word.useIn(x, 2)]);
  b.add(TOY.RETURN, [word.useIn(x, 0)]);
  assert.equal(
    allocate(b.done()),
    `block 0() depth 0
  0: op0  def v1:g0=g0
    | i32 g2 = g0
    | i32 [0] = g0
  1: op3  use v1:g2=g2  clobbers 1
    | i32 g2 = [0]
  2: op3  use v1:g2=g2  clobbers 1
    | i32 g2 = [0]
  3: op3  use v1:g2=g2  clobbers 1
    | i32 g2 = [0]
  4: op3  use v1:g2=g2  clobbers 1
    | i32 g0 = [0]
  5: op8  use v1:g0=g0
`,
  );
});

Deno.test("allocateRegisters() rejects VCode that breaks its contract", () => {
  const undefinedUse = new ToyBuilder(), x = undefinedUse.vreg(TY.I32);
  undefinedUse.block();
  undefinedUse.add(TOY.RETURN, [word.use(x)]);
  assert.throws(() => allocate(undefinedUse.done()), /v1 is used but never defined/);

  const tooMany = new ToyBuilder(), xs = tooMany.vregs(TY.I32, 7);
  tooMany.block();
  for (const y of xs) tooMany.add(TOY.OP, [word.def(y)]);
  tooMany.add(TOY.EFFECT, xs.map(word.use));
  assert.throws(() => allocate(tooMany.done()), /no register for v\d+ at instruction 7/);
});

Deno.test("allocateRegisters() takes functions with very many values, blocks, edges and parameters", () => {
  const live = new ToyBuilder(), xs = live.vregs(TY.I32, 20000);
  live.block();
  for (const x of xs) live.add(TOY.OP, [word.def(x)]);
  for (const x of xs) live.add(TOY.EFFECT, [word.use(x)]);
  allocateRegisters(live.done(), registers, optimizationSet(), allocation, new Statistics());
  assert.ok(allocation.slotCount >= 19990 && allocation.slotCount <= 20000);

  const cases = 5000, wide = new ToyBuilder(), start = wide.vregs(TY.I32, 30), params = wide.vregs(TY.I32, 30);
  wide.block();
  for (const x of start) wide.add(TOY.OP, [word.def(x)]);
  wide.jump(1, start);
  wide.block(1, params);
  wide.add(TOY.SWITCH, [word.use(params[0])]);
  for (let k = 0; k < cases; k++) wide.edge(2 + k);
  for (let k = 0; k < cases; k++) {
    wide.block(1);
    const next = [...params], x = wide.vreg(TY.I32);
    wide.add(TOY.OP, [word.reuse(x, 1), word.use(params[k % 30])]);
    next[k % 30] = x;
    if (k % 3 === 0) wide.call([word.useIn(x, 0)]);
    if (k === 77) wide.jump(2 + cases);
    else wide.jump(1, next);
  }
  wide.block();
  wide.add(TOY.RETURN, []);
  allocateRegisters(wide.done(), registers, optimizationSet(), allocation, new Statistics());
  assert.ok(allocation.slotCount <= 40);
});
