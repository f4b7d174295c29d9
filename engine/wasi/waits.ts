/**
 * Waits of WASI functions, clipped to the deadline of the call. In: descriptors of the process and the events to wait
 * for. Out: the ready ones; past the deadline, the trap `interrupted` is thrown through the guest.
 *
 * Invariant: while a deadline is set, no system call of a guest blocks beyond it, however often it is ready. Reads and
 * writes on streams follow a poll and move no more than the poll promised; if another process takes the data or the
 * room first, they wait again where the kernel supports RWF_NOWAIT.
 */
import { now } from "../host/clocks.ts";
import type { LinuxCalls } from "../host/calls/linux_calls.ts";
import { callDeadline, callIsBounded, callIsOver, chargeBytes, interruptedCall } from "../runtime/host_limits.ts";
import { ERRNO, errnoOf } from "./abi.ts";
import type { Scratch } from "./scratch.ts";
import { checked, WasiError } from "./wasi_error.ts";

/** Events of ppoll. */
export const POLL = { IN: 1, OUT: 4, ERR: 8, HUP: 16, NVAL: 32 } as const;

/** The limits of the running call. */
export interface CallLimits {
  /** The deadline on the clock of performance.now(); Infinity for none. */
  deadline(): number;
  /** Whether the call has used up its time: the deadline has passed, or its processor time. */
  isOver(): boolean;
  /** Whether time, processor time or fuel of the call are limited at all. */
  isBounded(): boolean;
  /** The error that ends a call whose time is up. */
  interrupted(): Error;
  /** Charges the fuel of bytes moved. Throws the trap when there is too little. */
  charge(bytes: number): void;
}

/** The limits of the call that runs now in this realm. */
export const CALL_LIMITS: CallLimits = {
  deadline: callDeadline,
  isOver: callIsOver,
  isBounded: callIsBounded,
  interrupted: interruptedCall,
  charge: chargeBytes,
};

/** The price of a system call that looks at one directory of a path, as that of so many bytes. */
const STEP_BYTES = 1024;

/** Bytes that a call with limits moves at once; the limits are checked in between. */
export const PIECE_BYTES = 1 << 20;
const NS_PER_MS = 1e6;
const NS_PER_S = 1_000_000_000n;
/** The maximum number of bytes that a pipe accepts without blocking once it is ready (Linux's PIPE_BUF). */
const PIPE_BYTES = 4096;
/** preadv2 and pwritev2: fail with EAGAIN instead of waiting. */
const RWF_NOWAIT = 8;
const MSG_DONTWAIT = 0x40;
const MSG_WAITALL = 0x100;
/** Offsets in the scratch buffer of the pollfd record and the vector, which follow the timespec. */
const POLLFD = 16;
const VECTOR = 32;

export class Waits {
  readonly #sys: LinuxCalls;
  readonly #scratch: Scratch;
  readonly #limits: CallLimits;

  constructor(sys: LinuxCalls, scratch: Scratch, limits: CallLimits) {
    this.#sys = sys;
    this.#scratch = scratch;
    this.#limits = limits;
  }

  /** Whether there is a deadline. */
  get isLimited(): boolean {
    return this.#limits.deadline() !== Infinity;
  }

  /** Whether a transfer must be split, so that a limit can end it between two parts. */
  get isBounded(): boolean {
    return this.#limits.isBounded();
  }

