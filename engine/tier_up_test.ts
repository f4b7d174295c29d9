/** The moments at which a module is compiled again, with a clock and a thread of the test. */
import assert from "node:assert/strict";
import { settle } from "../tests/support/collect_garbage.ts";
import { JOB, type OptimizeJob, WORD } from "./parallel/optimize_job.ts";
import type { PendingWork } from "./runtime/thread/guest_thread.ts";
import { type OptimizingCompiler, TierUp } from "./tier_up.ts";

/** A module that runs from time 0; records the jobs that are sent. */
function warmingModule(
  isReady: () => boolean,
  startsAtOnce = false,
  works: PendingWork[] = [],
): { tierUp: TierUp; baseline: object; jobs: unknown[] } {
  const jobs: unknown[] = [];
  const store = { thread: { addWork: (work: PendingWork) => works.push(work), arena: { pollPage: 0 } } } as never;
  const baseline = { valid: { bytes: new Uint8Array(8) } } as never;
  const compiler = {
    target: { name: "x64" },
    options: { cpu: new Set<string>() },
    isReady,
    startsAtOnce,
    send: (message: unknown) => jobs.push(message) > 0,
    compileHere: () => assert.fail("a thread is available"),
  } as unknown as OptimizingCompiler;
  const tierUp = new TierUp(store, baseline, new Uint8Array(0), compiler);
  tierUp.begin();
  return { tierUp, baseline, jobs };
}

/** Milliseconds of running after which a job is sent, if the module is advanced at the times that it returns. */
function startsAfter(isReady: (ran: number) => boolean): number {
  const start = performance.now();
  let now = start;
  const { tierUp, jobs } = warmingModule(() => isReady(now - start));
  for (let step = 0; step < 1000; step++) {
    const next = tierUp.advance(now);
    if (jobs.length > 0) return now - start;
    assert.ok(next !== undefined && next > now, "asks for a later time");
    now = next;
  }
  return assert.fail("never started");
}

Deno.test("a module is compiled again early if a thread is there, late if one must be started", () => {
  const cold = startsAfter(() => false);
  const warm = startsAfter(() => true);
  assert.ok(warm > 0 && warm < cold / 2, `${warm}, ${cold}`);
  const meanwhile = startsAfter((ran) => ran > cold / 2);
  assert.ok(meanwhile > cold / 2 && meanwhile < cold, "a thread that another module has started");
});

Deno.test("a module that has run before is compiled from its first instance on", () => {
  const { tierUp, jobs } = warmingModule(() => false, true);
  tierUp.advance(performance.now());
  assert.equal(jobs.length, 1);
});

function stateOf(job: unknown): number {
  return Atomics.load(new Int32Array((job as OptimizeJob).output), WORD.STATE);
}

Deno.test("the job of a module that can no longer run is cancelled; code in use keeps it", async () => {
  const works: PendingWork[] = [];
  // In separate functions, so that no frame holds the modules.
  const start = () => {
    const { baseline, jobs } = warmingModule(() => true, true, works);
    works.at(-1)!.advance(performance.now());
    return { baseline: [baseline], jobs };
  };
  const gone = start();
  const held = start();
  assert.deepEqual([...gone.jobs, ...held.jobs].map(stateOf), [JOB.RUNNING, JOB.RUNNING]);
  gone.baseline.pop();
  await settle();
  assert.deepEqual([...gone.jobs, ...held.jobs].map(stateOf), [JOB.CANCELLED, JOB.RUNNING]);
  const [ended, going] = works.map((work) => work.advance(performance.now()));
  assert.equal(ended, undefined);
  assert.equal(typeof going, "number");
  assert.equal(held.baseline.length, 1);
});
