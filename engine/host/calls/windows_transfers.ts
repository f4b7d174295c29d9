/**
 * Reading and writing files, pipes and consoles. In: descriptors, addresses and lengths. Out: the number of bytes
 * moved, or −errno as Linux numbers it.
 *
 * Sources: "NtReadFile", "NtWriteFile", "FILE_PIPE_INFORMATION" of Microsoft's documentation; [MS-FSCC].
 */
import { E } from "./linux_errors.ts";
import { F_SETFL, O, SEEK } from "./linux_flags.ts";
import type { Descriptors, Opened } from "./windows_descriptors.ts";
import {
  AT_INFO,
  AT_IO_STATUS,
  AT_WORDS,
  ERROR_BROKEN_PIPE,
  errorOf,
  FILE_TYPE,
  INFO,
  isGood,
  STATUS_ACCESS_DENIED,
  STATUS_END_OF_FILE,
  statusOf,
  type WindowsSystem,
} from "./windows_system.ts";

/** The offset of a write that appends. */
const TO_END = -1n;
/** Completion modes of FILE_PIPE_INFORMATION. */
const PIPE_MODE = { WAIT: 0, NOWAIT: 1 } as const;
const ERROR_NO_DATA = 232;
const ERROR_HANDLE_EOF = 38;
/** What ReadFile and WriteFile say of a handle without the right, or of none. */
const ERROR_ACCESS_DENIED = 5;
const ERROR_INVALID_HANDLE = 6;
/** The most bytes that one call moves. */
const MAX_BYTES = 0x7fffffff;

export class Transfers {
  readonly #system: WindowsSystem;
  readonly #descriptors: Descriptors;

  constructor(system: WindowsSystem, descriptors: Descriptors) {
    this.#system = system;
    this.#descriptors = descriptors;
  }

