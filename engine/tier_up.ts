/**
 * Tier-up: a module starts with baseline code; once it has run for a while, a helper thread compiles it with the
 * optimizing compiler, and the running program switches to that code. In: a module with baseline code, and the options
 * of its optimized code. Out: the compiled module to use now. Invariant: results do not depend on when, or whether, the
 * switch happens.
 *
 *     IDLE ── first instance ──▶ WARMING ── it has run for START_MS ──▶ COMPILING ──▶ PLACING ──▶ DONE
 *                                                └─ no thread: when enough time was spent ──▶ compiled here ──▶ DONE
 *
 * The module takes part in GuestThread's pending work: it advances at calls, host calls and polls.
 */
import type { Target } from "./codegen/target.ts";
import type { CompiledCode, CompileOptions } from "./compile.ts";
import { CodeImage, placeImage } from "./link/image.ts";
import { JOB, type OptimizedCode, RequestedJob } from "./parallel/optimize_job.ts";
import { CompiledModule } from "./runtime/code/compiled_module.ts";
import { replaceCode } from "./runtime/instance/replace_code.ts";
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
/** Milliseconds between two checks of a job in progress. */
const LOOK_MS = 2;
/** Milliseconds after which a job is abandoned: its thread is gone. */
const JOB_MS = 300_000;
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
  /** Number of calls after which the module is compiled on this thread, instead of after a time: for tests. */
  readonly afterCalls?: number;
  /** Compiles the module on this thread. */
  compileHere(): CompiledCode;
  /** Called when the optimized module exists. */
  finished?(compiled: CompiledModule, statistics: Readonly<Record<string, number>>): void;
}

const STAGE = { IDLE: 0, WARMING: 1, COMPILING: 2, PLACING: 3, DONE: 4 } as const;

export class TierUp implements PendingWork {
  readonly #store: Store;
  readonly #baseline: CompiledModule;
  readonly #replaceable: Uint8Array;
  readonly #compiler: OptimizingCompiler;
  #stage: number = STAGE.IDLE;
  #since = 0;
  #calls = 0;
  #job: RequestedJob | undefined;
  #code: OptimizedCode | undefined;
  #base = 0;
  #optimized: CompiledModule | undefined;
  #statistics: Readonly<Record<string, number>> | undefined;

  constructor(store: Store, baseline: CompiledModule, replaceable: Uint8Array, compiler: OptimizingCompiler) {
    this.#store = store;
    this.#baseline = baseline;
    this.#replaceable = replaceable;
    this.#compiler = compiler;
  }

  /** The module with the best code so far. */
  get current(): CompiledModule {
    return this.#optimized ?? this.#baseline;
  }

  /** Applications by optimization key, once there is optimized code. */
  get statistics(): Readonly<Record<string, number>> | undefined {
    return this.#statistics;
  }

  /** Called before an instance is created. */
  begin(): void {
    if (this.#stage !== STAGE.IDLE) return;
    this.#stage = STAGE.WARMING;
    this.#since = performance.now();
    this.#store.thread.addWork(this);
  }

  get eager(): boolean {
    return this.#compiler.afterCalls !== undefined;
  }

  advance(now: number): number | undefined {
    const { afterCalls } = this.#compiler;
    if (afterCalls !== undefined) return this.#countCall(afterCalls);
    switch (this.#stage) {
      case STAGE.WARMING:
        return this.#warmUp(now);
      case STAGE.COMPILING:
        return this.#look(now);
      case STAGE.PLACING:
        return this.#place(now);
      default:
        return undefined;
    }
  }

  /** Compiles the optimized code on this thread and switches to it now, for callers that need optimized code. */
  complete(): CompiledModule {
    if (this.#stage !== STAGE.DONE) {
      this.#abandon();
      this.#compileHere();
    }
    return this.current;
  }

  /**
   * Starts the compilation when it is due; looks again before it is, since a thread may have been started meanwhile.
   */
  #warmUp(now: number): number | undefined {
    const due = this.#since + (this.#compiler.isReady() ? READY_START_MS : START_MS);
    return now < due ? Math.min(due, now + READY_START_MS) : this.#start(now);
  }

  #countCall(afterCalls: number): number | undefined {
    if (this.#stage === STAGE.WARMING && ++this.#calls > afterCalls) this.#compileHere();
    return this.#stage === STAGE.DONE ? undefined : Infinity;
  }

  #start(now: number): number | undefined {
    const { target, options: { cpu, ...options }, send } = this.#compiler;
    const { valid } = this.#baseline;
    const { arena } = this.#store.thread;
    const job = new RequestedJob(
      { target: target.name, options, cpu: [...cpu], pollPage: arena.pollPage },
      valid.bytes,
    );
    const isUnderWay = () => job.state === JOB.RUNNING || job.state === JOB.ALLOCATED;
    if (!send(job.message, isUnderWay)) {
      const due = this.#since + valid.bytes.length * MS_PER_BYTE_WITHOUT_THREAD;
      return now < due ? due : this.#tryHere();
    }
    this.#job = job;
    this.#since = now;
    this.#stage = STAGE.COMPILING;
    return now + LOOK_MS;
  }

  /** Allocates space for the code once its size is known. */
  #look(now: number): number | undefined {
    const job = this.#job!;
    const { state } = job;
    if (state === JOB.FAILED || now > this.#since + JOB_MS) return this.#giveUp();
    if (state !== JOB.COMPILED) return now + LOOK_MS;
    this.#code = job.read();
    try {
      this.#base = this.#store.thread.arena.allocate(this.#code.codeBytes);
    } catch {
      return this.#giveUp();
    }
    job.allocate(this.#base);
    this.#stage = STAGE.PLACING;
    return now + LOOK_MS;
  }

  #place(now: number): number | undefined {
    const { state } = this.#job!;
    if (state === JOB.FAILED || now > this.#since + JOB_MS) return this.#giveUp();
    if (state !== JOB.PLACED) return now + LOOK_MS;
    const { description, tables, codeBytes, statistics } = this.#code!;
    this.#adopt(description, new CodeImage(this.#base, codeBytes, tables), statistics);
    return undefined;
  }

  /** Leaves the module with its baseline code where there is no room for more: results do not depend on it. */
  #tryHere(): undefined {
    try {
      this.#compileHere();
    } catch {
      this.#stage = STAGE.DONE;
    }
  }

  #compileHere(): void {
    const code = this.#compiler.compileHere();
    this.#adopt(code, placeImage(this.#store.thread.arena, code.bytes, code.tables), code.statistics);
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
    replaceCode(this.#store, baseline, optimized, this.#replaceable, this.#compiler.target.writeEntryJump);
    this.#optimized = optimized;
    this.#statistics = statistics;
    this.#stage = STAGE.DONE;
    this.#job = undefined;
    this.#code = undefined;
    this.#compiler.finished?.(optimized, statistics);
  }

  /** Leaves the module with its baseline code. An address that a worker may still write to is never reused. */
  #giveUp(): undefined {
    this.#abandon();
    this.#stage = STAGE.DONE;
  }

  #abandon(): void {
    const job = this.#job;
    this.#job = undefined;
    if (job === undefined || this.#stage !== STAGE.PLACING) return void job?.cancel();
    if (!job.cancel()) this.#store.thread.arena.release(this.#base, this.#code!.codeBytes);
  }
}
