/** Dominators and loops of random functions, against their definitions. */
import { equal, ok } from "node:assert/strict";
import type { IrFunction } from "../ir/function.ts";
import { ControlFlow } from "./cfg.ts";
import { ProgramMaker } from "./testing/random_functions.ts";

/** Successors by block. */
function successors(f: IrFunction): number[][] {
  const to: number[][] = Array.from({ length: f.blockCount }, () => []);
  for (let e = 0; e < f.edgeCount; e++) to[f.edgeFrom[e]].push(f.edgeTo[e]);
  return to;
}

/** Blocks that can be reached from `start` without going through `without`. */
function reached(next: readonly (readonly number[])[], start: number, without: number): Set<number> {
  const seen = new Set<number>();
  const stack = start === without ? [] : [start];
  while (stack.length > 0) {
    const k = stack.pop()!;
    if (seen.has(k)) continue;
    seen.add(k);
    for (const to of next[k]) if (to !== without) stack.push(to);
  }
  return seen;
}

Deno.test("a block dominates another when there is no way around it", () => {
  const flow = new ControlFlow();
  for (let seed = 1; seed <= 25; seed++) {
    const f = new ProgramMaker(seed, 60, false).make();
    flow.compute(f);
    const next = successors(f);
    for (let above = 0; above < f.blockCount; above++) {
      const around = reached(next, 0, above);
      for (let below = 0; below < f.blockCount; below++) {
        equal(flow.dominates(above, below), !around.has(below), `seed ${seed}: does b${above} dominate b${below}?`);
      }
    }
  }
});

Deno.test("a block is in the loops whose headers dominate it and can be reached again through them alone", () => {
  const flow = new ControlFlow();
  let loops = 0;
  for (let seed = 1; seed <= 40; seed++) {
    const f = new ProgramMaker(seed, 60, false).make();
    flow.compute(f);
    loops += flow.loopCount;
    const previous: number[][] = Array.from({ length: f.blockCount }, () => []);
    const latches: number[][] = Array.from({ length: f.blockCount }, () => []);
    for (let e = 0; e < f.edgeCount; e++) {
      previous[f.edgeTo[e]].push(f.edgeFrom[e]);
      if (f.edgeTo[e] <= f.edgeFrom[e]) latches[f.edgeTo[e]].push(f.edgeFrom[e]);
    }
    const around: number[][] = Array.from({ length: f.blockCount }, () => []);
    for (let head = 0; head < f.blockCount; head++) {
      if (latches[head].length === 0) continue;
      const members = new Set([head]);
      for (const latch of latches[head]) for (const k of reached(previous, latch, head)) members.add(k);
      for (const k of members) {
        around[k].push(head);
        ok(k < flow.loopEnd[head], `b${k} is beyond the end of loop b${head}`);
      }
    }
    for (let k = 0; k < f.blockCount; k++) {
      const chain: number[] = [];
      for (let loop = flow.loopOf[k]; loop >= 0; loop = flow.loopParent[loop]) chain.push(loop);
      equal(chain.reverse().join(), around[k].join(), `seed ${seed}: loops around b${k}`);
      equal(flow.depth[k], chain.length);
    }
  }
  ok(loops > 20);
});
