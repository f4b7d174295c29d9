/** The moments at which a module is compiled again, with a clock and a thread of the test. */
import assert from "node:assert/strict";
import { type OptimizingCompiler, TierUp } from "./tier_up.ts";

/** A module that runs from time 0; records the jobs that are sent. */
function warmingModule(isReady: () => boolean, startsAtOnce = false): { tierUp: TierUp; jobs: unknown[] } {
  const jobs: unknown[] = [];
  const store = { thread: { addWork: () => {}, arena: { pollPage: 0 } } } as never;
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
  return { tierUp, jobs };
}

/** Milliseconds of running after which a job is sent, in steps that the module asks for. */
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
