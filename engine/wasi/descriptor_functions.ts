/**
 * WASI functions on open descriptors: fd_*. In: a descriptor of the guest and addresses in its memory. Out: results of
 * system calls on the process's own descriptor, which operate directly on the guest's memory.
 *
 * Invariant: reads and writes on streams wait no longer than the call's deadline (waits.ts).
 */
import { ERRNO, FDFLAG, FILETYPE, FSTFLAG, type FunctionName, RIGHT, rightsFor, WHENCE } from "./abi.ts";
import { readClock } from "./clock_functions.ts";
import { type Descriptor, type DirectoryEntry, isNonblocking } from "./descriptors.ts";
import type { WasiState } from "./functions.ts";
import { readStatus, writeStatus } from "./status.ts";
import { PIECE_BYTES, POLL, requireReady } from "./waits.ts";
import { checked, WasiError } from "./wasi_error.ts";

/** Maximum number of vectors in one scatter or gather call (Linux's IOV_MAX). */
const MAX_VECTORS = 1024;
const VECTOR_BYTES = 16;
/** Bytes of a file that a call with limits allocates at once: some file systems write zeroes to all of them. */
const ALLOCATED_BYTES = 1n << 26n;
const MAX_FILE_BYTES = 1n << 63n;
const UTIME_OMIT = 0x3ffffffen;
/** The command of fcntl that sets the flags of a descriptor. */
export const F_SETFL = 4;
/** Linux's advice by WASI's; two of them swap. */
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
/** Bytes of a directory entry before its name (witx: dirent). */
const DIRENT_BYTES = 24;

const ENCODER = new TextEncoder();

/** Writes the two timespecs of utimensat to the scratch buffer; its address. */
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

/** Streams have no position: POSIX's ESPIPE, which programs expect, rather than a missing right. */
function requireSeekable({ filetype, rights }: Descriptor): void {
  const isStream = filetype !== FILETYPE.regular_file && filetype !== FILETYPE.block_device;
  if (isStream && (rights & RIGHT.fd_seek) === 0) throw new WasiError(ERRNO.spipe);
}

/** Whether an operation on the descriptor may wait for another process. */
function mayWait({ filetype, flags }: Descriptor): boolean {
  return filetype !== FILETYPE.regular_file && filetype !== FILETYPE.block_device && (flags & FDFLAG.nonblock) === 0;
}

/** The functions fd_*. */
export class DescriptorFunctions {
  readonly #state: WasiState;

  constructor(state: WasiState) {
    this.#state = state;
  }

