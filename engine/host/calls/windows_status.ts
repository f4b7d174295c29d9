/**
 * Entries of a directory and the status of files, as Linux's structures. In: descriptors, names, addresses. Out: the
 * structures at these addresses, and the bytes written or −errno.
 *
 * Sources: [MS-FSCC]; Linux <linux/stat.h>, getdents(2), statx(2), utimensat(2).
 */
import { E } from "./linux_errors.ts";
import { AT, UTIME_OMIT } from "./linux_flags.ts";
import type { Descriptors } from "./windows_descriptors.ts";
import { ACCESS, type Entries } from "./windows_entries.ts";
import {
  AT_INFO,
  AT_IO_STATUS,
  ATTRIBUTE,
  EPOCH,
  errorOf,
  failureOf,
  FILE_TYPE,
  INFO,
  INFO_BYTES,
  isGood,
  STATUS_NO_MORE_FILES,
  STATUS_NO_SUCH_FILE,
  statusOf,
  TICKS_PER_SECOND,
  type WindowsSystem,
} from "./windows_system.ts";

const FS_VOLUME = 1;
const MODE = { FIFO: 0x1000, CHARACTER: 0x2000, DIRECTORY: 0x41ff, FILE: 0x81b6, LINK: 0xa1ff } as const;
const STATX_BYTES = 256;

export class FileStatus {
  readonly #system: WindowsSystem;
  readonly #descriptors: Descriptors;
  readonly #entries: Entries;

  constructor(system: WindowsSystem, descriptors: Descriptors, entries: Entries) {
    this.#system = system;
    this.#descriptors = descriptors;
    this.#entries = entries;
  }