  /** Reads or writes vectors in turn; the bytes moved, or −errno when there were none. */
  transfer(
    way: "Read" | "Write",
    fd: number | bigint,
    vectors: readonly (readonly [address: number, bytes: number])[],
    offset?: bigint,
  ): number {
    return this.#descriptors.with(fd, (opened) => {
      if (opened.isDirectory) return E.ISDIR;
      if (offset !== undefined && opened.isStandard && !this.#isFile(opened.handle)) return E.SPIPE;
      let done = 0;
      for (const [address, bytes] of vectors) {
        if (bytes === 0) continue;
        const moved = opened.isStandard && offset === undefined
          ? this.#moveStream(way, opened, address, bytes)
          : this.#moveFile(way, opened, address, bytes, offset === undefined ? undefined : offset + BigInt(done));
        if (moved < 0) return done > 0 ? done : moved;
        done += moved;
        if (moved < bytes) break;
      }
      return done;
    });
  }

  /** Moves the first vector through a pipe without waiting: the bytes moved, EAGAIN, or EOPNOTSUPP for no pipe. */
  transferNow(way: "Read" | "Write", fd: number | bigint, [vector]: readonly (readonly [number, number])[]): number {
    return this.#descriptors.with(fd, (opened) => {
      const { handle } = opened;
      if (vector === undefined || !this.#setPipeMode(handle, PIPE_MODE.NOWAIT)) return E.OPNOTSUPP;
      try {
        if (way === "Write") return this.#writeNow(opened, ...vector);
        const got = this.#moveStream(way, opened, ...vector);
        return got === 0 && this.#system.error() === ERROR_NO_DATA ? E.AGAIN : got;
      } finally {
        this.#setPipeMode(handle, PIPE_MODE.WAIT);
      }
    });
  }

  seek(fd: number | bigint, offset: bigint, whence: number): number {
    return this.#descriptors.with(fd, (opened) => {
      if (opened.isDirectory) {
        opened.restarts ||= offset === 0n && whence === SEEK.SET;
        return 0;
      }
      if (opened.isStandard) return this.#seekStream(opened.handle, offset, whence);
      const base = whence === SEEK.SET ? 0n : whence === SEEK.CUR ? opened.position : this.#system.size(opened.handle);
      if (base + offset < 0n) return E.INVAL;
      opened.position = base + offset;
      return Number(opened.position);
    });
  }

  setFlags(fd: number | bigint, command: number, flags: number): number {
    return this.#descriptors.with(fd, (opened) => {
      if (command !== F_SETFL) return E.INVAL;
      opened.appends = (flags & O.APPEND) !== 0;
      return 0;
    });
  }

  flush(fd: number | bigint): number {
    return this.#descriptors.with(fd, ({ handle }) => {
      const status = statusOf(this.#system.call("NtFlushBuffersFile", handle, this.#system.scratch + AT_IO_STATUS));
      return isGood(status) || status === STATUS_ACCESS_DENIED ? 0 : errorOf(status); // a reader has nothing to flush
    });
  }

  allocate(fd: number | bigint, offset: bigint, length: bigint): number {
    if (offset < 0n || length <= 0n) return E.INVAL;
    return this.#descriptors.with(fd, ({ handle, isDirectory }) => {
      if (isDirectory) return E.ISDIR;
      return offset + length <= this.#system.size(handle) ? 0 : this.#system.setEnd(handle, offset + length);
    });
  }

  #moveStream(way: "Read" | "Write", { handle }: Opened, address: number, bytes: number): number {
    const { call, scratch, error } = this.#system;
    const good = call(`${way}File`, handle, address, Math.min(bytes, MAX_BYTES), scratch + AT_WORDS, 0) & 0xffffffffn;
    if (good !== 0n) return this.#system.structures.getUint32(AT_WORDS, true);
    const code = error();
    if (code === ERROR_BROKEN_PIPE || code === ERROR_NO_DATA) return way === "Read" ? 0 : E.PIPE;
    return code === ERROR_HANDLE_EOF
      ? 0
      : code === ERROR_ACCESS_DENIED || code === ERROR_INVALID_HANDLE
      ? E.BADF
      : E.IO;
  }

  /** Writes as much as a pipe takes. It may refuse more than it has room for as a whole. */
  #writeNow(opened: Opened, address: number, bytes: number): number {
    for (let size = bytes; size > 0; size >>= 1) {
      const done = this.#moveStream("Write", opened, address, size);
      if (done !== 0) return done;
    }
    opened.isFull = true;
    return E.AGAIN;
  }

  /** Sets whether reads and writes of a pipe wait; false where that cannot be chosen. */
  #setPipeMode(handle: bigint, mode: number): boolean {
    if (!isGood(this.#system.query(handle, INFO.PIPE, 8))) return false;
    this.#system.structures.setUint32(AT_INFO + 4, mode, true); // behind the mode of reading, which stays
    return isGood(this.#system.set(handle, INFO.PIPE, 8));
  }

  #moveFile(way: "Read" | "Write", opened: Opened, address: number, bytes: number, offset?: bigint): number {
    const { call, scratch } = this.#system;
    const appends = way === "Write" && opened.appends;
    this.#system.structures.setBigInt64(AT_WORDS, appends ? TO_END : offset ?? opened.position, true);
    const size = Math.min(bytes, MAX_BYTES);
    const [statusAt, offsetAt] = [scratch + AT_IO_STATUS, scratch + AT_WORDS];
    const status = statusOf(call(`Nt${way}File`, opened.handle, 0, 0, 0, statusAt, address, size, offsetAt, 0));
    if (status === STATUS_END_OF_FILE) return 0;
    if (!isGood(status)) return status === STATUS_ACCESS_DENIED ? E.BADF : errorOf(status);
    const moved = Number(this.#system.structures.getBigUint64(AT_IO_STATUS + 8, true));
    if (offset === undefined) {
      opened.position = appends ? this.#system.size(opened.handle) : opened.position + BigInt(moved);
    }
    return moved;
  }

  #isFile(handle: bigint): boolean {
    return Number(this.#system.call("GetFileType", handle) & 0xffffffffn) === FILE_TYPE.DISK;
  }

  #seekStream(handle: bigint, offset: bigint, whence: number): number {
    const { call, scratch } = this.#system;
    if (!this.#isFile(handle)) return E.SPIPE;
    if ((call("SetFilePointerEx", handle, offset, scratch + AT_WORDS, whence) & 0xffffffffn) === 0n) return E.INVAL;
    return Number(this.#system.structures.getBigInt64(AT_WORDS, true));
  }
}
