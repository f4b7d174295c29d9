/**
 * poll_oneoff: waits for clocks and descriptors with one ppoll. Subscriptions are 48 bytes, events 32 (witx).
 */
import { ERRNO, errnoOf, EVENTTYPE, FILETYPE, RIGHT } from "./abi.ts";
import { readClock } from "./clock.ts";
import type { WasiFunction, WasiState } from "./mod.ts";
import { checked, WasiError } from "./paths.ts";

const SUBSCRIPTION_BYTES = 48;
const EVENT_BYTES = 32;
const POLLIN = 1;
const POLLOUT = 4;
const POLLERR = 8;
const POLLHUP = 16;
const POLLNVAL = 32;
const ABSTIME = 1;
const MAX_SUBSCRIPTIONS = 4096;

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

export function pollFunctions(state: WasiState): Record<string, WasiFunction> {
  const { sys, scratch, memory, descriptors } = state;

  function readWait(at: number, polls: { fd: number; events: number }[]): Wait {
    const wait: Wait = { userdata: memory.u64(at), type: memory.u8(at + 8), errno: 0, timeout: -1n, slot: -1 };
    if (wait.type === EVENTTYPE.clock) {
      const clock = memory.u32(at + 16);
      const time = memory.u64(at + 24);
      const flags = memory.u16(at + 40);
      if (clock > 1) wait.errno = clock > 3 ? ERRNO.inval : ERRNO.notsup;
      else if ((flags & ABSTIME) !== 0) {
        const now = readClock(state, clock, "clock_gettime");
        wait.timeout = time > now ? time - now : 0n;
      } else wait.timeout = time;
      return wait;
    }
    if (wait.type > EVENTTYPE.fd_write) throw new WasiError(ERRNO.inval);
    try {
      const descriptor = descriptors.get(memory.u32(at + 16), RIGHT.poll_fd_readwrite);
      if (descriptor.filetype !== FILETYPE.regular_file && descriptor.filetype !== FILETYPE.directory) {
        wait.slot = polls.length;
        polls.push({ fd: descriptor.fd, events: wait.type === EVENTTYPE.fd_read ? POLLIN : POLLOUT });
      }
    } catch (error) {
      if (!(error instanceof WasiError)) throw error;
      wait.errno = error.errno;
    }
    return wait;
  }

  return {
    poll_oneoff: (inAt: number, outAt: number, count: number, usedAt: number) => {
      const n = count >>> 0;
      if (n === 0 || n > MAX_SUBSCRIPTIONS) throw new WasiError(ERRNO.inval);
      memory.address(inAt >>> 0, n * SUBSCRIPTION_BYTES);
      memory.address(outAt >>> 0, n * EVENT_BYTES);
      const polls: { fd: number; events: number }[] = [];
      const waits = Array.from({ length: n }, (_, i) => readWait((inAt >>> 0) + i * SUBSCRIPTION_BYTES, polls));
      const isReady = (wait: Wait) => wait.errno !== 0 || (wait.type !== EVENTTYPE.clock && wait.slot < 0);
      let timeout = -1n;
      for (const wait of waits) {
        if (wait.type === EVENTTYPE.clock && wait.errno === 0 && (timeout < 0n || wait.timeout < timeout)) {
          timeout = wait.timeout;
        }
        if (isReady(wait)) timeout = 0n;
      }
      const { u32, i64, address } = scratch.out;
      const view = new DataView(scratch.out.buffer);
      const timespecAt = polls.length * 8;
      polls.forEach(({ fd, events }, i) => {
        u32[i * 2] = fd;
        view.setUint16(i * 8 + 4, events, true);
        view.setUint16(i * 8 + 6, 0, true);
      });
      i64[timespecAt >> 3] = timeout / 1_000_000_000n;
      i64[(timespecAt >> 3) + 1] = timeout % 1_000_000_000n;
      let ready: number;
      do { // The kernel leaves the time that is left in the timespec.
        ready = sys("ppoll", address, polls.length, timeout < 0n ? 0 : address + timespecAt, 0, 0);
      } while (errnoOf(ready) === ERRNO.intr);
      checked(ready);
      const elapsed = ready === 0;
      let at = outAt >>> 0;
      let used = 0;
      const emit = (wait: Wait, errno: number, hangup: boolean) => {
        memory.bytes(at, EVENT_BYTES).fill(0);
        memory.setU64(at, wait.userdata);
        memory.setU16(at + 8, errno);
        memory.setU8(at + 10, wait.type);
        if (wait.type !== EVENTTYPE.clock) {
          memory.setU64(at + 16, 1);
          memory.setU16(at + 24, hangup ? 1 : 0);
        }
        at += EVENT_BYTES;
        used++;
      };
      for (const wait of waits) {
        if (isReady(wait)) emit(wait, wait.errno, false);
        else if (wait.type === EVENTTYPE.clock) {
          if (elapsed && wait.timeout === timeout) emit(wait, 0, false);
        } else {
          const got = view.getUint16(wait.slot * 8 + 6, true);
          if (got !== 0) {
            emit(
              wait,
              (got & POLLNVAL) !== 0 ? ERRNO.badf : (got & POLLERR) !== 0 ? ERRNO.io : 0,
              (got & POLLHUP) !== 0,
            );
          }
        }
      }
      memory.setU32(usedAt >>> 0, used);
      return 0;
    },
  };
}
