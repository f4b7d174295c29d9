/**
 * Files that the program opened with its JavaScript runtime (`openSync` of `node:fs`), as streams of guests on Windows,
 * where such a descriptor does not lead to the handle of the file. In: calls of linux_calls.ts on a descriptor. Out:
 * the result, or −errno.
 *
 * The runtime keeps the position: the guest and the program write one behind the other, and a guest cannot seek.
 * Invariant: only regular files are used, so that no call waits. A wait for a pipe could not end at a deadline.
 */
import { errorCode } from "../base/errors.ts";
import type { BigIntStats } from "node:fs";
import type { LinuxCall } from "./calls/linux_calls.ts";
import { E } from "./calls/linux_errors.ts";
import { nodeModule } from "./process.ts";

type View = (address: number, bytes: number) => DataView;
type Arguments = readonly (number | bigint)[];

/** struct iovec. */
const VECTOR = { ADDRESS: 0, LENGTH: 8, BYTES: 16 };
/** struct statx; a time is a struct of 64-bit seconds and 32-bit nanoseconds. */
const STATX = { LINKS: 16, MODE: 28, INODE: 32, SIZE: 40, ACCESSED: 64, CHANGED: 96, MODIFIED: 112, BYTES: 256 };
const NANOSECONDS = 1_000_000_000n;

/** −errno for the `code` of an error; another one is EIO. Windows reports the wrong direction as a lack of rights. */
const ERRORS: Readonly<Record<string, number>> = {
  EACCES: E.BADF,
  EBADF: E.BADF,
  ENOSPC: E.NOSPC,
  EPERM: E.BADF,
};

type Row = (fd: number, args: Arguments, view: View) => number;

function move(way: "readSync" | "writeSync", fd: number, bytes: Uint8Array): number {
  return way === "readSync" ? nodeModule("node:fs").readSync(fd, bytes) : nodeModule("node:fs").writeSync(fd, bytes);
}

/** Reads or writes one buffer: [fd, address, bytes]. */
function one(way: "readSync" | "writeSync"): Row {
  return (fd, [, at, bytes], view) => Number(bytes) === 0 ? 0 : move(way, fd, bytesAt(view, at, bytes));
}

/** Reads or writes buffers in turn: [fd, address of vectors, their number]. Ends early at the end of the file. */
function many(way: "readSync" | "writeSync"): Row {
  return (fd, [, at, count], view) => {
    const vectors = view(Number(at), Math.max(VECTOR.BYTES * Number(count), 1));
    let done = 0;
    for (let k = 0; k < Number(count); k++) {
      const bytes = vectors.getBigUint64(VECTOR.BYTES * k + VECTOR.LENGTH, true);
      if (bytes === 0n) continue;
      const moved = move(way, fd, bytesAt(view, vectors.getBigUint64(VECTOR.BYTES * k + VECTOR.ADDRESS, true), bytes));
      done += moved;
      if (moved < Number(bytes)) break;
    }
    return done;
  };
}

function bytesAt(view: View, at: number | bigint, bytes: number | bigint): Uint8Array {
  const { buffer, byteOffset, byteLength } = view(Number(at), Number(bytes));
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** The calls. Those without a row act as on an unknown descriptor. */
const ROWS: Readonly<Partial<Record<LinuxCall, Row>>> = {
  read: one("readSync"),
  write: one("writeSync"),
  readv: many("readSync"),
  writev: many("writeSync"),
  preadv2: () => E.OPNOTSUPP, // as on every file: the transfer that does not wait is one of pipes
  pwritev2: () => E.OPNOTSUPP,
  pread64: () => E.SPIPE,
  pwrite64: () => E.SPIPE,
  preadv: () => E.SPIPE,
  pwritev: () => E.SPIPE,
  lseek: () => E.SPIPE,
  close: () => 0, // the program closes it
  fsync: flush,
  fdatasync: flush,
  getdents64: () => E.NOTDIR,
  statx: (fd, [, , , , at], view) => writeStatus(view(Number(at), STATX.BYTES), statusOf(fd)!),
};

/** Flushes written data; a reader has nothing to flush, which Windows reports as a lack of rights. */
function flush(fd: number): number {
  const result = attempt(() => (nodeModule("node:fs").fsyncSync(fd), 0));
  return result === E.BADF ? 0 : result;
}

function attempt(action: () => number): number {
  try {
    return action();
  } catch (error) {
    return ERRORS[errorCode(error) ?? ""] ?? E.IO;
  }
}

/** The status of an open regular file. */
function statusOf(fd: number): BigIntStats | undefined {
  try {
    const status = nodeModule("node:fs").fstatSync(fd, { bigint: true });
    return status.isFile() ? status : undefined;
  } catch {
    return undefined;
  }
}

function writeStatus(to: DataView, status: BigIntStats): number {
  new Uint8Array(to.buffer, to.byteOffset, to.byteLength).fill(0);
  to.setUint32(STATX.LINKS, Number(status.nlink), true);
  to.setUint16(STATX.MODE, Number(status.mode), true);
  to.setBigUint64(STATX.INODE, status.ino, true);
  to.setBigInt64(STATX.SIZE, status.size, true);
  const times = [
    [STATX.ACCESSED, status.atimeNs],
    [STATX.CHANGED, status.ctimeNs],
    [STATX.MODIFIED, status.mtimeNs],
  ] as const;
  for (const [at, time] of times) {
    to.setBigInt64(at, time / NANOSECONDS, true);
    to.setUint32(at + 8, Number(time % NANOSECONDS), true);
  }
  return 0;
}

/** Whether a descriptor of the runtime is an open regular file. */
export function isRuntimeFile(fd: number): boolean {
  return statusOf(fd) !== undefined;
}

/**
 * Makes a call on the file that a descriptor of the runtime names; `args` are the call's. Returns the result or −errno;
 * undefined if the descriptor is no such file or the call has no meaning for a stream.
 */
export function callOnRuntimeFile(name: LinuxCall, fd: number, args: Arguments, view: View): number | undefined {
  const row = ROWS[name];
  return row !== undefined && isRuntimeFile(fd) ? attempt(() => row(fd, args, view)) : undefined;
}
