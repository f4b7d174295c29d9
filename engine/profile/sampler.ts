/**
 * Samples of the guest stack of one thread, without JavaScript: a timer of the system sends a signal to the thread,
 * whose handler (generated_sampler_code.ts) copies the program counter and the top of the guest stack into a buffer.
 * In: the thread and the interval. Out: the samples, read after the timer has stopped.
 *
 * Invariant: the handler touches nothing but the buffer and the sampler's state, which stay mapped for the life of the
 * process, because a signal may arrive late.
 */
import { fromBase64 } from "../base/base64.ts";
import { type Host, PROT } from "../host/host.ts";
import { type LinuxCalls, linuxCalls } from "../host/calls/linux_calls.ts";
import type { GuestThread } from "../runtime/thread/guest_thread.ts";
import { SAMPLER_HANDLER } from "./generated_sampler_code.ts";

/** Byte offsets in the sampler's state. */
export const SAMPLER = {
  /** Address of the next record, and the end of the buffer less the size of a record's head. */
  NEXT: 0,
  LIMIT: 8,
  /** Start and end of the code arena. */
  START: 16,
  END: 24,
  /** The thread state. */
  THREAD: 32,
  /** End of the guest stack, and its size in bytes. */
  STACK_HIGH: 40,
  STACK_BYTES: 48,
  /** Number of samples for which the buffer had no room. */
  DROPPED: 56,
  /** A struct sigevent, a struct itimerspec, and the timer's number. */
  EVENT: 64,
  TIME: 128,
  TIMER: 160,
} as const;

/** Byte offsets in a record; the copy of the stack follows. */
export const SAMPLE = {
  /** Bytes of the copy, u32. */
  BYTES: 0,
  /** Intervals before this one for which no signal arrived, u32. */
  MISSED: 4,
  /** Program counter; 0 for host code. */
  PC: 8,
  SP: 16,
  /** The link register; undefined on x64. */
  LINK: 24,
  /** THREAD.STATUS, PARK_INDEX and PARK_CONTEXT at the time of the sample. */
  STATUS: 32,
  INDEX: 36,
  CONTEXT: 40,
  HEAD: 48,
} as const;

/** Largest part of the stack that the handler copies, in bytes. */
export const COPIED_BYTES = 4096;
/** Reserved bytes of the buffer; pages are committed as samples arrive. */
const BUFFER_BYTES = 1 << 28;
/** Real-time signals from the first down are tried for one without a handler; emulators lack the last ones. */
const FIRST_SIGNAL = 60;
const LAST_SIGNAL = 44;

const CLOCK_MONOTONIC = 1;
const SIGEV_THREAD_ID = 4;

/** A sample: the fields of a record (SAMPLE). */
export interface RawSample {
  readonly missed: number;
  readonly pc: number;
  readonly link: number;
  readonly sp: number;
  readonly status: number;
  readonly index: number;
  readonly context: number;
  /** Words of the guest stack from `sp` on. */
  readonly words: Float64Array;
}

/** A sampler, which runs from its creation to `stop`. */
export class Sampler {
  readonly #host: Host;
  readonly #calls: LinuxCalls;
  readonly #state: number;
  readonly #view: DataView;
  readonly #buffer: number;

  /** Starts sampling. Throws Error on systems other than Linux, and if the system refuses the timer or a signal. */
  constructor(thread: GuestThread, intervalMs: number) {
    const { host, arena } = thread;
    if (host.os !== "linux") {
      throw new Error(`Profiles are supported on Linux alone so far, not on ${host.system.title}`);
    }
    this.#host = host;
    this.#calls = linuxCalls(host);
    this.#state = host.reserve(host.pageSize, PROT.READ | PROT.WRITE);
    this.#view = new DataView(host.view(this.#state, host.pageSize));
    this.#buffer = host.reserve(BUFFER_BYTES, PROT.READ | PROT.WRITE);
    this.#set(SAMPLER.NEXT, this.#buffer);
    this.#set(SAMPLER.LIMIT, this.#buffer + BUFFER_BYTES - SAMPLE.HEAD - COPIED_BYTES);
    this.#set(SAMPLER.START, arena.start);
    this.#set(SAMPLER.END, arena.end);
    this.#set(SAMPLER.THREAD, thread.state.address);
    this.#set(SAMPLER.STACK_HIGH, thread.stack.high);
    this.#set(SAMPLER.STACK_BYTES, thread.stack.high - thread.stack.low);
    this.#createTimer(installHandler(thread));
    this.#setTime(intervalMs);
  }

