/**
 * The heads of loops that the verifier finds: each cycle has one, and branches back from code out of line make none.
 */
import { deepEqual, ok } from "node:assert/strict";
import { LoopHeads } from "../../engine/verify/loop_heads.ts";

type Edge = readonly [from: number, to: number];

function headsOf(blocks: number, edges: readonly Edge[]): number[] {
  const graph = new LoopHeads();
  graph.begin(blocks);
  for (const [from, to] of edges) graph.add(from, to);
  const heads = graph.find();
  return Array.from({ length: blocks }, (_, k) => k).filter((k) => heads[k] === 1);
}

/** Whether the blocks without the heads have a cycle. */
function hasCycle(blocks: number, edges: readonly Edge[], heads: readonly number[]): boolean {
  const left = new Set(Array.from({ length: blocks }, (_, k) => k).filter((k) => !heads.includes(k)));
  for (let size = -1; size !== left.size;) {
    size = left.size;
    for (const k of left) if (!edges.some(([from, to]) => to === k && left.has(from))) left.delete(k);
  }
  return left.size > 0;
}

Deno.test("code out of line does not make a head of the block to which it goes back", () => {
  // 0 → 1, a loop of 1, 2 and 3; 2 goes to 5 and back to 3; 3 goes on to 4.
  deepEqual(headsOf(6, [[0, 1], [1, 2], [2, 3], [2, 5], [5, 3], [3, 1], [3, 4]]), [1]);
  // An inner loop of 2 and 3 has its own; so has one block alone.
  deepEqual(headsOf(5, [[0, 1], [1, 2], [2, 3], [3, 2], [3, 1], [3, 4]]), [1, 2]);
  deepEqual(headsOf(3, [[0, 1], [1, 1], [1, 2]]), [1]);
});

Deno.test("every cycle of random graphs has a head", () => {
  let seed = 1;
  const random = (below: number) => (seed = (seed * 48271) % 0x7fffffff) % below;
  for (let count = 0; count < 300; count++) {
    const blocks = 2 + random(14);
    const edges = Array.from({ length: random(30) }, (): Edge => [random(blocks), random(blocks)]);
    const heads = headsOf(blocks, edges);
    ok(!hasCycle(blocks, edges, heads), JSON.stringify({ blocks, edges, heads }));
    // Only blocks to which an edge leads back can be heads.
    ok(heads.every((head) => edges.some(([from, to]) => to === head && from >= head)));
  }
});
