/**
 * A deadline without JavaScript: while compiled code runs, no timer fires, so a thread whose body is machine code of ours sleeps until
 * the deadline and then takes the access rights of the poll page away; the next poll of the compiled code faults, and that is its trap.
 *
 * In: a page that interruptible code reads. Out: `arm` and `disarm`, about a microsecond together while the thread sleeps on: it is
 * woken only when a deadline comes before the time at which it would wake anyway. Invariant: after `disarm` the page is readable.
 *
 * State shared by the thread and the two routines (WATCH): DEADLINE is 0 for none, IS_FIRING while the page is being closed, HAS_FIRED
 * when it is, else a time of CLOCK_MONOTONIC in nanoseconds; every change of it is one locked instruction. The thread stores when it
 * will wake before it looks at DEADLINE for the last time, and `arm` stores DEADLINE before it looks at that: one sees the other.
 */
import type { CodeArena } from "./code_arena.ts";
import { type Host, PROT } from "./host.ts";
import { WATCHDOG_CODE } from "./watchdog_code.ts";

/** Byte offsets in the shared state. */
const WATCH = {
  DEADLINE: 0,
  /** When the thread wakes by itself. */
  WAKES: 8,
  /** Futex word, counts wake-ups. */
  SEQUENCE: 16,
  /** A struct timespec for the thread. */
  TIME: 24,
  PAGE: 40,
  PAGE_BYTES: 48,
  /** Nanoseconds from now: the argument of `arm`. */
  DELAY: 56,
  /** The signals that the thread blocks: all. */
  SIGNALS: 64,
} as const;

/** The longest delay, 292 years are the most that fits: a century. */
const MAX_DELAY_MS = 100 * 365 * 24 * 3600 * 1000;

/** Are there watchdogs here? */
export function canWatch(host: Host): boolean {
  return host.os === "linux";
}

/** The watchdog of one JavaScript realm. Its thread lives as long as the process. */
export class Watchdog {
  readonly #u32: Uint32Array;
  readonly #arm: () => number;
  readonly #disarm: () => number;

  /** Starts the thread. Throws an Error where there is none. */
  constructor(host: Host, arena: CodeArena) {
    if (!canWatch(host)) throw new Error(`Deadlines are not supported on ${host.os} yet`);
    const { bytes, arm, disarm } = WATCHDOG_CODE[host.arch];
    const state = host.reserve(host.pageSize, PROT.READ | PROT.WRITE);
    this.#u32 = new Uint32Array(host.view(state, host.pageSize));
    this.#setWord(WATCH.PAGE, arena.pollPage);
    this.#setWord(WATCH.PAGE_BYTES, host.pageSize);
    this.#u32.fill(0xffffffff, WATCH.SIGNALS >> 2, (WATCH.SIGNALS >> 2) + 2);
    const code = arena.allocate(bytes.length);
    arena.publish(code, bytes);
    const calls = host.boundCalls(bytes, { arm, disarm }, state);
    this.#arm = calls.arm;
    this.#disarm = calls.disarm;
    host.startThread(code, state);
  }

  /** From `milliseconds` from now on, polls trap. Nothing may be armed. */
  arm(milliseconds: number): void {
    this.#setWord(WATCH.DELAY, Math.ceil(Math.min(Math.max(milliseconds, 0), MAX_DELAY_MS) * 1e6));
    this.#arm();
  }

  /** Takes the deadline back; says whether it had passed. */
  disarm(): boolean {
    const status = this.#disarm();
    if (status < 0) throw new Error("The system does not give the poll page back: out of mappings");
    return status !== 0;
  }

  #setWord(offset: number, value: number): void {
    this.#u32[offset >> 2] = value;
    this.#u32[(offset >> 2) + 1] = value / 0x1_0000_0000;
  }
}
