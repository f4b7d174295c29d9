/**
 * Functions on open descriptors: fd_* and sock_*.
 */
import { ALL_RIGHTS, ERRNO, FDFLAG, FILETYPE, FSTFLAG, RIGHT, STREAM_RIGHTS, WHENCE } from "./abi.ts";
import type { Descriptor, DirectoryEntry } from "./descriptors.ts";
import type { LinuxCall } from "../host/linux_calls.ts";
import type { WasiFunction, WasiState } from "./mod.ts";
import { checked, WasiError } from "./paths.ts";
import { readClock } from "./clock.ts";
import { readStatus, writeStatus } from "./status.ts";

/** The most vectors of one scatter or gather call (Linux's IOV_MAX). */
const MAX_VECTORS = 1024;
const UTIME_OMIT = 0x3ffffffen;
const F_SETFL = 4;
const POLLIN = 1;
const POLLOUT = 4;
/** Linux's advice by WASI's: two of them change places. */
const ADVICE = [0, 2, 1, 3, 4, 5];
/** Linux file types of directory entries (DT_*) to WASI's. */
const ENTRY_TYPES: Readonly<Record<number, number>> = {
  2: FILETYPE.character_device,
  4: FILETYPE.directory,
  6: FILETYPE.block_device,
  8: FILETYPE.regular_file,
  10: FILETYPE.symbolic_link,
  12: FILETYPE.socket_stream,
};

/** Writes the two timespecs of utimensat to the scratch buffer. */
export function writeTimes(state: WasiState, accessed: bigint, modified: bigint, flags: number): number {
  const { atim, atim_now, mtim, mtim_now } = FSTFLAG;
  if (((flags & atim) !== 0 && (flags & atim_now) !== 0) || ((flags & mtim) !== 0 && (flags & mtim_now) !== 0)) {
    throw new WasiError(ERRNO.inval);
  }
  const now = readClock(state, 0, "clock_gettime");
  const { i64, address } = state.scratch.out;
  const put = (index: number, time: bigint, set: boolean, setNow: boolean) => {
    const value = setNow ? now : BigInt.asUintN(64, time);
    i64[index] = set || setNow ? value / 1_000_000_000n : 0n;
    i64[index + 1] = set || setNow ? value % 1_000_000_000n : UTIME_OMIT;
  };
  put(0, accessed, (flags & atim) !== 0, (flags & atim_now) !== 0);
  put(2, modified, (flags & mtim) !== 0, (flags & mtim_now) !== 0);
  return address;
}

/** WASI descriptor flags as Linux's. */
export function linuxFdFlags({ open }: WasiState, flags: number): number {
  return ((flags & FDFLAG.append) !== 0 ? open.APPEND : 0) |
    ((flags & FDFLAG.nonblock) !== 0 ? open.NONBLOCK : 0) |
    ((flags & FDFLAG.dsync) !== 0 ? open.DSYNC : 0) |
    ((flags & (FDFLAG.sync | FDFLAG.rsync)) !== 0 ? open.SYNC : 0);
}

