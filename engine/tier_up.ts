/**
 * Tier-up: a module starts with baseline code; once it has run for a while, a helper thread compiles it with the
 * optimizing compiler, and the running program switches to that code. In: a module with baseline code, and the options
 * of its optimized code. Out: the compiled module to use now. Invariant: results do not depend on when, or whether, the
 * switch happens.
 *
 *     IDLE ── first instance ──▶ WARMING ── it has run for START_MS ──▶ COMPILING ──▶ DONE
 *                                                └─ no thread: when enough time was spent ──▶ compiled here ──▶ DONE
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
import { now } from "./host/clocks.ts";
import type { Target } from "./codegen/target.ts";
import type { CompiledCode, CompileOptions, LoopEntryCode, LoopPlace } from "./compile.ts";
import type { BaselineSharing } from "./artifact/shared_module.ts";
import { CodeImage, placeImage } from "./link/image.ts";
import { LoopEntries } from "./loop_entries.ts";
import { JOB, type OptimizedCode, type OptimizeJob, RequestedJob } from "./parallel/optimize_job.ts";
import { PlacingJob } from "./parallel/placing_job.ts";
import { CompiledModule } from "./runtime/code/compiled_module.ts";
import { PollSteps } from "./poll_steps.ts";
import { dropReplaced, replaceCode } from "./runtime/instance/replace_code.ts";
import type { Store } from "./runtime/instance/store.ts";
import type { PendingWork } from "./runtime/thread/guest_thread.ts";

/**
 * Milliseconds for which a module runs before a thread compiles it. Starting the thread costs this one tens of
 * milliseconds, and optimized code arrives a few hundred milliseconds later: a program that has run for this long is
 * likely to run long enough to gain from it.
 */
const START_MS = 200;
/** The same while a thread is already there, whose compiler is loaded. */
const READY_START_MS = 30;
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
/**
 * Without a helper thread: the time in milliseconds, per byte of the module, for which baseline code must have run
 * before the optimizing compiler compiles the module on this thread. The JavaScript engine has not optimized the
 * compiler itself at that point.
 */
const MS_PER_BYTE_WITHOUT_THREAD = 0.05;

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
  /** True if a helper thread is running. */
  isReady(): boolean;
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
  readonly afterTurns?: number;
  /**
   * Whether other realms may receive the baseline code, which does not contain addresses then; or the job of another
   * realm from which this one received it.
   */
  readonly shared?: boolean | OptimizeJob;
  /** Compiles the module on this thread. */
  compileHere(): CompiledCode;
  /** Compiles the rest of a function from a loop on, on this thread. Absent for code without polls. */
  compileLoopHere?(place: LoopPlace): LoopEntryCode | undefined;
  /** Called when the optimized module exists. */
  finished?(compiled: CompiledModule, statistics: Readonly<Record<string, number>>): void;
}

const STAGE = { IDLE: 0, WARMING: 1, COMPILING: 2, DONE: 3 } as const;

/** Whether the event loop is to start the thread, or has tried to. */
const EVENT_LOOP = { UNASKED: 0, ASKED: 1, TRIED: 2 } as const;

/** Tier-ups in progress by their modules, baseline and optimized, for as long as one of these can run. */
const IN_PROGRESS = new WeakMap<CompiledModule, TierUp>();

