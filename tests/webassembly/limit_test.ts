/**
 * `limit`: deadlines, processor time, fuel and signals over functions that call the namespace's modules, in this turn
 * of the event loop and in later ones.
 */
import assert from "node:assert/strict";
import { TestWorker } from "../support/test_worker.ts";

const ENDED = "RuntimeError: interrupted (the deadline of 40 ms), interrupted";

const OUTCOMES: Readonly<Record<string, string>> = {
  synchronous: ENDED,
  result: "7",
  promised: "7",
  processor: "RuntimeError: interrupted (the limit of 40 ms of processor time), interrupted",
  fuel: "RuntimeError: out of fuel, out-of-fuel",
  inner: ENDED,
  outer: ENDED,
  below: ENDED,
  turns: ENDED,
  belowLater: ENDED,
  caught: "interrupted,interrupted,interrupted,7",
  waiting: ENDED,
  suspended: ENDED,
  suspendedLater: ENDED,
  promisingSpins: ENDED,
  promisingRuns: "7,100000000",
  two: "long,interrupted (the deadline of 40 ms),7",
  signal: "Error: enough",
  signalled: "Error: before",
  state: "7",
  error: "Error: own",
  promise: "TypeError: The limit fuel is for functions that return no promise: use a deadline",
  unknown: 'TypeError: Unknown limit "deadlin"; did you mean "deadline"?',
  wrong: `TypeError: The context's deadline must be milliseconds or a Date, not "5"`,
  action: "TypeError: The action must be a function, not 5",
};

Deno.test("limit binds the work of a function, in this turn and in later ones", async () => {
  const worker = new TestWorker(new URL("./limit_worker.ts", import.meta.url));
  for (const [name, outcome] of Object.entries(OUTCOMES)) assert.equal(await worker.ask(name), outcome, name);
  worker.terminate();
});