  /** Writes entries as Linux's, as many as fit; 0 at the end. */
  readDirectory(fd: number | bigint, at: number, bytes: number): number {
    return this.#descriptors.with(fd, (opened) => {
      if (!opened.isDirectory) return E.NOTDIR;
      const { call, scratch, view } = this.#system;
      // An entry of Linux, in UTF-8, is at most one and a half times as long.
      const room = Math.min(Math.floor(bytes / 2), INFO_BYTES);
      const restart = opened.restarts ? 1 : 0;
      const status = statusOf(
        // deno-fmt-ignore
        call("NtQueryDirectoryFile", opened.handle, 0, 0, 0, scratch + AT_IO_STATUS, scratch + AT_INFO, room, INFO.ID_BOTH_DIRECTORY, 0, 0, restart),
      );
      if (status === STATUS_NO_MORE_FILES || status === STATUS_NO_SUCH_FILE) return 0;
      if (!isGood(status)) return errorOf(status);
      opened.restarts = false;
      return this.#writeEntries(view(at, bytes));
    });
  }

  /** Translates FILE_ID_BOTH_DIR_INFORMATION to linux_dirent64; the bytes written. */
  #writeEntries(to: DataView): number {
    const from = this.#system.structures;
    let used = 0;
    for (let entry = AT_INFO;;) {
      const name = new TextEncoder().encode(this.#system.wideText(entry + 104, from.getUint32(entry + 60, true) / 2));
      const attributes = from.getUint32(entry + 56, true);
      const size = Math.ceil((20 + name.length) / 8) * 8;
      to.setBigUint64(used, from.getBigUint64(entry + 96, true), true);
      to.setBigUint64(used + 8, 0n, true);
      to.setUint16(used + 16, size, true);
      to.setUint8(
        used + 18,
        (attributes & ATTRIBUTE.REPARSE_POINT) !== 0 ? 10 : (attributes & ATTRIBUTE.DIRECTORY) !== 0 ? 4 : 8,
      );
      for (let k = 0; k < size - 19; k++) to.setUint8(used + 19 + k, name[k] ?? 0);
      used += size;
      const next = from.getUint32(entry, true);
      if (next === 0) return used;
      entry += next;
    }
  }

  status(fd: number, path: string, flags: number, at: number): number {
    if ((flags & AT.EMPTY_PATH) !== 0 && path === "") {
      return this.#descriptors.with(fd, (opened) => this.#writeStatus(opened.handle, at));
    }
    const follow = fd === AT.FDCWD && (flags & AT.NOFOLLOW) === 0;
    return this.#entries.with(fd, path, { access: 0, follow }, (handle) => this.#writeStatus(handle, at));
  }

  #writeStatus(handle: bigint, at: number): number {
    const { call, scratch, view } = this.#system;
    const to = view(at, STATX_BYTES);
    new Uint8Array(to.buffer).fill(0);
    const type = Number(call("GetFileType", handle) & 0xffffffffn);
    if (type !== FILE_TYPE.DISK) {
      to.setUint16(28, type === FILE_TYPE.PIPE ? MODE.FIFO : MODE.CHARACTER, true);
      return type === 0 ? E.BADF : 0;
    }
    const { isDirectory, isLink } = this.#system.attributeTag(handle);
    to.setUint16(28, isLink ? MODE.LINK : isDirectory ? MODE.DIRECTORY : MODE.FILE, true);
    let status = this.#system.query(handle, INFO.STANDARD, 24);
    if (!isGood(status)) return errorOf(status);
    to.setBigInt64(40, this.#system.structures.getBigInt64(AT_INFO + 8, true), true);
    to.setUint32(16, Math.max(this.#system.structures.getUint32(AT_INFO + 16, true), 1), true);
    status = this.#system.query(handle, INFO.INTERNAL, 8);
    if (!isGood(status)) return errorOf(status);
    to.setBigUint64(32, this.#system.structures.getBigUint64(AT_INFO, true), true);
    status = this.#system.query(handle, INFO.BASIC, 40);
    if (!isGood(status)) return errorOf(status);
    for (const [from, time] of [[8, 64], [16, 112], [24, 96]] as const) {
      const ticks = this.#system.structures.getBigInt64(AT_INFO + from, true) - EPOCH;
      this.#writeTime(to, time, ticks < 0n ? 0n : ticks);
    }
    const [statusAt, infoAt] = [scratch + AT_IO_STATUS, scratch + AT_INFO];
    if (isGood(statusOf(call("NtQueryVolumeInformationFile", handle, statusAt, infoAt, INFO_BYTES, FS_VOLUME)))) {
      to.setUint32(140, this.#system.structures.getUint32(AT_INFO + 8, true), true);
    }
    return 0;
  }

  /** Writes 100 ns units as a timespec. */
  #writeTime(to: DataView, at: number, ticks: bigint): void {
    to.setBigInt64(at, ticks / TICKS_PER_SECOND, true);
    to.setUint32(at + 8, Number(ticks % TICKS_PER_SECOND) * 100, true);
  }

  setTimes(fd: number, path: number | bigint, times: number): number {
    const view = this.#system.view(times, 32);
    const [accessed, modified] = [0, 16].map((at) => {
      const nanoseconds = view.getBigInt64(at + 8, true);
      if (nanoseconds === UTIME_OMIT) return 0n;
      return view.getBigInt64(at, true) * TICKS_PER_SECOND + nanoseconds / 100n + EPOCH;
    });
    const set = (handle: bigint): number => {
      new Uint8Array(this.#system.structures.buffer, AT_INFO, 40).fill(0);
      this.#system.structures.setBigInt64(AT_INFO + 8, accessed!, true);
      this.#system.structures.setBigInt64(AT_INFO + 16, modified!, true);
      const status = this.#system.set(handle, INFO.BASIC, 40);
      return failureOf(status);
    };
    if (Number(path) === 0) return this.#descriptors.with(fd, ({ handle }) => set(handle));
    return this.#entries.with(fd, this.#system.text(path), { access: ACCESS.WRITE_ATTRIBUTES }, set);
  }
}
