/**
 * Tier-up: a module starts with baseline code; once it has run for a while, a helper thread compiles it with the
 * optimizing compiler, and the running program switches to that code. In: a module with baseline code, and the options
 * of its optimized code. Out: the compiled module to use now. Invariant: results do not depend on when, or whether, the
 * switch happens.
 *
 *     IDLE ── first instance ──▶ WARMING ── it has run for START_MS ──▶ COMPILING ──▶ DONE
 *                                    │  │                                   ▲
 *                                    │  └─ large: hot functions first ──▶ BATCHES
 *                                    └─ no thread: when enough time was spent ──▶ compiled here ──▶ DONE
 *
 * A module that takes long to compile moves up in batches: while it runs, polls show which functions are hot. These,
 * and the functions that they call, are compiled as an image of their own, to which the entries of their baseline code
 * jump. The whole module follows when no further function is hot, and replaces all of this as if there had been no
 * batch.
 *
 * Starting the first thread takes this one so long that a call with a near deadline would be late: such a call leaves
 * it to the event loop.
 *
 * Frames that are in a loop at that time continue in optimized code as well (loop_entries.ts).
 *
 * Realms that share a module with baseline code (artifact/shared_module.ts) share the job as well: one of them sends
 * it, and each places the optimized code for itself.
 *
 * The module takes part in GuestThread's pending work: it advances at calls, host calls and polls. The thread does not
 * keep it alive: a module that can no longer run is neither optimized nor held in memory.
 */
import { bodyBytes } from "../baseline/module_tables.ts";
import { now } from "../host/clocks.ts";
import type { Target } from "../codegen/target.ts";
import type { BatchCode, CompiledCode, CompileOptions, LoopEntryCode, LoopPlace } from "../compile/compile.ts";
import type { BaselineSharing } from "../artifact/shared_module.ts";
import type { CodeDescription } from "../link/code_description.ts";
import { CodeImage, placeImage } from "../link/image.ts";
import { HotFunctions } from "./hot_functions.ts";
import { LoopEntries, writeJumps } from "./loop_entries.ts";
import { type Batch, JOB, type OptimizedCode, type OptimizeJob, RequestedJob } from "../background/optimize_job.ts";
import { type CodeJob, PlacingJob } from "../background/placing_job.ts";
import { CompiledModule } from "../runtime/code/compiled_module.ts";
import { PollSteps } from "./poll_steps.ts";
import { dropReplaced, replaceCode, replaceFunctions } from "../runtime/instance/replace_code.ts";
import type { Store } from "../runtime/instance/store.ts";
import type { PendingWork } from "../runtime/thread/attention.ts";

/**
 * Milliseconds for which a module runs before another thread compiles it, by the readiness of that: about as long as
 * the start takes this thread, so that a program which ends right afterwards has taken twice its time at most.
 */
const START_MS = {
  /** Starting a Worker takes tens of milliseconds, and optimized code arrives a few hundred milliseconds later. */
  absent: 200,
  /** There is a Worker, whose compiler is loaded. */
  worker: 30,
  /** A native thread starts at once, but its compiler must be loaded first. */
  native: 30,
  /** That is done. */
  loaded: 10,
} as const;
/** The same per byte of the bodies for native threads: this one describes them and appends their code. */
const NATIVE_MS_PER_BYTE = 0.00005;
/** Milliseconds between two looks whether a thread has been started meanwhile. */
const WARMING_LOOK_MS = 30;
/**
 * The longest time in milliseconds that starting a thread is expected to take. A call whose limit is nearer would miss
 * it, so the event loop starts the thread.
 */
const THREAD_START_MS = 250;
/** Milliseconds for which a program may run without returning to its event loop before a call starts the thread. */
const LONGEST_WAIT_MS = 5000;
/** Milliseconds between two checks whether frames of replaced code are left, where loops are not entered. */
const GIVE_BACK_MS = 100;
/** Functions whose pages are given back at once: some 20 microseconds each. */
const GIVEN_BACK_AT_ONCE = 32;
/**
 * Milliseconds for which a frame must be in a loop after another realm's thread has optimized its module, before this
 * realm starts a thread of its own for the loop.
 */
