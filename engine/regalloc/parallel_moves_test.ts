/** Parallel moves in sequence: random moves, chains and cycles of registers and slots. */
import { strict as assert } from "node:assert";
import { TY } from "../ir/types.ts";
import { Allocation } from "../codegen/allocation.ts";
import { ParallelMoves } from "./parallel_moves.ts";
import { Random } from "../codegen/testing/random_vcode.ts";

/** Executes edits on named values: each location begins with its own number as value. */
function execute(out: Allocation, first: number): Map<number, string> {
  const cells = new Map<number, string>();
  const read = (location: number) => cells.get(location) ?? `${location}`;
  for (let e = first; e < out.editCount; e++) {
    const from = out.editFrom[e], to = out.editTo[e], remat = out.editRemat[e];
    if (remat > 0) cells.set(to, `repeat ${remat}`);
    else if (remat === -1) {
      assert.ok(from >= 0 && to >= 0, "exchanges are of registers");
      const [a, b] = [read(from), read(to)];
      cells.set(from, b);
      cells.set(to, a);
    } else cells.set(to, read(from));
  }
  return cells;
}

/** A random parallel move within one bank and slot class: distinct destinations, any sources. */
function checkRandom(random: Random, locations: number[], ty: number): void {
  const moves = new ParallelMoves(), out = new Allocation(), expected = new Map<number, string>();
  out.slotCount = 8;
  moves.beginFunction();
  const targets = [...locations].sort(() => (random.chance(50) ? 1 : -1)).slice(0, 1 + random.below(locations.length));
  for (const to of targets) {
    const remat = random.chance(10) ? 1 + random.below(5) : 0, from = locations[random.below(locations.length)];
    moves.add(from, remat, to, ty);
    if (random.chance(10)) moves.add(from, remat, to, ty);
    expected.set(to, remat > 0 ? `repeat ${remat}` : `${from}`);
  }
  moves.resolve(out, 0);
  assert.equal(moves.count, 0);
  const actual = execute(out, 0);
  for (const location of locations) {
    assert.equal(
      actual.get(location) ?? `${location}`,
      expected.get(location) ?? `${location}`,
      `location ${location}`,
    );
  }
}

Deno.test("ParallelMoves orders random moves of registers", () => {
  const random = new Random(1);
  for (let n = 0; n < 2000; n++) checkRandom(random, [0, 1, 2, 3, 4, 5, 6], TY.I64);
  for (let n = 0; n < 500; n++) checkRandom(random, [32, 33, 34, 35], TY.V128);
});

Deno.test("ParallelMoves orders random moves of registers and slots", () => {
  const random = new Random(2);
  for (let n = 0; n < 2000; n++) checkRandom(random, [0, 1, 2, -1, -2, -3, -4], TY.I32);
  for (let n = 0; n < 500; n++) checkRandom(random, [32, 33, -1, -3, -5], TY.V128);
});

Deno.test("ParallelMoves orders long chains and cycles", () => {
  for (const turn of [0, 1]) {
    const moves = new ParallelMoves(), out = new Allocation(), n = 3000;
    out.slotCount = n;
    moves.beginFunction();
    // Slot k moves to slot k + 1; with a turn the last one moves to the first.
    for (let k = 0; k < n - 1 + turn; k++) moves.add(-1 - k, 0, -1 - (k + 1) % n, TY.I64);
    moves.resolve(out, 0);
    const cells = execute(out, 0);
    for (let k = 1; k < n; k++) assert.equal(cells.get(-1 - k), `${-k}`);
    assert.equal(cells.get(-1) ?? "-1", turn === 1 ? `${-n}` : "-1");
    assert.equal(out.editCount, n - 1 + 2 * turn);
  }
});

Deno.test("ParallelMoves breaks a cycle of n registers with n - 1 exchanges", () => {
  const moves = new ParallelMoves(), out = new Allocation();
  moves.beginFunction();
  for (let r = 0; r < 5; r++) moves.add(r, 0, (r + 1) % 5, TY.I32);
  moves.resolve(out, 0);
  assert.equal(out.editCount, 4);
  assert.deepEqual([...out.editRemat.subarray(0, 4)], [-1, -1, -1, -1]);
  assert.ok(out.editTy.subarray(0, 4).every((ty) => ty === TY.I64), "exchanges are of whole registers");
});

Deno.test("ParallelMoves loads a slot once for several destinations", () => {
  const moves = new ParallelMoves(), out = new Allocation();
  out.slotCount = 4;
  moves.beginFunction();
  for (const to of [3, 5, -2]) moves.add(-1, 0, to, TY.I64);
  moves.resolve(out, 0);
  assert.equal([...out.editFrom.subarray(0, 3)].filter((from) => from === -1).length, 1);
});

Deno.test("ParallelMoves rejects two values for one location", () => {
  const moves = new ParallelMoves();
  moves.beginFunction();
  moves.add(0, 0, 2, TY.I64);
  moves.add(1, 0, 2, TY.I64);
  assert.throws(() => moves.resolve(new Allocation(), 0), /two values for location 2/);
});
