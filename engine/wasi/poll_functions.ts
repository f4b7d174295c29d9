/**
 * poll_oneoff: waits for clocks and descriptors with one ppoll. In: subscriptions of 48 bytes (witx). Out: events of 32
 * bytes for the ready ones.
 *
 * Invariant: the result is the same for one blocking system call and for repeated attempts (`attempt`), with which a
 * realm that serves several threads avoids blocking.
 */
import { ERRNO, EVENTTYPE, FILETYPE, rightsFor } from "./abi.ts";
import { readClock } from "./clock_functions.ts";
import type { WasiState } from "./functions.ts";
import { POLL } from "./waits.ts";
import { WasiError } from "./wasi_error.ts";

const SUBSCRIPTION_BYTES = 48;
const EVENT_BYTES = 32;
const ABSTIME = 1;
const MAX_SUBSCRIPTIONS = 4096;

/** One subscription. */
interface Wait {
  userdata: bigint;
  type: number;
  /** Error known before waiting. */
  errno: number;
  /** Clock subscriptions: nanoseconds from now. */
  timeout: bigint;
  /** Descriptor subscriptions: index of the pollfd, or −1 when always ready. */
  slot: number;
}

/** A descriptor to poll. */
interface Polled {
  fd: number;
  events: number;
}

function isReady(wait: Wait): boolean {
  return wait.errno !== 0 || (wait.type !== EVENTTYPE.clock && wait.slot < 0);
}

/** Nanoseconds until the first subscription is due; −1n when none has a time. */
function earliest(waits: readonly Wait[]): bigint {
  let timeout = -1n;
  for (const wait of waits) {
    if (isReady(wait)) return 0n;
    if (wait.type === EVENTTYPE.clock && (timeout < 0n || wait.timeout < timeout)) timeout = wait.timeout;
  }
  return timeout;
}

/** The function poll_oneoff. */
export class PollFunctions {
  readonly #state: WasiState;

  constructor(state: WasiState) {
    this.#state = state;
  }

  poll_oneoff(inAt: number, outAt: number, count: number, usedAt: number): number {
    const polls: Polled[] = [];
    const waits = this.#readWaits(inAt >>> 0, outAt >>> 0, count >>> 0, polls);
    this.#state.waits.charge(waits.length * SUBSCRIPTION_BYTES);
    const timeout = earliest(waits);
    const ready = this.#poll(polls, timeout);
    return this.#finish(waits, outAt >>> 0, usedAt >>> 0, ready === 0 ? timeout : undefined);
  }

  /** Non-blocking poll_oneoff for a call that began `waited` nanoseconds ago; undefined when nothing is ready yet. */
  attempt(inAt: number, outAt: number, count: number, usedAt: number, waited: bigint): number | undefined {
    const polls: Polled[] = [];
    const waits = this.#readWaits(inAt >>> 0, outAt >>> 0, count >>> 0, polls);
    const timeout = earliest(waits);
    const isDue = timeout >= 0n && timeout <= waited;
    if (this.#poll(polls, 0n) === 0 && !isDue) return undefined;
    return this.#finish(waits, outAt >>> 0, usedAt >>> 0, isDue ? timeout : undefined);
  }

  #readWaits(inAt: number, outAt: number, count: number, polls: Polled[]): Wait[] {
    const { memory } = this.#state;
    if (count === 0 || count > MAX_SUBSCRIPTIONS) throw new WasiError(ERRNO.inval);
    memory.address(inAt, count * SUBSCRIPTION_BYTES);
    memory.address(outAt, count * EVENT_BYTES);
    return Array.from({ length: count }, (_, i) => this.#readWait(inAt + i * SUBSCRIPTION_BYTES, polls));
  }

  #readWait(at: number, polls: Polled[]): Wait {
    const { memory } = this.#state;
    const wait: Wait = { userdata: memory.u64(at), type: memory.u8(at + 8), errno: 0, timeout: -1n, slot: -1 };
    if (wait.type === EVENTTYPE.clock) this.#readClockWait(at, wait);
    else if (wait.type > EVENTTYPE.fd_write) throw new WasiError(ERRNO.inval);
    else this.#readStreamWait(at, wait, polls);
    return wait;
  }

  #readClockWait(at: number, wait: Wait): void {
    const { memory } = this.#state;
    const clock = memory.u32(at + 16);
    const time = memory.u64(at + 24);
    if (clock > 1) wait.errno = clock > 3 ? ERRNO.inval : ERRNO.notsup;
    else if ((memory.u16(at + 40) & ABSTIME) === 0) wait.timeout = time;
    else {
      const now = readClock(this.#state, clock, "clock_gettime");
      wait.timeout = time > now ? time - now : 0n;
    }
  }

  #readStreamWait(at: number, wait: Wait, polls: Polled[]): void {
    const { memory, descriptors } = this.#state;
    try {
      const { fd, filetype } = descriptors.get(memory.u32(at + 16), rightsFor("poll_oneoff"));
      if (filetype === FILETYPE.regular_file || filetype === FILETYPE.directory) return;
      wait.slot = polls.length;
      polls.push({ fd, events: wait.type === EVENTTYPE.fd_read ? POLL.IN : POLL.OUT });
    } catch (error) {
      if (!(error instanceof WasiError)) throw error;
      wait.errno = error.errno;
    }
  }

  /**
   * Polls for at most `timeout` nanoseconds (−1n: forever); returns the number of ready descriptors. Results stay in
   * the scratch buffer.
   */
  #poll(polls: readonly Polled[], timeout: bigint): number {
    const { scratch: { out }, waits } = this.#state;
    polls.forEach(({ fd, events }, i) => {
      out.u32[i * 2] = fd;
      out.u32[i * 2 + 1] = events; // and clears the results
    });
    return waits.poll(out.address, polls.length, timeout);
  }

  /** Writes events and their number; clocks with a timeout of `elapsed` nanoseconds have expired. */
  #finish(waits: readonly Wait[], outAt: number, usedAt: number, elapsed: bigint | undefined): number {
    let used = 0;
    for (const wait of waits) {
      const event = this.#eventOf(wait, elapsed);
      if (event !== undefined) this.#writeEvent(outAt + used++ * EVENT_BYTES, wait, event);
    }
    this.#state.memory.setU32(usedAt, used);
    return 0;
  }

  #eventOf(wait: Wait, elapsed: bigint | undefined): { errno: number; hangup: boolean } | undefined {
    if (isReady(wait)) return { errno: wait.errno, hangup: false };
    if (wait.type === EVENTTYPE.clock) return wait.timeout === elapsed ? { errno: 0, hangup: false } : undefined;
    const got = this.#state.scratch.out.u32[wait.slot * 2 + 1] >>> 16;
    if (got === 0) return undefined;
    const errno = (got & POLL.NVAL) !== 0 ? ERRNO.badf : (got & POLL.ERR) !== 0 ? ERRNO.io : 0;
    return { errno, hangup: (got & POLL.HUP) !== 0 };
  }

  #writeEvent(at: number, { userdata, type }: Wait, { errno, hangup }: { errno: number; hangup: boolean }): void {
    const { memory } = this.#state;
    memory.bytes(at, EVENT_BYTES).fill(0);
    memory.setU64(at, userdata);
    memory.setU16(at + 8, errno);
    memory.setU8(at + 10, type);
    if (type === EVENTTYPE.clock) return;
    memory.setU64(at + 16, 1);
    memory.setU16(at + 24, hangup ? 1 : 0);
  }
}