const OWN_THREAD_MS = 300;
/** Milliseconds between two checks of a job in progress. */
const LOOK_MS = 2;
/** Bytes of bodies from which on hot functions are compiled first. */
const BATCHES_FROM = 100_000;
/** Bytes of the bodies that a batch has at most, unless that of its hottest function has more. */
const MAX_BATCH_BYTES = 8_000;
/** The maximum number of batches of a module. */
const MAX_BATCHES = 4;
/** Milliseconds between two samples of the running functions, which take some ten microseconds each. */
const SAMPLE_MS = 2;
/** The same as a multiple of the time that a sample took. */
const SAMPLE_PAUSE = 50;
/** The weight of the samples that makes a function hot, at first and after a batch. */
const HOT_AT_FIRST = 3;
const HOT_LATER = 8;
/**
 * The number of samples before the first batch, and the milliseconds for which the module runs longer at most until
 * there are so many: on a busy machine, it has hardly run in START_MS.
 */
const FIRST_SAMPLES = 10;
const FIRST_SAMPLES_MS = 400;
/** Milliseconds for which a module runs after a batch before its samples show what is hot now. */
const BATCH_PAUSE_MS = 30;
/**
 * Without a helper thread: the time in milliseconds, per byte of the module, for which baseline code must have run
 * before the optimizing compiler compiles the module on this thread. The JavaScript engine has not optimized the
 * compiler itself at that point.
 */
const MS_PER_BYTE_WITHOUT_THREAD = 0.05;

/** Milliseconds up to a switch to optimized code. */
interface MoveTimes {
  /** From the request. */
  readonly ms: number;
  /** From the first instance. */
  readonly afterMs: number;
}

/** The loop or the functions that a job compiles; the whole module if neither is named. */
type ModulePart = Pick<OptimizeJob, "loop" | "batch">;

/** The parts of an engine that tiering up uses. */
export interface OptimizingCompiler {
  readonly target: Target;
  /** Options of the optimized code. */
  readonly options: Omit<CompileOptions, "target" | "share" | "tier" | "note">;
  /**
   * Sends a job to a helper thread, which is kept alive while the job is in progress. Returns false if no thread is
   * available.
   */
  send(message: unknown, isUnderWay: () => boolean): boolean;
  /**
   * Lets a native thread compile the module, or one of its loops, if there is the compiler as machine code;
   * `otherwise` starts the job again if that fails. Undefined if it cannot be started, or does not pay.
   */
  startNative?(
    loop: LoopPlace | undefined,
    now: number,
    otherwise: () => CodeJob | undefined,
  ): CodeJob | undefined;
  /** What another thread needs before it compiles: see START_MS. */
  readiness(): keyof typeof START_MS;
  /** Lets the event loop call `action` soon, unless the process ends before. */
  callSoon(action: () => void): void;
  /** Starts the compilation with the first instance: the module has run before, without being optimized. */
  readonly startsAtOnce?: boolean;
  /** Number of calls after which the module is compiled on this thread, instead of after a time: for tests. */
  readonly afterCalls?: number;
  /**
   * Number of loop turns after which the module is compiled on this thread, and after each of which a frame continues
   * in optimized code: for tests. Every poll of the thread parks and is counted.
   */
  readonly afterIterations?: number;
  /**
   * Whether other realms may receive the baseline code, which does not contain addresses then; or the job of another
   * realm from which this one received it.
   */
  readonly shared?: boolean | OptimizeJob;
  /** Whether the baseline code contains addresses, so that other realms compile their own. */
  readonly isBound?: boolean;
  /** Whether all code is to be proven, so that other realms receive the code that was. */
  readonly isProven?: boolean;
  /** Whether hot functions may be compiled before the module. */
  readonly hasBatches?: boolean;
  /** Compiles a batch on this thread, with `afterCalls` or `afterIterations`, before the module: for tests. */
  compileBatchHere?(batch: Batch): BatchCode;
  /** Compiles the module on this thread. */
  compileHere(): CompiledCode;
  /** Compiles the rest of a function from a loop on, on this thread. Absent for code without polls. */
  compileLoopHere?(place: LoopPlace): LoopEntryCode | undefined;
  /** Called when optimized code of some functions, or of a loop, is used. */
  movedUp?(part: CompiledModule, times: MoveTimes & { readonly part: "functions" | "loop" }): void;
  /** Called when the optimized module exists. */
  finished?(compiled: CompiledModule, statistics: Readonly<Record<string, number>>, times: MoveTimes): void;
}

const STAGE = { IDLE: 0, WARMING: 1, BATCHES: 2, COMPILING: 3, DONE: 4 } as const;