  fd_advise(index: number, offset: bigint, length: bigint, advice: number): number {
    const { fd } = this.#get(index, "fd_advise");
    const linux = ADVICE[advice];
    if (linux === undefined) throw new WasiError(ERRNO.inval);
    checked(this.#state.sys("fadvise64", fd, offset, length, linux));
    return 0;
  }

  fd_allocate(index: number, offset: bigint, length: bigint): number {
    const { fd } = this.#get(index, "fd_allocate");
    const { sys, waits } = this.#state;
    const isRange = offset >= 0n && length > 0n;
    if (isRange && offset + length >= MAX_FILE_BYTES) return ERRNO.fbig; // macOS: EINVAL
    if (waits.isBounded && isRange) this.#allocateInPieces(fd, offset, offset + length);
    else checked(sys("fallocate", fd, 0, offset, length));
    return 0;
  }

  /**
   * Allocates a range piece by piece, under the limits of the call. The last piece comes first: an end that the file
   * system refuses is an error before anything is allocated. After an error, the file has its former size.
   */
  #allocateInPieces(fd: number, start: bigint, end: bigint): void {
    const { sys, waits } = this.#state;
    const status = readStatus(this.#state, fd);
    if (status === undefined) throw new WasiError(ERRNO.io);
    let at = end;
    try {
      while (at > start) {
        waits.check();
        const piece = at - start < ALLOCATED_BYTES ? at - start : ALLOCATED_BYTES;
        waits.charge(Number(piece));
        checked(sys("fallocate", fd, 0, at - piece, piece));
        at -= piece;
      }
    } catch (error) {
      if (at < end && status.size < end) sys("ftruncate", fd, status.size);
      throw error;
    }
  }

  fd_close(index: number): number {
    const { fd, borrowed } = this.#state.descriptors.remove(index);
    if (!borrowed) checked(this.#state.sys("close", fd));
    return 0;
  }

  fd_datasync(index: number): number {
    checked(this.#state.sys("fdatasync", this.#get(index, "fd_datasync").fd));
    return 0;
  }

  fd_sync(index: number): number {
    checked(this.#state.sys("fsync", this.#get(index, "fd_sync").fd));
    return 0;
  }

  fd_fdstat_get(index: number, at: number): number {
    const { memory, descriptors } = this.#state;
    const { filetype, flags, rights, inheriting } = descriptors.get(index);
    const to = at >>> 0;
    memory.bytes(to, 24).fill(0);
    memory.setU8(to, filetype);
    memory.setU16(to + 2, flags);
    memory.setU64(to + 8, rights);
    memory.setU64(to + 16, inheriting);
    return 0;
  }

  fd_fdstat_set_flags(index: number, flags: number): number {
    const descriptor = this.#get(index, "fd_fdstat_set_flags");
    if (flags > 31 || (flags & (FDFLAG.dsync | FDFLAG.sync | FDFLAG.rsync)) !== 0) throw new WasiError(ERRNO.notsup);
    if (!descriptor.borrowed) {
      checked(this.#state.sys("fcntl", descriptor.fd, F_SETFL, linuxFdFlags(this.#state, flags)));
    }
    descriptor.flags = flags;
    return 0;
  }

  fd_fdstat_set_rights(index: number, rights: bigint, inheriting: bigint): number {
    const descriptor = this.#state.descriptors.get(index);
    if (rights & ~BigInt(descriptor.rights) || inheriting & ~BigInt(descriptor.inheriting)) {
      throw new WasiError(ERRNO.notcapable);
    }
    descriptor.rights = Number(rights);
    descriptor.inheriting = Number(inheriting);
    return 0;
  }

  fd_filestat_get(index: number, at: number): number {
    const status = readStatus(this.#state, this.#get(index, "fd_filestat_get").fd);
    if (status === undefined) throw new WasiError(ERRNO.badf);
    writeStatus(this.#state.memory, at >>> 0, status);
    return 0;
  }

  fd_filestat_set_size(index: number, size: bigint): number {
    checked(this.#state.sys("ftruncate", this.#get(index, "fd_filestat_set_size").fd, size));
    return 0;
  }

  fd_filestat_set_times(index: number, accessed: bigint, modified: bigint, flags: number): number {
    const { fd } = this.#get(index, "fd_filestat_set_times");
    checked(this.#state.sys("utimensat", fd, 0, writeTimes(this.#state, accessed, modified, flags), 0));
    return 0;
  }

  fd_read(index: number, at: number, count: number, gotAt: number): number {
    const descriptor = this.#transferable(index, rightsFor("fd_read"));
    if (descriptor.borrowed && isNonblocking(descriptor)) requireReady(this.#state.waits, descriptor.fd, POLL.IN);
    const { sys, scratch, waits } = this.#state;
    const n = this.#vectors(at >>> 0, count >>> 0);
    const { fd } = descriptor;
    const got = mayWait(descriptor)
      ? this.#paid(waits.read(fd, scratch.out.address, this.#firstPiece(n)))
      : this.#inPieces(n, (address, vectors) => sys("readv", fd, address, vectors));
    return this.#transferred(got, gotAt);
  }

  fd_write(index: number, at: number, count: number, doneAt: number): number {
    const descriptor = this.#transferable(index, rightsFor("fd_write"));
    if (descriptor.borrowed && isNonblocking(descriptor)) requireReady(this.#state.waits, descriptor.fd, POLL.OUT);
    const { sys, scratch, waits } = this.#state;
    const n = this.#vectors(at >>> 0, count >>> 0);
    const { fd } = descriptor;
    const done = !mayWait(descriptor)
      ? this.#inPieces(n, (address, vectors) => sys("writev", fd, address, vectors))
      : waits.isBounded
      ? checked(this.#writeClipped(fd, n))
      : this.#paid(waits.writeVectors(fd, scratch.out.address, n));
    return this.#transferred(done, doneAt);
  }

  fd_pread(index: number, at: number, count: number, offset: bigint, gotAt: number): number {
    return this.#transferAt("preadv", rightsFor("fd_pread"), index, at, count, offset, gotAt);
  }

  fd_pwrite(index: number, at: number, count: number, offset: bigint, doneAt: number): number {
    return this.#transferAt("pwritev", rightsFor("fd_pwrite"), index, at, count, offset, doneAt);
  }

  fd_seek(index: number, offset: bigint, whence: number, at: number): number {
    return this.#seek(index, rightsFor("fd_seek"), offset, whence, at);
  }

  fd_tell(index: number, at: number): number {
    return this.#seek(index, rightsFor("fd_tell"), 0n, WHENCE.cur, at);
  }

  fd_prestat_get(index: number, at: number): number {
    const { memory } = this.#state;
    const name = this.#preopenOf(index);
    memory.setU32(at >>> 0, 0);
    memory.setU32((at >>> 0) + 4, name.length);
    return 0;
  }

  fd_prestat_dir_name(index: number, at: number, length: number): number {
    const name = this.#preopenOf(index);
    if (length >>> 0 < name.length) throw new WasiError(ERRNO.nametoolong);
    this.#state.memory.bytes(at >>> 0, name.length).set(name);
    return 0;
  }

  fd_readdir(index: number, at: number, length: number, cookie: bigint, usedAt: number): number {
    const descriptor = this.#get(index, "fd_readdir");
    if (descriptor.filetype !== FILETYPE.directory) throw new WasiError(ERRNO.notdir);
    const { memory, waits, descriptors } = this.#state;
    const isKnown = cookie !== 0n && descriptor.entries !== undefined;
    const entries = isKnown ? descriptor.entries! : this.#readEntries(descriptor);
    if (!isKnown) descriptors.keepEntries(descriptor, entries);
    const used = writeEntries(memory.bytes(at >>> 0, length >>> 0), entries, BigInt.asUintN(64, cookie));
    waits.charge(used);
    memory.setU32(usedAt >>> 0, used);
    return 0;
  }

  fd_renumber(from: number, to: number): number {
    const old = this.#state.descriptors.move(from, to);
    if (from !== to && !old.borrowed) checked(this.#state.sys("close", old.fd));
    return 0;
  }

  /** The descriptor `index`, which must have the rights that a function needs. */
  #get(index: number, name: FunctionName): Descriptor {
    return this.#state.descriptors.get(index, rightsFor(name));
  }

  /** The encoded name of a preopened directory. */
  #preopenOf(index: number): Uint8Array {
    const { preopen } = this.#state.descriptors.get(index);
    if (preopen === undefined) throw new WasiError(ERRNO.badf);
    return ENCODER.encode(preopen);
  }

  /** A descriptor to read or write: no directory, and with `right`. */
  #transferable(index: number, right: number): Descriptor {
    const { descriptors } = this.#state;
    if (descriptors.get(index).filetype === FILETYPE.directory) throw new WasiError(ERRNO.isdir);
    return descriptors.get(index, right);
  }

  /** Copies the guest's vectors to the scratch buffer with real addresses; returns their number. */
  #vectors(at: number, count: number): number {
    const { memory, scratch, waits } = this.#state;
    if (count > MAX_VECTORS) throw new WasiError(ERRNO.inval);
    waits.charge(count * VECTOR_BYTES); // also for vectors of no bytes
    for (let i = 0; i < count; i++) {
      const pointer = memory.u32(at + i * 8);
      const length = memory.u32(at + i * 8 + 4);
      scratch.out.setWord(i * VECTOR_BYTES, memory.address(pointer, length));
      scratch.out.setWord(i * VECTOR_BYTES + 8, length);
    }
    return count;
  }

  /**
   * Moves the bytes of `count` vectors of the scratch buffer by system calls, `move`, of vectors at an address after a
   * number of bytes: by one, or, where a limit has to end it, by many. Charges and returns the bytes moved; throws the
   * error of the first call.
   */
  #inPieces(count: number, move: (address: number, vectors: number, before: number) => number): number {
    const { scratch: { out }, waits } = this.#state;
    if (!waits.isBounded || this.#bytesOf(count) <= PIECE_BYTES) return this.#paid(move(out.address, count, 0));
    let done = 0;
    for (let at = 0; at < count * VECTOR_BYTES; at += VECTOR_BYTES) {
      const [start, length] = [out.word(at), out.word(at + 8)];
      for (let moved = 0; moved < length;) {
        waits.check();
        const piece = Math.min(length - moved, PIECE_BYTES);
        out.setWord(at, start + moved);
        out.setWord(at + 8, piece);
        const result = move(out.address + at, 1, done);
        if (result < 0 && done > 0) return done;
        done += this.#paid(result);
        moved += result;
        if (result < piece) return done;
      }
    }
    return done;
  }

  /** The vectors of the scratch buffer, of `count`, that a call with limits reads into at once; the last is clipped. */
  #firstPiece(count: number): number {
    const { scratch: { out }, waits } = this.#state;
    if (!waits.isBounded) return count;
    let bytes = 0;
    for (let k = 0; k < count; k++) {
      const length = out.word(k * VECTOR_BYTES + 8);
      if (bytes + length >= PIECE_BYTES) {
        out.setWord(k * VECTOR_BYTES + 8, PIECE_BYTES - bytes);
        return k + 1;
      }
      bytes += length;
    }
    return count;
  }

  #bytesOf(count: number): number {
    const { out } = this.#state.scratch;
    let bytes = 0;
    for (let k = 0; k < count; k++) bytes += out.word(k * VECTOR_BYTES + 8);
    return bytes;
  }

  /** Writes `count` vectors of the scratch buffer, each of them no further than the limits allow, and charges them. */
  #writeClipped(fd: number, count: number): number {
    const { scratch: { out }, waits } = this.#state;
    let done = 0;
    for (let i = 0; i < count; i++) {
      const length = out.word(i * VECTOR_BYTES + 8);
      if (length === 0) continue;
      const written = waits.write(
        fd,
        out.word(i * VECTOR_BYTES),
        length,
        (at, bytes) => waits.writeReady(fd, at, bytes),
      );
      if (written < 0) return done > 0 ? done : written;
      done += written;
      if (written < length) break;
    }
    return done;
  }

  #transferAt(
    call: "preadv" | "pwritev",
    right: number,
    index: number,
    at: number,
    count: number,
    offset: bigint,
    doneAt: number,
  ): number {
    const { sys, descriptors } = this.#state;
    const descriptor = descriptors.get(index);
    if (descriptor.filetype === FILETYPE.directory) throw new WasiError(ERRNO.isdir);
    requireSeekable(descriptor);
    descriptors.get(index, right);
    const n = this.#vectors(at >>> 0, count >>> 0);
    const place = BigInt.asUintN(64, offset);
    if (place >= 1n << 63n) throw new WasiError(ERRNO.inval);
    const done = this.#inPieces(
      n,
      (address, vectors, before) => sys(call, descriptor.fd, address, vectors, place + BigInt(before), 0),
    );
    return this.#transferred(done, doneAt);
  }

  /** The number of bytes that a system call moved, after charging them; throws its error. */
  #paid(result: number): number {
    const done = checked(result);
    this.#state.waits.charge(done);
    return done;
  }

  /** Ends a transfer: writes the number of its bytes to the guest. */
  #transferred(done: number, at: number): number {
    this.#state.memory.setU32(at >>> 0, done);
    return 0;
  }

  #seek(index: number, right: number, offset: bigint, whence: number, at: number): number {
    const { sys, descriptors, memory } = this.#state;
    const descriptor = descriptors.get(index);
    if (descriptor.filetype === FILETYPE.directory) throw new WasiError(ERRNO.badf);
    requireSeekable(descriptor);
    descriptors.get(index, right);
    if (whence < WHENCE.set || whence > WHENCE.end) throw new WasiError(ERRNO.inval);
    memory.setU64(at >>> 0, checked(sys("lseek", descriptor.fd, offset, whence)));
    return 0;
  }

  #readEntries(descriptor: Descriptor): DirectoryEntry[] {
    const { sys, waits, scratch: { out: { address, size, u8, buffer } } } = this.#state;
    checked(sys("lseek", descriptor.fd, 0, WHENCE.set));
    const view = new DataView(buffer);
    const entries: DirectoryEntry[] = [];
    for (;;) {
      waits.check();
      const length = checked(sys("getdents64", descriptor.fd, address, size));
      if (length === 0) return entries;
      waits.charge(length); // reading costs as much when the guest has no room for the entries
      for (let at = 0; at < length; at += view.getUint16(at + 16, true)) {
        const name = u8.subarray(at + 19);
        entries.push({
          inode: view.getBigUint64(at, true),
          type: ENTRY_TYPES[u8[at + 18]] ?? FILETYPE.unknown,
          name: name.slice(0, name.indexOf(0)),
        });
      }
    }
  }
}

/**
 * Writes entries to `target`, starting with number `cookie`, and truncates the last one to the remaining room; returns
 * the number of bytes written.
 */
function writeEntries(target: Uint8Array, entries: readonly DirectoryEntry[], cookie: bigint): number {
  const record = new Uint8Array(DIRENT_BYTES);
  const view = new DataView(record.buffer);
  let used = 0;
  for (let i = Math.min(Number(cookie), entries.length); i < entries.length && used < target.length; i++) {
    const { name, inode, type } = entries[i];
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
  return used;
}
