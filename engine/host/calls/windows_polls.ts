/**
 * Waiting for streams (ppoll(2)). In: pollfd records and a time. Out: the number of records with events.
 *
 * Windows has no wait for a pipe's bytes, so a wait looks at it every few milliseconds. A pipe does not report its free
 * space, so it counts as writable until it refuses a write.
 */
import { isRuntimeFile } from "../runtime_files.ts";
import { POLL } from "./linux_flags.ts";
import type { Clocks } from "./windows_clocks.ts";
import { type Descriptors, isForeign, type Opened } from "./windows_descriptors.ts";
import { AT_WORDS, ERROR_BROKEN_PIPE, FILE_TYPE, TICKS_PER_SECOND, type WindowsSystem } from "./windows_system.ts";

/** The interval at which a wait polls a pipe or a console, in 100 ns units. */
const LOOK_TICKS = 20_000n;

export class Polls {
  readonly #system: WindowsSystem;
  readonly #descriptors: Descriptors;
  readonly #clocks: Clocks;

  constructor(system: WindowsSystem, descriptors: Descriptors, clocks: Clocks) {
    this.#system = system;
    this.#descriptors = descriptors;
    this.#clocks = clocks;
  }

  poll(at: number, count: number, timeAt: number): number {
    const records = this.#system.view(at, Math.max(8 * count, 1));
    const time = timeAt === 0 ? undefined : this.#system.view(timeAt, 16);
    const wanted = time === undefined
      ? undefined
      : time.getBigInt64(0, true) * TICKS_PER_SECOND + (time.getBigInt64(8, true) + 99n) / 100n;
    const started = this.#clocks.ticks(1)!;
    for (;;) {
      let ready = 0;
      for (let k = 0; k < count; k++) if (this.#look(records, 8 * k)) ready++;
      if (ready > 0) return ready;
      const left = wanted === undefined ? undefined : wanted - (this.#clocks.ticks(1)! - started);
      if (left !== undefined && left <= 0n) return 0;
      this.#clocks.sleep(
        count === 0 ? left ?? LOOK_TICKS : left === undefined || left > LOOK_TICKS ? LOOK_TICKS : left,
      );
    }
  }

  /** Fills the result of one pollfd record; returns whether it has any event. */
  #look(records: DataView, at: number): boolean {
    const fd = records.getInt32(at, true);
    const opened = this.#descriptors.opened(fd);
    const events = records.getUint16(at + 4, true);
    const found = opened === undefined
      ? isForeign(fd) && isRuntimeFile(fd) ? events & (POLL.IN | POLL.OUT) : POLL.NVAL
      : this.#writable(opened, events) | ((events & POLL.IN) !== 0 ? this.#readable(opened.handle) : 0);
    records.setUint16(at + 6, found, true);
    return found !== 0;
  }

  #writable(opened: Opened, events: number): number {
    if ((events & POLL.OUT) === 0) return 0;
    const wasFull = opened.isFull;
    opened.isFull = false;
    return wasFull ? 0 : POLL.OUT;
  }

  #readable(handle: bigint): number {
    const { call, scratch, error } = this.#system;
    const type = Number(call("GetFileType", handle) & 0xffffffffn);
    const words = scratch + AT_WORDS;
    if (type === FILE_TYPE.PIPE) {
      if ((call("PeekNamedPipe", handle, 0, 0, 0, words, 0) & 0xffffffffn) !== 0n) {
        return this.#system.structures.getUint32(AT_WORDS, true) > 0 ? POLL.IN : 0;
      }
      return error() === ERROR_BROKEN_PIPE ? POLL.IN | POLL.HUP : POLL.IN;
    }
    if (type !== FILE_TYPE.CHARACTER || (call("GetConsoleMode", handle, words) & 0xffffffffn) === 0n) return POLL.IN;
    call("GetNumberOfConsoleInputEvents", handle, words);
    return this.#system.structures.getUint32(AT_WORDS, true) > 0 ? POLL.IN : 0;
  }
}
