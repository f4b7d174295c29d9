/**
 * Enforces a deadline without JavaScript. Timers do not fire while compiled code runs, so a thread of generated machine
 * code sleeps until the deadline and then revokes access to the poll page; the next poll of the compiled code faults,
 * which becomes the trap.
 *
 * In: the page that interruptible code reads, memory for the state, and the routines, which are in the guest thread's
 * library, since opening another one would take longer than starting the thread. Out: `arm` and `disarm`, about a
 * microsecond together if the thread stays asleep; it is woken only for a deadline earlier than its next wake-up.
 * Invariant: after `disarm` the page is readable.
 *
 * The thread and the two routines share state (WATCH). DEADLINE is 0 for none, IS_FIRING while the page is being
 * closed, HAS_FIRED when it is closed, and otherwise a time of a monotonic clock in nanoseconds; every change of it is
 * one locked instruction. The thread stores its wake-up time before its last load of DEADLINE, and `arm` stores
 * DEADLINE before it loads the wake-up time, so at least one of them sees the other's store.
 */
import { fromBase64 } from "../../base/base64.ts";
import type { CodeArena } from "../memory/code_arena.ts";
import type { Host } from "../host.ts";
import { systemParts } from "../systems/system_parts.ts";
import { LINUX_WATCHDOG } from "./generated_code.ts";

/** Byte offsets in the shared state. */
export const WATCH = {
  DEADLINE: 0,
  /** The time at which the thread wakes by itself. */
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
  // From 72 on, macOS and Windows have words of their own (darwin_watchdog.ts, windows_code.ts).
  /** An upper bound of its size. */
  SIZE: 1024,
} as const;

/** Values of DEADLINE that are no times. */
export const WATCH_STATE = { IS_FIRING: 1, HAS_FIRED: 2 } as const;

/** The longest delay: a century; 292 years fit. */
const MAX_DELAY_MS = 100 * 365 * 24 * 3600 * 1000;

/** Code for one architecture: the thread's body at offset 0, and the offsets of the routines. */
interface WatchdogCode {
  readonly bytes: Uint8Array;
  readonly arm: number;
  readonly disarm: number;
}

/** The machine code of this host's watchdog; undefined where there is none. */
export function watchdogCode({ arch }: Host): WatchdogCode | undefined {
  const stored = (systemParts()?.watchdog.code ?? LINUX_WATCHDOG)[arch];
  return stored && { bytes: fromBase64(stored.code), ...stored.labels };
}

/** The shared state, which is zero at first, and the routines of {@linkcode watchdogCode}, bound to it. */
export interface WatchdogCalls {
  readonly address: number;
  readonly state: Uint32Array;
  readonly arm: () => number;
  readonly disarm: () => number;
}

/** The watchdog of one JavaScript realm. Its thread lives as long as the process. */
export class Watchdog {
  readonly #u32: Uint32Array;
  readonly #arm: () => number;
  readonly #disarm: () => number;

  /** Starts the thread. Throws an Error where there is none, or where the system refuses it. */
  static start(host: Host, arena: CodeArena, calls: WatchdogCalls | undefined): Watchdog {
    const code = watchdogCode(host);
    if (code === undefined || calls === undefined) {
      throw new Error(`Deadlines are not supported on ${host.os} for ${host.arch}`);
    }
    return host.releasingOnError(() => new Watchdog(host, arena, code, calls));
  }

  private constructor(host: Host, arena: CodeArena, { bytes }: WatchdogCode, calls: WatchdogCalls) {
    this.#u32 = calls.state;
    this.#arm = calls.arm;
    this.#disarm = calls.disarm;
    this.#setWord(WATCH.PAGE, arena.pollPage);
    this.#setWord(WATCH.PAGE_BYTES, host.pageSize);
    this.#u32.fill(0xffffffff, WATCH.SIGNALS >> 2, (WATCH.SIGNALS >> 2) + 2);
    systemParts()?.watchdog.prepare?.(host, (offset, value) => this.#setWord(offset, value));
    const code = arena.allocate(bytes.length);
    arena.publish(code, bytes);
    try {
      host.startThread(code, calls.address);
    } catch (error) {
      arena.release(code, bytes.length);
      throw error;
    }
  }

  /** From `milliseconds` from now on, polls trap. Nothing may be armed. */
  arm(milliseconds: number): void {
    this.#setWord(WATCH.DELAY, Math.ceil(Math.min(Math.max(milliseconds, 0), MAX_DELAY_MS) * 1e6));
    this.#arm();
  }

  /** Cancels the deadline; returns whether it had passed. */
  disarm(): boolean {
    const status = this.#disarm();
    if (status < 0) throw new Error("Cannot restore the poll page: the process has too many mappings");
    return status !== 0;
  }

  #setWord(offset: number, value: number): void {
    this.#u32[offset >> 2] = value;
    this.#u32[(offset >> 2) + 1] = value / 0x1_0000_0000;
  }
}
