/**
 * A lock-free shared work queue: which thread compiles which function, and when. In: the call graph. Out: functions,
 * one after the other, to every thread that asks, each once and after its callees as far as one thread would compile
 * them before it.
 *
 * A ticket is a place in a queue that grows as functions become ready, so a thread waits only for the function that
 * will get its place. The registers that a function writes (MachineCode.knows) are published before waiting threads are
 * woken.
 *
 * Invariant: every function gets into the queue, or the compilation has failed and all waiters are woken.
 */
import type { Summaries } from "../translate/summaries.ts";

/** Words at the start of the block. */
const NEXT_TICKET = 0, QUEUED = 1, FAILED = 2, FINISHED = 3, FIRST_THREAD = 4;

/** The state of a thread, at first IDLE. */
export const STATE = { IDLE: 0, WORKING: 1, DONE: 2, BARRED: 3 } as const;

/** In the queue: not filled yet, and closed. */
const EMPTY = 0, OVER = -1;
/** No function is left, or the compilation has failed. */
export const NONE = -1;
/** Nothing is ready yet. */
export const LATER = -2;

/** A thread's view of the block. */
export class Schedule {
  readonly buffer: SharedArrayBuffer;
  readonly count: number;
  readonly threads: number;
  readonly #words: Int32Array;
  readonly #queue: Int32Array;
  readonly #waits: Int32Array;
  readonly #first: Int32Array;
  readonly #dependants: Int32Array;
  /** Place of each function in the order of one thread. */
  readonly rank: Int32Array;
  readonly writtenGeneral: Int32Array;
  readonly writtenVector: Int32Array;
  readonly writtenKnown: Uint8Array;
  /** The thread that has a function's code, and the word of its output at which the code begins. */
  readonly thread: Int32Array;
  readonly place: Int32Array;
  /** By thread: the word of its output at which its counts begin. */
  readonly counted: Int32Array;
  #ticket = NONE;

  /** Opens a block that another thread has made with `makeSchedule`. */
  constructor(buffer: SharedArrayBuffer, count: number, threads: number, edges: number) {
    this.buffer = buffer;
    this.count = count;
    this.threads = threads;
    let at = 0;
    const take = (length: number) => {
      const words = new Int32Array(buffer, at, length);
      at += length * 4;
      return words;
    };
    this.#words = take(FIRST_THREAD + threads);
    this.counted = take(threads);
    this.#queue = take(count);
    this.#waits = take(count);
    this.#first = take(count + 1);
    this.#dependants = take(edges);
    this.rank = take(count);
    this.writtenGeneral = take(count);
    this.writtenVector = take(count);
    this.thread = take(count);
    this.place = take(count);
    this.writtenKnown = new Uint8Array(buffer, at, count);
  }

  static bytes(count: number, threads: number, edges: number): number {
    return (FIRST_THREAD + 2 * threads + 8 * count + 1 + edges) * 4 + count;
  }