export function fileFunctions(state: WasiState): Record<string, WasiFunction> {
  const { sys, scratch, memory, descriptors } = state;

  /** Copies the guest's vectors to the scratch buffer with real addresses; returns how many. */
  function vectors(at: number, count: number): number {
    if (count > MAX_VECTORS) throw new WasiError(ERRNO.inval);
    for (let i = 0; i < count; i++) {
      const pointer = memory.u32(at + i * 8);
      const length = memory.u32(at + i * 8 + 4);
      scratch.out.setWord(i * 16, memory.address(pointer, length));
      scratch.out.setWord(i * 16 + 8, length);
    }
    return count;
  }

  function transfer(call: LinuxCall, right: number, seeks: boolean): WasiFunction {
    return (fd: number, at: number, count: number, offsetOrOut: bigint | number, out?: number) => {
      const descriptor = descriptors.get(fd);
      if (descriptor.filetype === FILETYPE.directory) throw new WasiError(ERRNO.isdir);
      if (seeks) mustSeek(descriptor);
      descriptors.get(fd, seeks ? right | RIGHT.fd_seek : right);
      if (descriptor.borrowed && (descriptor.flags & FDFLAG.nonblock) !== 0) mustBeReady(descriptor, right);
      const n = vectors(at >>> 0, count >>> 0);
      const offset = seeks ? [BigInt.asUintN(64, offsetOrOut as bigint), 0] : [];
      if (seeks && (offset[0] as bigint) >= 1n << 63n) throw new WasiError(ERRNO.inval);
      const done = checked(sys(call, descriptor.fd, scratch.out.address, n, ...offset));
      memory.setU32((seeks ? out! : offsetOrOut as number) >>> 0, done);
      return 0;
    };
  }

  function simple(right: number, action: (descriptor: Descriptor, ...args: never[]) => number): WasiFunction {
    return (fd: number, ...args: never[]) => {
      checked(action(descriptors.get(fd, right), ...args));
      return 0;
    };
  }

  /** Streams have no position: POSIX's ESPIPE, which programs expect, rather than a missing right. */
  function mustSeek({ filetype, rights }: Descriptor): void {
    const streams = filetype !== FILETYPE.regular_file && filetype !== FILETYPE.block_device;
    if (streams && (rights & RIGHT.fd_seek) === 0) throw new WasiError(ERRNO.spipe);
  }

  /** Nonblocking reads and writes of descriptors whose flags we must not touch, because other processes share them. */
  function mustBeReady({ fd }: Descriptor, right: number): void {
    const { u32, address } = scratch.out;
    u32[0] = fd;
    u32[1] = right === RIGHT.fd_read ? POLLIN : POLLOUT;
    u32.fill(0, 2, 6); // no waiting
    if (checked(sys("ppoll", address, 1, address + 8, 0, 0)) === 0) throw new WasiError(ERRNO.again);
  }

  function seek(index: number, right: number, offset: bigint, whence: number, at: number): number {
    const descriptor = descriptors.get(index);
    if (descriptor.filetype === FILETYPE.directory) throw new WasiError(ERRNO.badf);
    mustSeek(descriptor);
    descriptors.get(index, right);
    if (whence < WHENCE.set || whence > WHENCE.end) throw new WasiError(ERRNO.inval);
    memory.setU64(at >>> 0, checked(sys("lseek", descriptor.fd, offset, whence)));
    return 0;
  }

  function readEntries(descriptor: Descriptor): DirectoryEntry[] {
    checked(sys("lseek", descriptor.fd, 0, WHENCE.set));
    const { address, size, u8, buffer } = scratch.out;
    const view = new DataView(buffer);
    const entries: DirectoryEntry[] = [];
    for (;;) {
      const length = checked(sys("getdents64", descriptor.fd, address, size));
      if (length === 0) return entries;
      for (let at = 0; at < length; at += view.getUint16(at + 16, true)) {
        let end = at + 19;
        while (u8[end] !== 0) end++;
        entries.push({
          inode: view.getBigUint64(at, true),
          type: ENTRY_TYPES[u8[at + 18]!] ?? FILETYPE.unknown,
          name: u8.slice(at + 19, end),
        });
      }
    }
  }

  return {
    fd_advise: simple(RIGHT.fd_advise, ({ fd }, offset: bigint, length: bigint, advice: number) => {
      const linux = ADVICE[advice];
      if (linux === undefined) throw new WasiError(ERRNO.inval);
      return sys("fadvise64", fd, offset, length, linux);
    }),
    fd_allocate: simple(
      RIGHT.fd_allocate,
      ({ fd }, offset: bigint, length: bigint) => sys("fallocate", fd, 0, offset, length),
    ),
    fd_close: (index: number) => {
      const { fd, borrowed } = descriptors.remove(index);
      if (!borrowed) checked(sys("close", fd));
      return 0;
    },
    fd_datasync: simple(RIGHT.fd_datasync, ({ fd }) => sys("fdatasync", fd)),
    fd_sync: simple(RIGHT.fd_sync, ({ fd }) => sys("fsync", fd)),
    fd_fdstat_get: (index: number, at: number) => {
      const { filetype, flags, rights, inheriting } = descriptors.get(index);
      const to = at >>> 0;
      memory.bytes(to, 24).fill(0);
      memory.setU8(to, filetype);
      memory.setU16(to + 2, flags);
      memory.setU64(to + 8, rights);
      memory.setU64(to + 16, inheriting);
      return 0;
    },
    fd_fdstat_set_flags: simple(RIGHT.fd_fdstat_set_flags, (descriptor, flags: number) => {
      if (flags > 31 || (flags & (FDFLAG.dsync | FDFLAG.sync | FDFLAG.rsync)) !== 0) throw new WasiError(ERRNO.notsup);
      if (descriptor.borrowed) {
        descriptor.flags = flags;
        return 0;
      }
      const result = sys("fcntl", descriptor.fd, F_SETFL, linuxFdFlags(state, flags));
      if (result >= 0) descriptor.flags = flags;
      return result;
    }),
    fd_fdstat_set_rights: (index: number, rights: bigint, inheriting: bigint) => {
      const descriptor = descriptors.get(index);
      if (rights & ~BigInt(descriptor.rights) || inheriting & ~BigInt(descriptor.inheriting)) {
        throw new WasiError(ERRNO.notcapable);
      }
      descriptor.rights = Number(rights);
      descriptor.inheriting = Number(inheriting);
      return 0;
    },
    fd_filestat_get: (index: number, at: number) => {
      const status = readStatus(state, descriptors.get(index, RIGHT.fd_filestat_get).fd);
      if (status === undefined) throw new WasiError(ERRNO.badf);
      writeStatus(memory, at >>> 0, status);
      return 0;
    },
    fd_filestat_set_size: simple(RIGHT.fd_filestat_set_size, ({ fd }, size: bigint) => sys("ftruncate", fd, size)),
    fd_filestat_set_times: simple(
      RIGHT.fd_filestat_set_times,
      ({ fd }, accessed: bigint, modified: bigint, flags: number) =>
        sys("utimensat", fd, 0, writeTimes(state, accessed, modified, flags), 0),
    ),
    fd_read: transfer("readv", RIGHT.fd_read, false),
    fd_pread: transfer("preadv", RIGHT.fd_read, true),
    fd_write: transfer("writev", RIGHT.fd_write, false),
    fd_pwrite: transfer("pwritev", RIGHT.fd_write, true),
    fd_seek: (index: number, offset: bigint, whence: number, at: number) =>
      seek(index, RIGHT.fd_seek, offset, whence, at),
    fd_tell: (index: number, at: number) => seek(index, RIGHT.fd_tell, 0n, WHENCE.cur, at),
    fd_prestat_get: (index: number, at: number) => {
      const { preopen } = descriptors.get(index);
      if (preopen === undefined) throw new WasiError(ERRNO.badf);
      memory.setU32(at >>> 0, 0);
      memory.setU32((at >>> 0) + 4, new TextEncoder().encode(preopen).length);
      return 0;
    },
    fd_prestat_dir_name: (index: number, at: number, length: number) => {
      const { preopen } = descriptors.get(index);
      if (preopen === undefined) throw new WasiError(ERRNO.badf);
      const bytes = new TextEncoder().encode(preopen);
      if (length >>> 0 < bytes.length) throw new WasiError(ERRNO.nametoolong);
      memory.bytes(at >>> 0, bytes.length).set(bytes);
      return 0;
    },
    fd_readdir: (index: number, at: number, length: number, cookie: bigint, usedAt: number) => {
      const descriptor = descriptors.get(index, RIGHT.fd_readdir);
      if (descriptor.filetype !== FILETYPE.directory) throw new WasiError(ERRNO.notdir);
      if (cookie === 0n || descriptor.entries === undefined) descriptor.entries = readEntries(descriptor);
      const target = memory.bytes(at >>> 0, length >>> 0);
      const record = new Uint8Array(24);
      const view = new DataView(record.buffer);
      let used = 0;
      const first = Math.min(Number(BigInt.asUintN(64, cookie)), descriptor.entries.length);
      for (let i = first; i < descriptor.entries.length && used < target.length; i++) {
        const { name, inode, type } = descriptor.entries[i]!;
        view.setBigUint64(0, BigInt(i + 1), true);
        view.setBigUint64(8, inode, true);
        view.setUint32(16, name.length, true);
        view.setUint32(20, type, true);
        for (const part of [record, name]) {
          const fits = part.subarray(0, target.length - used);
          target.set(fits, used);
          used += fits.length;
        }
      }
      memory.setU32(usedAt >>> 0, used);
      return 0;
    },
    fd_renumber: (from: number, to: number) => {
      const old = descriptors.move(from, to);
      if (from !== to && !old.borrowed) checked(sys("close", old.fd));
      return 0;
    },
    sock_accept: (index: number, flags: number, at: number) => {
      const { fd } = descriptors.get(index, RIGHT.sock_accept);
      const nonblock = (flags & FDFLAG.nonblock) !== 0 ? state.open.NONBLOCK : 0;
      const accepted = checked(sys("accept4", fd, 0, 0, nonblock | state.open.CLOEXEC));
      const number = descriptors.add({
        fd: accepted,
        filetype: FILETYPE.socket_stream,
        flags,
        rights: STREAM_RIGHTS,
        inheriting: 0,
        borrowed: false,
      });
      memory.setU32(at >>> 0, number);
      return 0;
    },
    sock_recv: (index: number, at: number, count: number, flags: number, lengthAt: number, flagsAt: number) => {
      const { fd } = descriptors.get(index, RIGHT.fd_read);
      if (count !== 1) throw new WasiError(ERRNO.notsup);
      const length = memory.u32((at >>> 0) + 4);
      const address = memory.address(memory.u32(at >>> 0), length);
      const peek = (flags & 1) !== 0 ? 2 : 0; // MSG_PEEK
      const waitAll = (flags & 2) !== 0 ? 0x100 : 0; // MSG_WAITALL
      memory.setU32(lengthAt >>> 0, checked(sys("recvfrom", fd, address, length, peek | waitAll)));
      memory.setU16(flagsAt >>> 0, 0);
      return 0;
    },
    sock_send: (index: number, at: number, count: number, flags: number, lengthAt: number) => {
      const { fd } = descriptors.get(index, RIGHT.fd_write);
      if (count !== 1 || flags !== 0) throw new WasiError(ERRNO.notsup);
      const length = memory.u32((at >>> 0) + 4);
      const address = memory.address(memory.u32(at >>> 0), length);
      memory.setU32(lengthAt >>> 0, checked(sys("sendto", fd, address, length, 0x4000 /* MSG_NOSIGNAL */)));
      return 0;
    },
    sock_shutdown: simple(RIGHT.sock_shutdown, ({ fd }, how: number) => {
      if (how < 1 || how > 3) throw new WasiError(ERRNO.inval);
      return sys("shutdown", fd, how - 1);
    }),
  };
}

/** Rights that a newly opened descriptor may have. */
export function clipRights(requested: bigint, allowed: number): number {
  return Number(requested & BigInt(allowed & ALL_RIGHTS));
}
