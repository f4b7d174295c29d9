/** The moments at which a module is compiled again, with a clock and a thread of the test. */
import assert from "node:assert/strict";
import { settle } from "../../tests/support/collect_garbage.ts";
import { THREAD } from "../abi/context_layout.ts";
import { JOB, type OptimizeJob, WORD } from "../background/optimize_job.ts";
import type { PendingWork } from "../runtime/thread/attention.ts";
import { type OptimizingCompiler, TierUp } from "./tier_up.ts";
import { codeSettings } from "../settings/code_settings.ts";

/** The calls of a test's thread: the time at which a limit of the call in progress is reached, and preempted calls. */
interface Calls {
  limit: number;
  preempted: number;
}

type Readiness = ReturnType<OptimizingCompiler["readiness"]>;

/** A module that runs from time 0; records the jobs that are sent, and the actions that the event loop is to call. */
function warmingModule(
  isReady: () => boolean | Readiness,
  startsAtOnce = false,
  works: PendingWork[] = [],
  calls: Calls = { limit: Infinity, preempted: 0 },
): { tierUp: TierUp; baseline: object; jobs: unknown[]; actions: (() => void)[] } {
  const jobs: unknown[] = [];
  const actions: (() => void)[] = [];
  const store = {
    thread: {
      attention: {
        addWork: (work: PendingWork) => works.push(work),
        get preempted() {
          return calls.preempted;
        },
      },
      arena: { pollPage: 0 },
      limits: { nextLimit: () => calls.limit },
    },
  } as never;
  const baseline = { valid: { bytes: new Uint8Array(8), funcs: [] }, settings: codeSettings() } as never;
  const compiler = {
    target: { name: "x64" },
    options: { cpu: new Set<string>() },
    readiness: () => {
      const ready = isReady();
      return typeof ready === "string" ? ready : ready ? "worker" : "absent";
    },
    callSoon: (action: () => void) => actions.push(action),
    startsAtOnce,
    send: (message: unknown) => jobs.push(message) > 0,
    compileHere: () => assert.fail("a thread is available"),
  } as unknown as OptimizingCompiler;
  const tierUp = new TierUp(store, baseline, new Uint8Array(0), compiler);
  tierUp.begin();
  return { tierUp, baseline, jobs, actions };
}