  /** Fills the block with the dependencies. Functions without dependencies are ready, in their order. */
  fill(order: Int32Array, callers: Int32Array, callees: Int32Array): void {
    const first = this.#first;
    order.forEach((k, at) => this.rank[k] = at);
    for (const callee of callees) first[callee + 1]++;
    for (let k = 0; k < this.count; k++) first[k + 1] += first[k];
    const next = first.slice();
    for (let n = 0; n < callees.length; n++) {
      this.#dependants[next[callees[n]]++] = callers[n];
      this.#waits[callers[n]]++;
    }
    let queued = 0;
    for (const k of order) if (this.#waits[k] === 0) this.#queue[queued++] = k + 1;
    this.#words[QUEUED] = queued;
  }

  /**
   * The next function for this thread. NONE when there is none left; LATER when it would take longer than `ms`: then
   * the thread may do something else and ask again.
   */
  take(ms: number): number {
    if (this.#ticket < 0) this.#ticket = Atomics.add(this.#words, NEXT_TICKET, 1);
    const ticket = this.#ticket;
    if (ticket >= this.count) return NONE;
    if (Atomics.load(this.#queue, ticket) === EMPTY) Atomics.wait(this.#queue, ticket, EMPTY, ms);
    const entry = Atomics.load(this.#queue, ticket);
    if (entry === EMPTY) return LATER;
    if (entry === OVER) return NONE;
    this.#ticket = NONE;
    return entry - 1;
  }

  /**
   * The code of function `k` is at word `place` of the output of thread `thread`. Functions that wait only for it
   * become ready.
   */
  finish(k: number, thread: number, place: number): void {
    this.thread[k] = thread;
    this.place[k] = place;
    const first = this.#first;
    for (let at = first[k]; at < first[k + 1]; at++) {
      const dependant = this.#dependants[at];
      if (Atomics.sub(this.#waits, dependant, 1) !== 1) continue;
      const slot = Atomics.add(this.#words, QUEUED, 1);
      if (Atomics.compareExchange(this.#queue, slot, EMPTY, dependant + 1) === EMPTY) Atomics.notify(this.#queue, slot);
    }
    Atomics.add(this.#words, FINISHED, 1);
  }

  /** Waits `ms`. */
  pause(ms: number): void {
    Atomics.wait(this.#words, FAILED, 0, ms);
  }

  /** The number of functions that have their code. */
  get finished(): number {
    return Atomics.load(this.#words, FINISHED);
  }

  /** Ends the compilation as failed, and wakes all waiting threads. */
  fail(): void {
    Atomics.store(this.#words, FAILED, 1);
    for (let k = 0; k < this.count; k++) {
      if (Atomics.compareExchange(this.#queue, k, EMPTY, OVER) === EMPTY) Atomics.notify(this.#queue, k);
    }
  }

  get failed(): boolean {
    return Atomics.load(this.#words, FAILED) !== 0;
  }

  /** Changes the state of thread `thread` from `from`; false if it was in another state. */
  change(thread: number, from: number, to: number): boolean {
    if (Atomics.compareExchange(this.#words, FIRST_THREAD + thread, from, to) !== from) return false;
    Atomics.notify(this.#words, FIRST_THREAD + thread);
    return true;
  }

  /** Waits at most `ms` while thread `thread` is working; returns whether it still is. */
  isWorking(thread: number, ms: number): boolean {
    const at = FIRST_THREAD + thread;
    if (Atomics.load(this.#words, at) !== STATE.WORKING) return false;
    Atomics.wait(this.#words, at, STATE.WORKING, ms);
    return Atomics.load(this.#words, at) === STATE.WORKING;
  }
}

/** Direct calls of functions that come earlier in the order of one thread: caller and callee, each pair once. */
function earlierCallees({ calleesFirst, calleeStart, callees }: Summaries): [Int32Array, Int32Array] {
  const count = calleesFirst.length;
  const rank = new Int32Array(count);
  calleesFirst.forEach((k, at) => rank[k] = at);
  const from = new Int32Array(callees.length), to = new Int32Array(callees.length);
  const seen = new Int32Array(count).fill(-1);
  let pairs = 0;
  for (let k = 0; k < count; k++) {
    for (let at = calleeStart[k]; at < calleeStart[k + 1]; at++) {
      const callee = callees[at];
      if (seen[callee] === k || rank[callee] >= rank[k]) continue;
      seen[callee] = k;
      from[pairs] = k;
      to[pairs++] = callee;
    }
  }
  return [from.subarray(0, pairs), to.subarray(0, pairs)];
}

/** Makes the block for `threads` threads. Throws RangeError when there is no memory. */
export function makeSchedule(summaries: Summaries, threads: number): { schedule: Schedule; edges: number } {
  const [callers, callees] = earlierCallees(summaries);
  const count = summaries.calleesFirst.length, edges = callees.length;
  const buffer = new SharedArrayBuffer(Math.ceil(Schedule.bytes(count, threads, edges) / 4) * 4);
  const schedule = new Schedule(buffer, count, threads, edges);
  schedule.fill(summaries.calleesFirst, callers, callees);
  return { schedule, edges };
}