/** The part of a tier-up that ends with it. */
interface Request {
  job: PlacingJob | undefined;
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
  #stage: number = STAGE.IDLE;
  #since = 0;
  #calls = 0;
  #turns = 0;
  #isCompiledHere = false;
  /** With `afterTurns`. */
  readonly #steps: PollSteps | undefined;
  #eventLoop: number = EVENT_LOOP.UNASKED;
  readonly #request: Request = { job: undefined };
  #binary: SharedArrayBuffer | undefined;
  /** The job that compiles the module for all realms that share it. */
  #sharedJob: RequestedJob | undefined;
  /** Whether another realm has sent the shared job. */
  #isFollower = false;
  #loops: LoopEntries | undefined;
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
    if (compiler.afterTurns !== undefined) this.#steps = new PollSteps(store.thread, compiler.target.loopEntry!);
    if (typeof compiler.shared === "object") {
      this.#sharedJob = new RequestedJob(compiler.shared);
      this.#binary = compiler.shared.binary;
    }
  }

  /** The parts of a token by which another realm uses the baseline code; undefined once the code is final. */
  get shareable(): BaselineSharing | undefined {
    const { shared, afterCalls } = this.#compiler;
    if (shared !== true && typeof shared !== "object" || this.#stage === STAGE.DONE) return undefined;
    this.#sharedJob ??= this.#makeJob(true);
    return { replaceable: this.#replaceable, job: this.#sharedJob.message, afterCalls };
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
    this.#store.thread.addWork(new TierUpWork(this, this.#steps));
  }

  get eager(): boolean {
    return this.#compiler.afterCalls !== undefined || this.#compiler.afterTurns !== undefined;
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
    const { afterCalls, afterTurns } = this.#compiler;
    if (afterTurns !== undefined) return this.#countTurn(afterTurns, this.#steps!, atPoll);
    if (afterCalls !== undefined) return this.#countCall(afterCalls);
    const next = this.#stage === STAGE.WARMING
      ? this.#warmUp(now)
      : this.#stage === STAGE.COMPILING
      ? this.#look(now)
      : now;
    return this.#stage === STAGE.DONE ? this.#enterLoops(now, atPoll) : next;
  }

  /** Compiles the optimized code on this thread and switches to it now, for callers that need optimized code. */
  complete(): CompiledModule {
    if (this.#stage !== STAGE.DONE) {
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
    const { isReady, startsAtOnce = false } = this.#compiler;
    const due = this.#since + (startsAtOnce ? 0 : isReady() ? READY_START_MS : START_MS);
    if (now < due) return Math.min(due, now + READY_START_MS);
    if (!this.#delaysCall(now)) return this.#start(now);
    this.#askEventLoop();
    return now + READY_START_MS;
  }

  /** True if a thread would have to be started, and the call in progress would end too late because of that. */
  #delaysCall(now: number): boolean {
    if (this.#compiler.isReady() || this.#hasWaited(now)) return false;
    return this.#store.thread.nextLimit() - now < THREAD_START_MS;
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
    if (this.#store.thread.preempted > 0 && !this.#hasWaited(now)) return;
    this.#eventLoop = EVENT_LOOP.TRIED;
    try {
      this.#start(now);
    } catch {
      this.#stage = STAGE.DONE; // there is no memory for a job: baseline code stays
    }
  }

  #countCall(afterCalls: number): number | undefined {
    if (this.#stage === STAGE.WARMING && ++this.#calls > afterCalls) this.#tryHere();
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
    if (this.#store.thread.holdsAddressIn(base, size)) return now + GIVE_BACK_MS;
    const dropped = dropReplaced(this.#store, this.#baseline, this.#replaced.slice(0, most));
    this.#givenBack += dropped;
    this.#replaced = dropped === 0 ? [] : this.#replaced.slice(most);
    return this.#replaced.length === 0 ? undefined : now + LOOK_MS;
  }

  /** Switches to optimized code at every (`afterTurns` + 1)-th poll: the module first, then the frame that polls. */
  #countTurn(afterTurns: number, steps: PollSteps, atPoll: boolean): number | undefined {
    const { thread } = this.#store;
    if (atPoll && ++this.#turns % (afterTurns + 1) === 0) {
      if (this.#stage === STAGE.WARMING) this.#tryHere();
      this.#loops?.enterLoop(0);
    }
    if (atPoll) steps.step();
    if (this.#stage === STAGE.DONE && thread.depth === 0 && thread.suspended.size === 0) {
      steps.open();
      return this.#giveBack(Infinity);
    }
    steps.close();
    return Infinity;
  }

  #start(now: number): number | undefined {
    const job = this.#send();
    if (job === undefined) {
      const { byteLength } = this.#binary ?? this.#baseline.valid.bytes;
      const due = this.#since + byteLength * MS_PER_BYTE_WITHOUT_THREAD;
      return now < due ? due : this.#tryHere();
    }
    this.#request.job = new PlacingJob(job, this.#store.thread.arena, now);
    this.#stage = STAGE.COMPILING;
    return now + LOOK_MS;
  }

  /**
   * Sends the module, or one loop of it, to a helper thread, unless another realm has sent the module; undefined if
   * there is no thread.
   */
  #send(loop?: LoopPlace): RequestedJob | undefined {
    if (loop === undefined && this.#sharedJob !== undefined) return this.#sendShared(this.#sharedJob);
    const job = this.#makeJob(false, loop);
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

  #makeJob(isShared: boolean, loop?: LoopPlace): RequestedJob {
    const { target, options: { cpu, ...options } } = this.#compiler;
    const { pollPage } = this.#store.thread.arena;
    const job = RequestedJob.make(
      { target: target.name, options, cpu: [...cpu], pollPage, ...(loop === undefined ? {} : { loop }) },
      this.#binary ?? this.#baseline.valid.bytes,
      isShared,
    );
    this.#binary = job.message.binary;
    return job;
  }

  #look(now: number): number | undefined {
    const code = this.#request.job!.advance(now);
    if (code === "waiting") return now + LOOK_MS;
    if (code === "failed") this.#stage = STAGE.DONE;
    else this.#adopt(code.description, new CodeImage(code.base, code.codeBytes, code.tables), code.statistics);
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
    const code = this.#compiler.compileHere();
    this.#adopt(code, placeImage(this.#store.thread.arena, code.bytes, code.tables), code.statistics);
  }

  /** Compiles a loop where the module was compiled. */
  #compileLoop(place: LoopPlace): RequestedJob | LoopEntryCode | undefined {
    return this.#isCompiledHere ? this.#compiler.compileLoopHere?.(place) : this.#send(place);
  }

  #adopt(
    description: OptimizedCode["description"],
    image: CodeImage,
    statistics: Readonly<Record<string, number>>,
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
    this.#loops = LoopEntries.of(this.#store, baseline, optimized, {
      target: this.#compiler.target,
      binary: this.#binary === undefined ? baseline.valid.bytes : new Uint8Array(this.#binary),
      notBefore: this.#isFollower && !this.#compiler.isReady() ? now() + OWN_THREAD_MS : 0,
      compile: (place) => this.#compileLoop(place),
    });
    this.#compiler.finished?.(optimized, statistics);
  }

  #abandon(): void {
    this.#request.job?.abandon();
    this.#request.job = undefined;
  }
}
