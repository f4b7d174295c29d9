/**
 * The times at which code that runs on a thread is interrupted. In: deadlines of calls and of other work, and the time
 * at which pending work is to advance (attention.ts). Out: the watchdog, armed for the earliest of them. All times are
 * milliseconds on the clock of performance.now(), except those of the thread's processor time.
 *
 * Invariant: polls fault no later than the first limit. A poll that faults too early only sets the time again.
 */
import { now } from "../../host/clocks.ts";
import { Watchdog, type WatchdogCalls } from "../../host/code/watchdog.ts";
import type { Host } from "../../host/host.ts";
import type { CodeArena } from "../../host/memory/code_arena.ts";
import { threadClock } from "../../host/thread_clock.ts";

/** The shortest delay before processor time is read again, in milliseconds. */
const MIN_WATCH_MS = 0.1;

/** The limits of the code that runs on one thread. */
export class ThreadLimits {
  /** The clock of limits and of pending work, which tests replace. */
  clock: () => number = now;
  /** The time at which the running call is interrupted. */
  deadline = Infinity;
  /** The processor time, on the clock of `processorNow`, at which it is interrupted. */
  processorDeadline = Infinity;
  /** The deadline of the work that the running call belongs to, besides those of calls. */
  workDeadline = Infinity;
  /**
   * While set, it is asked for that deadline at each call from JavaScript (Attention.limitWork); it throws if the work
   * may run no more code.
   */
  askLimit: (() => number) | undefined;
  /** The time at which pending work is to advance. */
  workDue = Infinity;
  #watched = Infinity;
  #watchdog: Watchdog | undefined;
  #processorClock: (() => number) | undefined;
  readonly #host: Host;
  readonly #arena: CodeArena;
  readonly #calls: WatchdogCalls | undefined;

  /** `arena`: where the polls' page is; `calls`: the routines of the watchdog, undefined if the system has none. */
  constructor(host: Host, arena: CodeArena, calls: WatchdogCalls | undefined) {
    this.#host = host;
    this.#arena = arena;
    this.#calls = calls;
  }

  /** The deadline of the work that JavaScript does now; throws if it may run no more code. */
  askWork(): number {
    return this.askLimit?.() ?? Infinity;
  }

  /** Bounds the outermost call, which begins, by the deadline of its work. */
  enterWork(): void {
    if (this.askLimit === undefined) return;
    this.workDeadline = this.askLimit();
    if (this.workDeadline < this.#watched) this.watch(this.nextLimit());
  }

  /** The time at which running code is interrupted: the deadline of the call or of its work. */
  get interruption(): number {
    return Math.min(this.deadline, this.workDeadline);
  }

  /** The time from which polls fault; Infinity for never. */
  get watched(): number {
    return this.#watched;
  }

  /** The processor time of this thread in milliseconds. */
  processorNow(): number {
    this.#processorClock ??= threadClock(this.#host);
    return this.#processorClock();
  }

  /** Whether the running call has used up its processor time. */
  get processorTimeIsUp(): boolean {
    return this.processorDeadline !== Infinity && this.processorNow() >= this.processorDeadline;
  }

  /**
   * The earliest time at which a limit of the running call can be reached. Processor time passes at most as fast as the
   * clock, so a poll at this time is never too late; if it is too early, it is repeated.
   */
  nextLimit(): number {
    if (this.processorDeadline === Infinity) return this.interruption;
    const left = Math.max(this.processorDeadline - this.processorNow(), MIN_WATCH_MS);
    return Math.min(this.interruption, this.clock() + left);
  }

  /**
   * Makes polls fault from time `at` on, or from the time at which pending work is to advance, if that is earlier.
   * Throws an Error if deadlines are not supported.
   */
  watch(at: number): void {
    if (this.#watched !== Infinity) {
      this.#watched = Infinity;
      this.#watchdog!.disarm();
    }
    const first = Math.min(at, this.workDue);
    if (first === Infinity) return;
    const watchdog = this.#watchdog ??= Watchdog.start(this.#host, this.#arena, this.#calls);
    this.#watched = first;
    watchdog.arm(first - this.clock());
  }
}