/** Milliseconds of running after which a job is sent, if the module is advanced at the times that it returns. */
function startsAfter(isReady: (ran: number) => boolean | Readiness): number {
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

Deno.test("native threads start early, earlier if their compiler is loaded", () => {
  const [loaded, native, absent] = (["loaded", "native", "absent"] as const).map((state) => startsAfter(() => state));
  assert.ok(loaded < native && native < absent / 2, `${loaded}, ${native}, ${absent}`);
});

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

/** Advances a module until `isDone`, whose call always ends `left` milliseconds later; returns the time. */
function advanceUntil(
  tierUp: TierUp,
  calls: Calls,
  left: number,
  from: number,
  isDone: (now: number) => boolean,
): number {
  let now = from;
  for (let step = 0; !isDone(now); step++) {
    assert.ok(step < 10_000, "never");
    calls.limit = now + left;
    const next = tierUp.advance(now);
    assert.ok(next !== undefined && next > now, "asks for a later time");
    now = next;
  }
  return now;
}

Deno.test("no thread is started in a call that would miss its limit: the event loop does it", () => {
  const calls = { limit: Infinity, preempted: 0 };
  const start = performance.now();
  const { tierUp, jobs, actions } = warmingModule(() => false, false, [], calls);
  const now = advanceUntil(tierUp, calls, 30, start, (now) => now > start + 2000);
  assert.deepEqual([jobs.length, actions.length], [0, 1], "it is asked once");
  calls.preempted = 1;
  actions[0]();
  assert.equal(jobs.length, 0, "a preempted call has a limit, too");
  calls.preempted = 0;
  advanceUntil(tierUp, calls, 30, now, () => actions.length > 1);
  actions[1]();
  assert.equal(jobs.length, 1);
});

Deno.test("a call starts the thread if it has time for that, or if the event loop never runs", () => {
  const startsAfter = (left: number) => {
    const calls = { limit: Infinity, preempted: 0 };
    const { tierUp, jobs } = warmingModule(() => false, false, [], calls);
    const start = performance.now();
    return advanceUntil(tierUp, calls, left, start, () => jobs.length > 0) - start;
  };
  const unlimited = startsAfter(Infinity);
  assert.ok(startsAfter(10_000) < 2 * unlimited);
  const near = startsAfter(30);
  assert.ok(near > 10 * unlimited && near < 100 * unlimited, `${near}, ${unlimited}`);
});

Deno.test("a call with a near limit uses a thread that is there", () => {
  const calls = { limit: Infinity, preempted: 0 };
  const { tierUp, jobs, actions } = warmingModule(() => true, false, [], calls);
  advanceUntil(tierUp, calls, 30, performance.now(), () => jobs.length > 0);
  assert.equal(actions.length, 0);
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

/** Bytes of the code of each function of a large module. */
const CODE_BYTES = 100;

/** A large module at address 0 that runs from time 0, and its jobs, in the order in which they are sent. */
function largeModule({ bodyBytes = 20_000, functions = 10 } = {}) {
  const jobs: OptimizeJob[] = [];
  const words = new Map<number, number>();
  const thread = {
    attention: { addWork: () => {}, preempted: 0 },
    arena: { pollPage: 0 },
    limits: { nextLimit: () => Infinity },
    stack: { low: 0, high: 1 << 20, region: { word: (at: number) => words.get(at) ?? 0xffff_0000 } },
    state: { word: (at: number) => words.get(at === THREAD.TRAP_PC ? -1 : -2) ?? 0 },
  };
  const baseline = {
    valid: {
      bytes: new Uint8Array(8),
      funcs: new Array(functions).fill({ body: { bytes: new Uint8Array(bodyBytes) } }),
    },
    image: {
      contains: (pc: number) => pc < functions * CODE_BYTES,
      functionAt: (pc: number) => Math.floor(pc / CODE_BYTES),
      callSiteAt: (pc: number) => pc % CODE_BYTES === 50 ? {} : undefined,
    },
    settings: codeSettings(),
  };
  const compiler = {
    target: { name: "x64" },
    options: { cpu: new Set<string>() },
    readiness: () => "absent",
    hasBatches: true,
    send: (message: unknown) => jobs.push(message as OptimizeJob) > 0,
  } as unknown as OptimizingCompiler;
  const tierUp = new TierUp({ thread } as never, baseline as never, new Uint8Array(functions).fill(1), compiler);
  tierUp.begin();
  let now = performance.now();
  return {
    jobs,
    /** Advances at polls of function `index`, which those of `callers` have called. */
    poll(index: number, callers: readonly number[], most: number) {
      const sent = jobs.length;
      words.clear();
      words.set(-1, index * CODE_BYTES + 7).set(-2, 4096);
      callers.forEach((caller, k) => words.set(4096 + 24 * k, caller * CODE_BYTES + 50));
      for (let k = 0; k < most && jobs.length === sent; k++) now = Math.max(tierUp.advance(now, true)!, now + 1);
    },
    fail: () => Atomics.store(new Int32Array(jobs.at(-1)!.output), WORD.STATE, JOB.FAILED),
  };
}

Deno.test("the functions of a large module that polls show are compiled first, then the module", () => {
  const { jobs, poll, fail } = largeModule();
  poll(3, [5], 1000);
  assert.deepEqual(jobs.map(({ batch }) => batch?.wanted), [[3]], "only the hottest one fits");
  fail();
  poll(3, [5], 1000);
  assert.deepEqual(jobs.map(({ batch }) => batch?.wanted), [[3], undefined]);
});

Deno.test("three callers join a batch while there is room; functions that few samples show do not", () => {
  const { jobs, poll } = largeModule({ bodyBytes: 1500, functions: 100 });
  poll(1, [], 1);
  poll(3, [5, 7, 8, 9], 1000);
  assert.deepEqual(jobs.map(({ batch }) => batch?.wanted), [[3, 5, 7, 8]]);
});

Deno.test("a small module is compiled at once, whatever polls show", () => {
  const { jobs, poll } = largeModule({ bodyBytes: 2000 });
  poll(3, [5], 1000);
  assert.deepEqual(jobs.map(({ batch }) => batch), [undefined]);
});