  /** Throws the trap when the call's time is up. */
  check(): void {
    if (this.#limits.isOver()) throw this.#limits.interrupted();
  }

  /** Charges the fuel of `bytes` moved. */
  charge(bytes: number): void {
    this.#limits.charge(bytes);
  }

  /** Pays for a system call that looks at one directory of a path. Throws the trap when the call's time is up. */
  step(): void {
    this.check();
    this.charge(STEP_BYTES);
  }

  /**
   * Polls `count` pollfd records at `address` for at most `timeout` nanoseconds (negative: forever); returns the number
   * of ready records. Throws the trap when the deadline passes first.
   */
  poll(address: number, count: number, timeout: bigint): number {
    const started = now();
    const timespec = this.#scratch.wait;
    for (;;) {
      const begun = now();
      const wanted = timeout < 0n ? -1n : max0(timeout - toNanoseconds(begun - started));
      const left = this.#limits.deadline() - begun;
      const clipped = left !== Infinity && (wanted < 0n || toNanoseconds(left) < wanted);
      const time = clipped ? max0(toNanoseconds(left)) : wanted;
      timespec.i64[0] = time / NS_PER_S;
      timespec.i64[1] = time % NS_PER_S;
      const ready = this.#sys("ppoll", address, count, time < 0n ? 0 : timespec.address, 0, 0);
      if (errnoOf(ready) === ERRNO.intr) continue;
      if (checked(ready) > 0 || !clipped) return ready;
      this.check();
    }
  }

  /** Whether `fd` is ready for `events` now, if only with an error. */
  isReady(fd: number, events: number): boolean {
    return this.poll(this.#pollfd(fd, events), 1, 0n) > 0;
  }

  /** Waits until `fd` is ready for `events`. */
  untilReady(fd: number, events: number): void {
    this.poll(this.#pollfd(fd, events), 1, -1n);
  }

  /** readv on a stream, which may wait: `count` vectors at `vectors`. The result of the system call. */
  read(fd: number, vectors: number, count: number): number {
    if (!this.isLimited) return this.#blocking("readv", fd, vectors, count, POLL.IN);
    for (;;) {
      this.check();
      this.untilReady(fd, POLL.IN);
      const got = this.#sys("preadv2", fd, vectors, count, -1, 0, RWF_NOWAIT);
      const errno = errnoOf(got);
      if (mustWait(errno)) return this.#blocking("readv", fd, vectors, count, POLL.IN);
      if (errno !== ERRNO.again) return got;
    }
  }

  /** writev on a stream without a deadline, which may wait. The result of the system call. */
  writeVectors(fd: number, vectors: number, count: number): number {
    return this.#blocking("writev", fd, vectors, count, POLL.OUT);
  }

  /**
   * A system call that waits also where the host has made its standard streams nonblocking, as Node does with pipes.
   */
  #blocking(call: "readv" | "writev", fd: number, vectors: number, count: number, events: number): number {
    for (;;) {
      const done = this.#sys(call, fd, vectors, count);
      if (errnoOf(done) !== ERRNO.again) return done;
      this.untilReady(fd, events);
    }
  }

  /** Writes `length` bytes at `address` to a stream that is ready. The result of the system call, or EAGAIN. */
  writeReady(fd: number, address: number, length: number): number {
    const { wait } = this.#scratch;
    wait.setWord(VECTOR, address);
    wait.setWord(VECTOR + 8, length);
    const done = this.#sys("pwritev2", fd, wait.address + VECTOR, 1, -1, 0, RWF_NOWAIT);
    return mustWait(errnoOf(done)) ? this.#sys("write", fd, address, length) : done;
  }

  /**
   * Writes `length` bytes at `address` to a stream; `put` makes a single write. May wait. Charges the bytes written,
   * and returns the result of a system call.
   */
  write(fd: number, address: number, length: number, put: (address: number, length: number) => number): number {
    const most = this.isLimited ? PIPE_BYTES : this.isBounded ? PIECE_BYTES : Infinity;
    let done = 0;
    do {
      this.check();
      if (this.isLimited) this.untilReady(fd, POLL.OUT);
      const written = put(address + done, Math.min(length - done, most));
      if (errnoOf(written) === ERRNO.again) this.untilReady(fd, POLL.OUT);
      else if (written < 0) return done > 0 ? done : written;
      this.charge(Math.max(written, 0));
      done += Math.max(written, 0);
    } while (done < length);
    return done;
  }

  /** recvfrom on a socket, which may wait; `all` waits for the whole `length`. The result of the system call. */
  receive(fd: number, address: number, length: number, flags: number, all: boolean): number {
    if (!this.isLimited) return this.#sys("recvfrom", fd, address, length, all ? flags | MSG_WAITALL : flags);
    let done = 0;
    for (;;) {
      this.check();
      this.untilReady(fd, POLL.IN);
      const got = this.#sys("recvfrom", fd, address + done, length - done, flags | MSG_DONTWAIT);
      if (got < 0 && errnoOf(got) === ERRNO.again) continue;
      if (got <= 0) return done > 0 ? done : got;
      done += got;
      if (!all || done === length) return done;
    }
  }

  #pollfd(fd: number, events: number): number {
    const { wait } = this.#scratch;
    wait.u32[POLLFD >> 2] = fd;
    wait.u32[(POLLFD >> 2) + 1] = events;
    return wait.address + POLLFD;
  }
}

/** Whether this error of preadv2 or pwritev2 means that the stream does not support RWF_NOWAIT. */
function mustWait(errno: number): boolean {
  return errno === ERRNO.notsup || errno === ERRNO.nosys || errno === ERRNO.spipe;
}

function toNanoseconds(ms: number): bigint {
  return BigInt(Math.ceil(ms * NS_PER_MS));
}

function max0(n: bigint): bigint {
  return n > 0n ? n : 0n;
}

/** Refuses an operation that would wait on a descriptor that the guest made nonblocking. */
export function requireReady(waits: Waits, fd: number, events: number): void {
  if (!waits.isReady(fd, events)) throw new WasiError(ERRNO.again);
}
