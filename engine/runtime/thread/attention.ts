/**
 * What a thread has to do between two pieces of guest code. In: sweeps that are due, preempted calls, limits of work,
 * and pending work such as replacing code. Out: whether a call must stop for them, and pending work that advances.
 *
 *     call from JavaScript   isSet? ─▶ needsEntry? ─▶ Instance.enter ─▶ look ─▶ advance ─▶ ThreadLimits.watch
 *     host function          isSet? ─▶ needsEntry? ────────────────────▶ look ─▶ advance ─▶ ThreadLimits.watch
 *     poll that faulted      GuestThread.continueFromPoll ─────────────────────▶ advance ─▶ ThreadLimits.watch
 *
 * Calls read one flag, so they pay nothing while there is nothing to do. If pending work alone has the attention, most
 * calls are free and one of CALLS_PER_LOOK looks for it: reading the clock costs more than a call. Code that calls
 * nothing is stopped at a poll, when work is due.
 *
 * Invariant: work never waits longer than until it is due, or until the next look if nothing can make polls fault.
 */
import { deferRetirement } from "../memory/memory_range.ts";
import type { ContextArena } from "../memory/context_arena.ts";
import type { ThreadLimits } from "./thread_limits.ts";

/** Work on this thread that requires JavaScript to be in control, such as replacing code. */
export interface PendingWork {
  /**
   * Makes progress without blocking. `atPoll`: the innermost frame has parked at the poll that THREAD.TRAP_PC names.
   * Returns the time of the next call, on the clock of performance.now(); undefined if the work is finished.
   */
  advance(now: number, atPoll?: boolean): number | undefined;
  /** Whether the work must advance at every call from JavaScript. */
  readonly eager?: boolean;
}

/**
 * Number of calls between two advances of pending work, each of which reads the clock. It is doubled while the calls
 * take less than SHORT_LOOK_MS together, up to MAX_CALLS_PER_LOOK; polls show when a call takes longer than before.
 */
const CALLS_PER_LOOK = 32;
const MAX_CALLS_PER_LOOK = 512;
const SHORT_LOOK_MS = 0.05;

/** The reasons for which calls of one thread stop, and its pending work. */
export class Attention {
  /** Set if a sweep is due, a call is preempted, or work is pending. A call must then ask `needsEntry`. */
  isSet = false;
  readonly #limits: ThreadLimits;
  readonly #contexts: ContextArena;
  #sweepDue = false;
  #preempted = 0;
  readonly #pending = new Set<PendingWork>();
  #callsToLook = 1;
  #callsPerLook = CALLS_PER_LOOK;
  /** The time of the last advance of pending work. */
  #advancedAt = -Infinity;
  /** The number of calls that need not `enter`, because pending work alone has the attention and advanced lately. */
  #freeCalls = 0;
  #eager = false;
  /** Whether starting the watchdog for pending work failed. */
  #isUnwatched = false;

  constructor(limits: ThreadLimits, contexts: ContextArena) {
    this.#limits = limits;
    this.#contexts = contexts;
  }

  /** Set if many references have accumulated: the next safepoint sweeps. */
  get sweepDue(): boolean {
    return this.#sweepDue;
  }

  set sweepDue(due: boolean) {
    this.#sweepDue = due;
    this.#update();
  }

  /** The number of preempted calls. */
  get preempted(): number {
    return this.#preempted;
  }

  set preempted(count: number) {
    if (this.#preempted === 0 && count > 0) {
      deferRetirement(1);
      this.#contexts.deferReleases();
    } else if (this.#preempted > 0 && count === 0) {
      deferRetirement(-1);
      this.#contexts.releaseDeferred();
    }
    this.#preempted = count;
    this.#update();
  }

  /** While `limit` is set, each call from JavaScript asks it for the deadline of its work (ThreadLimits.askLimit). */
  limitWork(limit: (() => number) | undefined): void {
    this.#limits.askLimit = limit;
    // Otherwise, guest code below a host function that begins or ends other work keeps its deadline.
    if (limit === undefined) this.#limits.workDeadline = Infinity;
    this.#update();
  }

  #update(): void {
    this.isSet = this.#needsEveryCall || this.#pending.size > 0;
    if (this.#needsEveryCall) this.#freeCalls = 0;
  }

  /** Whether every call must `enter`, not only one of CALLS_PER_LOOK. */
  get #needsEveryCall(): boolean {
    return this.#sweepDue || this.#preempted > 0 || this.#eager || this.#limits.askLimit !== undefined;
  }

  /** Counts a call while `isSet`; returns true if it must `enter`. */
  needsEntry(): boolean {
    if (this.#freeCalls === 0) return true;
    this.#freeCalls--;
    return false;
  }

  /** Registers `work`, which advances while JavaScript is in control of this thread until it is finished. */
  addWork(work: PendingWork): void {
    this.#pending.add(work);
    this.#eager ||= work.eager === true;
    this.#callsToLook = 1; // the next call may run for a long time, so it must arm its polls
    this.#callsPerLook = CALLS_PER_LOOK;
    this.#freeCalls = 0;
    this.#advancedAt = -Infinity;
    this.#update();
  }

  /**
   * Called for calls in both directions that `needsEntry`: advances pending work, if there is any, once per
   * CALLS_PER_LOOK calls or more, or at each if some is eager.
   */
  look(): void {
    if (this.#pending.size === 0) return;
    if (!this.#needsEveryCall) this.#freeCalls = this.#callsPerLook - 1;
    else if (--this.#callsToLook > 0 && !this.#eager) return;
    this.#callsToLook = CALLS_PER_LOOK;
    this.advance();
  }

  /** Advances all pending work, and arms the polls of running code for the time of its next call. */
  advance(atPoll = false): void {
    if (this.#pending.size === 0) return;
    const time = this.#limits.clock();
    const isShort = time - this.#advancedAt < SHORT_LOOK_MS && !this.#isUnwatched;
    this.#callsPerLook = isShort ? Math.min(2 * this.#callsPerLook, MAX_CALLS_PER_LOOK) : CALLS_PER_LOOK;
    this.#advancedAt = time;
    let next = Infinity;
    for (const work of this.#pending) {
      const wanted = work.advance(time, atPoll);
      if (wanted === undefined) this.#pending.delete(work);
      else next = Math.min(next, wanted);
    }
    if (this.#pending.size === 0) this.#eager = false;
    this.#update();
    this.#watch(this.#isUnwatched ? Infinity : next);
  }

  /**
   * Makes polls fault when work is due. Where the system cannot start a thread for the watchdog, work advances only at
   * calls.
   */
  #watch(due: number): void {
    const limits = this.#limits;
    limits.workDue = due;
    if (due >= limits.watched) return;
    try {
      limits.watch(due);
    } catch {
      this.#isUnwatched = true;
      limits.workDue = Infinity;
    }
  }
}
