/** The arithmetic of the warm-up measurement. */
import assert from "node:assert/strict";
import { bestRun, nearBest, timeOfWork, workBy } from "./warm_up.ts";

/** Runs of 40, 20, 10, 10 and 11 ms. */
const ENDS = [40, 60, 70, 80, 91];

Deno.test("work counts runs in progress in part", () => {
  assert.deepEqual([0, 20, 40, 50, 75, 91, 200].map((ms) => workBy(ENDS, ms)), [0, 0.5, 1, 1.5, 3.5, 5, 5]);
});

Deno.test("the time of a process's work is the inverse, and goes on at the best speed", () => {
  for (const ms of [1, 20, 40, 50, 75, 90]) assert.equal(timeOfWork(ENDS, workBy(ENDS, ms)), ms);
  assert.equal(timeOfWork(ENDS, 7), 91 + 2 * 10);
});

Deno.test("a run within 15 % of the best one is near it", () => {
  assert.equal(bestRun(ENDS), 10);
  assert.equal(nearBest(ENDS), 70);
});