/** Whether the event loop is to start the thread, or has tried to. */
const EVENT_LOOP = { UNASKED: 0, ASKED: 1, TRIED: 2 } as const;

/** Tier-ups in progress by their modules, baseline and optimized, for as long as one of these can run. */
const IN_PROGRESS = new WeakMap<CompiledModule, TierUp>();

/** The part of a tier-up that ends with it: the module's or a batch's job in progress. */
interface Request {
  job: CodeJob | undefined;
}

const GONE = new FinalizationRegistry<Request>(({ job }) => job?.abandon());

/** The work of a tier-up, while its module exists. */
class TierUpWork implements PendingWork {
  readonly #tierUp: WeakRef<TierUp>;
  readonly #steps: PollSteps | undefined;
  readonly eager: boolean;

  constructor(tierUp: TierUp, steps: PollSteps | undefined) {
    this.#tierUp = new WeakRef(tierUp);
    this.#steps = steps;
    this.eager = tierUp.eager;
  }

  advance(now: number, atPoll?: boolean): number | undefined {
    const tierUp = this.#tierUp.deref();
    if (tierUp === undefined) this.#steps?.open(); // otherwise, polls of other modules would go on to fault
    return tierUp?.advance(now, atPoll);
  }
}

export class TierUp {
  readonly #store: Store;
  readonly #baseline: CompiledModule;
  readonly #replaceable: Uint8Array;
  readonly #compiler: OptimizingCompiler;
  readonly #bodyBytes: number;
  #stage: number = STAGE.IDLE;
  #since = 0;
  #calls = 0;
  #turns = 0;
  #isCompiledHere = false;
  /** With `afterIterations`. */
  readonly #steps: PollSteps | undefined;
  #eventLoop: number = EVENT_LOOP.UNASKED;
  readonly #request: Request = { job: undefined };
  #binary: SharedArrayBuffer | undefined;
  /** The job that compiles the module for all realms that share it. */
  #sharedJob: RequestedJob | undefined;
  /** Whether another realm has sent the shared job. */
  #isFollower = false;
  #loops: LoopEntries | undefined;
  /** Present while batches may be compiled. */
  #hot: HotFunctions | undefined;
  /** The number of batches so far. */
  #batches = 0;
  /** The best code so far of functions in batches. */
  readonly #addresses = new Map<number, number>();
  #nextSample = 0;
  /** The time until which samples are taken after a batch. */
  #samplesUntil = 0;
  /** Large baseline functions that begin with a jump to optimized code, whose pages are to be given back. */
  #replaced: readonly number[] = [];
  #givenBack = 0;
  #optimized: CompiledModule | undefined;
  #statistics: Readonly<Record<string, number>> | undefined;

  constructor(store: Store, baseline: CompiledModule, replaceable: Uint8Array, compiler: OptimizingCompiler) {
    this.#store = store;
    this.#baseline = baseline;
    this.#replaceable = replaceable;
    this.#compiler = compiler;
    this.#bodyBytes = bodyBytes(baseline.valid.funcs);
    if (compiler.afterIterations !== undefined) this.#steps = new PollSteps(store.thread, compiler.target.loopEntry!);
    if (typeof compiler.shared === "object") {
      this.#sharedJob = new RequestedJob(compiler.shared);
      this.#binary = compiler.shared.binary;
    }
  }