  /** Stops the timer and returns the samples in order, and the number of those without room. */
  stop(): { samples: RawSample[]; dropped: number } {
    this.#setTime(0);
    this.#check("timer_delete", this.#calls("timer_delete", this.#view.getInt32(SAMPLER.TIMER, true)));
    const end = this.#word(SAMPLER.NEXT);
    const samples = readSamples(new DataView(this.#host.view(this.#buffer, end - this.#buffer)));
    this.#set(SAMPLER.LIMIT, 0);
    const used = Math.ceil((end - this.#buffer) / this.#host.pageSize) * this.#host.pageSize;
    if (used > 0) this.#host.discard(this.#buffer, used);
    return { samples, dropped: this.#word(SAMPLER.DROPPED) };
  }

  #createTimer(signal: number): void {
    const view = this.#view;
    this.#set(SAMPLER.EVENT, this.#state); // sigev_value
    view.setInt32(SAMPLER.EVENT + 8, signal, true);
    view.setInt32(SAMPLER.EVENT + 12, SIGEV_THREAD_ID, true);
    view.setInt32(SAMPLER.EVENT + 16, this.#calls("gettid"), true);
    const { EVENT, TIMER } = SAMPLER;
    this.#check("timer_create", this.#calls("timer_create", CLOCK_MONOTONIC, this.#state + EVENT, this.#state + TIMER));
  }

  /** Starts the timer with an interval in milliseconds; 0 stops it. */
  #setTime(intervalMs: number): void {
    const nanoseconds = Math.round(intervalMs * 1e6);
    for (const at of [SAMPLER.TIME, SAMPLER.TIME + 16]) {
      this.#set(at, Math.floor(nanoseconds / 1e9));
      this.#set(at + 8, nanoseconds % 1e9);
    }
    const timer = this.#view.getInt32(SAMPLER.TIMER, true);
    this.#check("timer_settime", this.#calls("timer_settime", timer, 0, this.#state + SAMPLER.TIME, 0));
  }

  #check(call: string, status: number): void {
    if (status < 0) throw new Error(`Cannot sample: the system refuses ${call} with error ${-status}`);
  }

  #set(offset: number, value: number): void {
    this.#view.setBigUint64(offset, BigInt(value), true);
  }

  #word(offset: number): number {
    return Number(this.#view.getBigUint64(offset, true));
  }
}

/** The signal whose handler is installed, by arena. Handlers are never removed. */
const SIGNALS = new WeakMap<object, number>();

/** Installs the handler in the thread's arena, once, and returns its signal. */
function installHandler({ host, arena }: GuestThread): number {
  const known = SIGNALS.get(arena);
  if (known !== undefined) return known;
  let signal = FIRST_SIGNAL;
  while (host.signalHandler(signal) !== 0) {
    if (--signal < LAST_SIGNAL) throw new Error("Cannot sample: the process uses all real-time signals");
  }
  const code = fromBase64(SAMPLER_HANDLER[host.arch].code);
  const at = arena.allocate(code.length);
  arena.publish(at, code);
  host.installSignalHandler(signal, at, true);
  SIGNALS.set(arena, signal);
  return signal;
}

function readSamples(view: DataView): RawSample[] {
  const samples: RawSample[] = [];
  const word = (at: number) => view.getUint32(at, true) + view.getUint32(at + 4, true) * 0x1_0000_0000;
  for (let at = 0; at < view.byteLength;) {
    const bytes = view.getUint32(at + SAMPLE.BYTES, true);
    const first = at + SAMPLE.HEAD;
    samples.push({
      missed: view.getUint32(at + SAMPLE.MISSED, true),
      pc: word(at + SAMPLE.PC),
      link: word(at + SAMPLE.LINK),
      sp: word(at + SAMPLE.SP),
      status: view.getUint32(at + SAMPLE.STATUS, true),
      index: view.getUint32(at + SAMPLE.INDEX, true),
      context: word(at + SAMPLE.CONTEXT),
      words: Float64Array.from({ length: bytes >> 3 }, (_, k) => word(first + k * 8)),
    });
    at = first + bytes;
  }
  return samples;
}