  /**
   * The parts of a token by which another realm uses baseline code, this or its own; undefined once the code is final.
   */
  get shareable(): BaselineSharing | undefined {
    const { shared = false, isBound = false, isProven = false, afterCalls } = this.#compiler;
    if (this.#stage === STAGE.DONE || isProven) return undefined;
    this.#sharedJob ??= this.#makeJob(true);
    const replaceable = isBound || shared === false ? undefined : this.#replaceable;
    return { replaceable, job: this.#sharedJob.message, afterCalls };
  }

  /** The module with the best code so far. */
  get current(): CompiledModule {
    return this.#optimized ?? this.#baseline;
  }

  /** Frames that continue in optimized code at a loop header, so far. */
  get loopsEntered(): number {
    return this.#loops?.entered ?? 0;
  }

  /** Bytes of baseline code that were given back. */
  get givenBack(): number {
    return this.#givenBack;
  }

  /** Applications by optimization key, once there is optimized code. */
  get statistics(): Readonly<Record<string, number>> | undefined {
    return this.#statistics;
  }

  /** Called before an instance is created. */
  begin(): void {
    if (this.#stage !== STAGE.IDLE) return;
    this.#stage = STAGE.WARMING;
    this.#since = now();
    IN_PROGRESS.set(this.#baseline, this);
    GONE.register(this, this.#request);
    if (this.#mayHaveBatches()) this.#hot = new HotFunctions(this.#store.thread, this.#baseline.image);
    this.#store.thread.attention.addWork(new TierUpWork(this, this.#steps));
  }

  /**
   * Code that other realms use is not changed; deterministic code counts the depth of calls by the module's calls;
   * native threads take as long for the modules that they compile as a Worker for a batch.
   */
  #mayHaveBatches(): boolean {
    const { hasBatches = false, shared = false, startsAtOnce = false } = this.#compiler;
    const { settings: { deterministic } } = this.#baseline;
    if (!hasBatches || shared !== false || startsAtOnce || deterministic || this.#isNative) return false;
    return this.#bodyBytes >= BATCHES_FROM;
  }

  get eager(): boolean {
    return this.#compiler.afterCalls !== undefined || this.#compiler.afterIterations !== undefined;
  }

  /** Implements PendingWork. */
  advance(now: number, atPoll = false): number | undefined {
    const next = this.#advance(now, atPoll);
    if (next === undefined) this.#release();
    return next;
  }

  /** Leaves the lifetime of the modules to their instances. */
  #release(): void {
    IN_PROGRESS.delete(this.#baseline);
    if (this.#optimized !== undefined) IN_PROGRESS.delete(this.#optimized);
  }

  #advance(now: number, atPoll: boolean): number | undefined {
    const { afterCalls, afterIterations } = this.#compiler;
    if (afterIterations !== undefined) return this.#countIteration(afterIterations, this.#steps!, atPoll);
    if (afterCalls !== undefined) return this.#countCall(afterCalls);
    if (atPoll && this.#hot !== undefined) this.#sample(now, this.#hot);
    const next = this.#step(now);
    if (this.#stage === STAGE.DONE) return this.#enterLoops(now, atPoll);
    return Math.min(next ?? Infinity, this.#loops?.advance(now, atPoll) ?? Infinity);
  }

  /** Samples at most the fiftieth part of the time. */
  #sample(time: number, hot: HotFunctions): void {
    if (time < this.#nextSample) return;
    hot.sample();
    const end = now();
    this.#nextSample = end + (end - time) * SAMPLE_PAUSE;
  }

  #step(now: number): number | undefined {
    switch (this.#stage) {
      case STAGE.WARMING:
        return this.#warmUp(now);
      case STAGE.BATCHES:
        return this.#followBatch(now);
      case STAGE.COMPILING:
        return this.#look(now);
      default:
        return undefined;
    }
  }

  /** Compiles the optimized code on this thread and switches to it now, for callers that need optimized code. */
  complete(): CompiledModule {
    // Code that leads to batches is neither shared, stored nor used with other tables.
    const isFinal = this.#stage === STAGE.DONE && (this.#optimized !== undefined || this.#batches === 0);
    if (!isFinal) {
      this.#abandon();
      this.#compileHere();
      this.#giveBack(0, Infinity);
    }
    return this.current;
  }

  /**
   * Starts the compilation when it is due; looks again before it is, since a thread may have been started meanwhile.
   */
  #warmUp(now: number): number | undefined {
    const { startsAtOnce = false } = this.#compiler;
    const wants = this.#hot !== undefined && this.#hot.samples < FIRST_SAMPLES ? FIRST_SAMPLES_MS : 0;
    const due = this.#since + wants + (startsAtOnce ? 0 : this.#startMs());
    if (now < due) return Math.min(due, now + (this.#hot === undefined ? WARMING_LOOK_MS : SAMPLE_MS));
    if (!this.#delaysCall(now)) return this.#start(now);
    this.#askEventLoop();
    return now + WARMING_LOOK_MS;
  }

  /** Whether a native thread will compile. */
  get #isNative(): boolean {
    const readiness = this.#compiler.readiness();
    return readiness === "native" || readiness === "loaded";
  }

  #startMs(): number {
    const ms = START_MS[this.#compiler.readiness()];
    return this.#isNative ? ms + this.#bodyBytes * NATIVE_MS_PER_BYTE : ms;
  }

  /** Whether a thread would have to be started, and the call in progress would end too late because of that. */
  #delaysCall(now: number): boolean {
    const readiness = this.#compiler.readiness();
    if (readiness === "worker" || readiness === "loaded" || this.#hasWaited(now)) return false;
    return this.#store.thread.limits.nextLimit() - now < THREAD_START_MS;
  }

  #hasWaited(now: number): boolean {
    return this.#eventLoop === EVENT_LOOP.TRIED || now >= this.#since + LONGEST_WAIT_MS;
  }

  /** Lets the event loop start the compilation. It does not keep the module alive. */
  #askEventLoop(): void {
    if (this.#eventLoop !== EVENT_LOOP.UNASKED) return;
    this.#eventLoop = EVENT_LOOP.ASKED;
    const tierUp = new WeakRef(this);
    this.#compiler.callSoon(() => tierUp.deref()?.startFromEventLoop(now()));
  }

  /** Waits for preempted calls, which may have a deadline as well. */
  startFromEventLoop(now: number): void {
    if (this.#stage !== STAGE.WARMING) return;
    this.#eventLoop = EVENT_LOOP.UNASKED;
    if (this.#store.thread.attention.preempted > 0 && !this.#hasWaited(now)) return;
    this.#eventLoop = EVENT_LOOP.TRIED;
    try {
      this.#start(now);
    } catch {
      this.#stage = STAGE.DONE; // there is no memory for a job: baseline code stays
    }
  }

  #countCall(afterCalls: number): number | undefined {
    if (this.#stage === STAGE.WARMING && ++this.#calls > afterCalls && !this.#tryBatchHere()) this.#tryHere();
    return this.#stage === STAGE.DONE ? this.#giveBack(Infinity) : Infinity;
  }

  /** Lets frames that are in loops continue in optimized code, while there are any. */
  #enterLoops(now: number, atPoll: boolean): number | undefined {
    const next = this.#loops?.advance(now, atPoll);
    if (next !== undefined) return next;
    this.#binary = undefined;
    return this.#giveBack(now);
  }

  /** Gives back the memory of `most` replaced functions, unless there are frames. Returns the time of the next call. */
  #giveBack(now: number, most = GIVEN_BACK_AT_ONCE): number | undefined {
    if (this.#replaced.length === 0) return undefined;
    const { base, size } = this.#baseline.image;
    if (this.#store.thread.stack.holdsAddressIn(base, size)) return now + GIVE_BACK_MS;
    const dropped = dropReplaced(this.#store, this.#baseline, this.#replaced.slice(0, most));
    this.#givenBack += dropped;
    this.#replaced = dropped === 0 ? [] : this.#replaced.slice(most);
    return this.#replaced.length === 0 ? undefined : now + LOOK_MS;
  }

  /**
   * Switches to optimized code at every (`afterIterations` + 1)-th poll: the module first, then the frame that polls.
   */
  #countIteration(afterIterations: number, steps: PollSteps, atPoll: boolean): number | undefined {
    const { thread } = this.#store;
    if (atPoll && ++this.#turns % (afterIterations + 1) === 0) {
      if (this.#stage === STAGE.WARMING && !this.#tryBatchHere()) this.#tryHere();
      this.#loops?.enterLoop(0);
    }
    if (atPoll) steps.step();
    if (this.#stage === STAGE.DONE && thread.depth === 0 && !thread.stack.hasSavedFrames) {
      steps.open();
      return this.#giveBack(Infinity);
    }
    steps.close();
    return Infinity;
  }

  #start(now: number): number | undefined {
    if (this.#sendBatch(now, HOT_AT_FIRST)) return now + SAMPLE_MS;
    return this.#startWhole(now);
  }

  #startWhole(now: number): number | undefined {
    this.#hot = undefined;
    const job = this.#startJob(now);
    if (job === undefined) {
      const { byteLength } = this.#binary ?? this.#baseline.valid.bytes;
      const due = this.#since + byteLength * MS_PER_BYTE_WITHOUT_THREAD;
      return now < due ? due : this.#tryHere();
    }
    this.#request.job = job;
    this.#stage = STAGE.COMPILING;
    return now + LOOK_MS;
  }

  /** Sends the hottest functions to a helper thread; false if none is hot enough or there is no thread. */
  #sendBatch(now: number, least: number): boolean {
    const { funcs } = this.#baseline.valid;
    let left = MAX_BATCH_BYTES;
    const wanted = (this.#hot?.take(least) ?? []).filter((index) => {
      const { length } = funcs[index].body.bytes;
      if (this.#replaceable[index] === 0 || this.#addresses.has(index)) return false;
      if (length > left && left < MAX_BATCH_BYTES) return false;
      left -= length;
      return true;
    });
    if (wanted.length === 0 || this.#batches === MAX_BATCHES) return false;
    const job = this.#startJob(now, { batch: { wanted, mostBytes: MAX_BATCH_BYTES } });
    if (job === undefined) return false;
    this.#batches++;
    this.#request.job = job;
    this.#stage = STAGE.BATCHES;
    return true;
  }

  /** Waits for a batch, then for samples; then sends another batch or the module. */
  #followBatch(now: number): number | undefined {
    const { job } = this.#request;
    const code = job?.advance(now);
    if (code === "waiting") return now + LOOK_MS;
    this.#request.job = undefined;
    if (code === "failed") return this.#startWhole(now);
    if (job !== undefined && code !== undefined) {
      const image = new CodeImage(code.base, code.codeBytes, code.tables);
      this.#adoptBatch(code.description, code.jumps, image, job.since);
      this.#hot?.take(0);
      this.#samplesUntil = now + BATCH_PAUSE_MS;
    }
    if (now < this.#samplesUntil) return now + SAMPLE_MS;
    return this.#sendBatch(now, HOT_LATER) ? now + LOOK_MS : this.#startWhole(now);
  }

  /** For tests: every second function, if there was no batch yet. */
  #tryBatchHere(): boolean {
    const { compileBatchHere, shared = false } = this.#compiler;
    if (compileBatchHere === undefined || this.#batches > 0 || shared !== false) return false;
    this.#batches++;
    this.#calls = 0;
    this.#isCompiledHere = true;
    const wanted = [...this.#replaceable.keys()].filter((index) => (index & 1) === 0);
    const since = now();
    try {
      const code = compileBatchHere({ wanted, mostBytes: 0 });
      this.#adoptBatch(code, code.jumps, placeImage(this.#store.thread.arena, code.bytes, code.tables), since);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
    }
    return true;
  }

  /** Lets the functions of a batch run its code, and frames in loops continue in optimized code from now on. */
  #adoptBatch(description: CodeDescription, jumps: readonly number[], image: CodeImage, since: number): void {
    const baseline = this.#baseline;
    const { thread } = this.#store;
    const { target } = this.#compiler;
    const isUsable = !baseline.references.isShared &&
      writeJumps(thread.arena, image, jumps, target, (index) => this.#addressOf(index));
    if (!isUsable) return thread.arena.release(image.base, image.size);
    const part = new CompiledModule(thread, baseline.valid, { ...description, image, sameAs: baseline });
    part.internal = baseline.internal;
    this.#store.addModule(part);
    try {
      replaceFunctions(this.#store, baseline, part, this.#replaceable, target.writeEntryJump);
    } catch (error) {
      if (error instanceof RangeError) return; // the system refuses access: the baseline code stays
      throw error;
    }
    const { functionStart } = image.tables;
    functionStart.forEach((start, index) => {
      if (start >= 0) this.#addresses.set(index, image.base + start);
    });
    this.#followLoops();
    this.#compiler.movedUp?.(part, { part: "functions", ...this.#timesSince(since) });
  }

  #timesSince(since: number): MoveTimes {
    const time = now();
    return { ms: time - since, afterMs: time - this.#since };
  }

  /** The best code so far of a defined function. */
  #addressOf(index: number): number {
    const { base, tables } = this.current.image;
    const inBatch = this.#optimized === undefined ? this.#addresses.get(index) : undefined;
    return inBatch ?? base + tables.functionStart[index];
  }

  #followLoops(): void {
    const baseline = this.#baseline;
    this.#loops ??= LoopEntries.of(this.#store, baseline, {
      target: this.#compiler.target,
      binary: this.#binary === undefined ? baseline.valid.bytes : new Uint8Array(this.#binary),
      notBefore: this.#isFollower && this.#compiler.readiness() === "absent" ? now() + OWN_THREAD_MS : 0,
      compile: (place) => this.#compileLoop(place),
      addressOf: (index) => this.#addressOf(index),
      isModuleDone: () => this.#optimized !== undefined || this.#isCompiledHere,
      current: () => this.current,
      movedUp: (part, since) => this.#compiler.movedUp?.(part, { part: "loop", ...this.#timesSince(since) }),
    });
  }

  /** Lets another thread compile the module, or a part of it; undefined if there is none. */
  #startJob(now: number, part?: ModulePart): CodeJob | undefined {
    const send = () => {
      const job = this.#send(part);
      return job && new PlacingJob(job, this.#store.thread.arena, now);
    };
    // Other realms get the code that a helper thread leaves in shared memory.
    if (this.#sharedJob !== undefined || part?.batch !== undefined) return send();
    return this.#compiler.startNative?.(part?.loop, now, send) ?? send();
  }

  /**
   * Sends the module, or a part of it, to a helper thread, unless another realm has sent the module; undefined if there
   * is no thread.
   */
  #send(part?: ModulePart): RequestedJob | undefined {
    if (part === undefined && this.#sharedJob !== undefined) return this.#sendShared(this.#sharedJob);
    const job = this.#makeJob(false, part);
    return this.#sendTo(job) ? job : undefined;
  }

  #sendShared(job: RequestedJob): RequestedJob | undefined {
    this.#isFollower = !job.claim();
    if (this.#isFollower || this.#sendTo(job)) return job;
    job.disclaim();
    return undefined;
  }

  #sendTo(job: RequestedJob): boolean {
    const isUnderWay = () => job.state === JOB.RUNNING || job.state === JOB.ALLOCATED;
    return this.#compiler.send(job.message, isUnderWay);
  }

  #makeJob(isShared: boolean, part?: ModulePart): RequestedJob {
    const { target, options: { cpu, ...options } } = this.#compiler;
    const { pollPage } = this.#store.thread.arena;
    const job = RequestedJob.make(
      { target: target.name, options, cpu: [...cpu], pollPage, ...part },
      this.#binary ?? this.#baseline.valid.bytes,
      isShared,
    );
    this.#binary = job.message.binary;
    return job;
  }

  #look(now: number): number | undefined {
    const { job } = this.#request;
    if (job === undefined) return this.#startWhole(now); // compiling here, for `complete`, has failed
    const code = job.advance(now);
    if (code === "waiting") return now + LOOK_MS;
    if (code === "failed") this.#stage = STAGE.DONE;
    else {
      const image = new CodeImage(code.base, code.codeBytes, code.tables);
      this.#adopt(code.description, image, code.statistics, job.since);
    }
    return undefined;
  }

  /**
   * Leaves the module with its baseline code where there is no room for more: results do not depend on it. Tests see
   * other errors.
   */
  #tryHere(): undefined {
    try {
      this.#compileHere();
    } catch (error) {
      if (this.eager && !(error instanceof RangeError)) throw error;
      this.#stage = STAGE.DONE;
    }
  }

  #compileHere(): void {
    this.#isCompiledHere = true;
    const since = now();
    const code = this.#compiler.compileHere();
    this.#adopt(code, placeImage(this.#store.thread.arena, code.bytes, code.tables), code.statistics, since);
  }

  /** Compiles a loop where the module was compiled. */
  #compileLoop(loop: LoopPlace): CodeJob | LoopEntryCode | undefined {
    return this.#isCompiledHere ? this.#compiler.compileLoopHere?.(loop) : this.#startJob(now(), { loop });
  }

  #adopt(
    description: OptimizedCode["description"],
    image: CodeImage,
    statistics: Readonly<Record<string, number>>,
    since: number,
  ): void {
    const baseline = this.#baseline;
    const { thread } = this.#store;
    const optimized = new CompiledModule(thread, baseline.valid, { ...description, image, sameAs: baseline });
    optimized.internal = baseline.internal;
    this.#store.addModule(optimized);
    const { writeEntryJump } = this.#compiler.target;
    this.#replaced = replaceCode(this.#store, baseline, optimized, this.#replaceable, writeEntryJump);
    this.#optimized = optimized;
    this.#statistics = statistics;
    this.#stage = STAGE.DONE;
    this.#request.job = undefined;
    IN_PROGRESS.set(optimized, this);
    this.#hot = undefined;
    this.#followLoops();
    this.#compiler.finished?.(optimized, statistics, this.#timesSince(since));
  }

  #abandon(): void {
    this.#request.job?.abandon();
    this.#request.job = undefined;
  }
}
