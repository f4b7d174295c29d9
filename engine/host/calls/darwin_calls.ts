/**
 * The calls of linux_calls.ts on macOS. WASI and the plugins' files speak Linux's calls, with Linux's numbers for flags
 * and errors and Linux's structures; this file translates them to functions of macOS's C library. In: a call of C
 * functions (c_calls.ts) and a view of the memory that arguments point to. Out: the result, or −errno as Linux numbers
 * it.
 *
 * Differences that remain: directories on the way need permission to read, because there is no O_PATH; `ppoll` has
 * milliseconds; `preadv2` is missing, and its caller reads without it; a descriptor's directory is read through a
 * stream of the C library, which starts again when the descriptor is sought to its beginning.
 *
 * Sources: macOS <sys/fcntl.h>, <sys/errno.h>, <sys/stat.h>, <sys/dirent.h>, <sys/socket.h>, <time.h>; Linux
 * <asm-generic/errno.h>, <linux/stat.h>, getdents(2), statx(2).
 */
import type { CCall } from "./c_calls.ts";
import type { Host } from "../host.ts";
import type { LinuxCall, LinuxCalls } from "./linux_calls.ts";

/** [macOS, Linux] numbers of the errors whose numbers differ. */
const ERRORS: readonly (readonly [number, number])[] = [
  [11, 35], // EDEADLK
  [35, 11], // EAGAIN
  [36, 115], // EINPROGRESS
  [37, 114], // EALREADY
  [38, 88], // ENOTSOCK
  [39, 89], // EDESTADDRREQ
  [40, 90], // EMSGSIZE
  [41, 91], // EPROTOTYPE
  [42, 92], // ENOPROTOOPT
  [43, 93], // EPROTONOSUPPORT
  [45, 95], // ENOTSUP
  [47, 97], // EAFNOSUPPORT
  [48, 98], // EADDRINUSE
  [49, 99], // EADDRNOTAVAIL
  [50, 100], // ENETDOWN
  [51, 101], // ENETUNREACH
  [52, 102], // ENETRESET
  [53, 103], // ECONNABORTED
  [54, 104], // ECONNRESET
  [55, 105], // ENOBUFS
  [56, 106], // EISCONN
  [57, 107], // ENOTCONN
  [60, 110], // ETIMEDOUT
  [61, 111], // ECONNREFUSED
  [62, 40], // ELOOP
  [63, 36], // ENAMETOOLONG
  [65, 113], // EHOSTUNREACH
  [66, 39], // ENOTEMPTY
  [69, 122], // EDQUOT
  [70, 116], // ESTALE
  [77, 37], // ENOLCK
  [78, 38], // ENOSYS
  [84, 75], // EOVERFLOW
  [89, 125], // ECANCELED
  [90, 43], // EIDRM
  [91, 42], // ENOMSG
  [92, 84], // EILSEQ
  [94, 74], // EBADMSG
  [95, 72], // EMULTIHOP
  [97, 67], // ENOLINK
  [100, 71], // EPROTO
  [102, 95], // EOPNOTSUPP
  [104, 131], // ENOTRECOVERABLE
  [105, 130], // EOWNERDEAD
];
const LINUX_ERROR: ReadonlyMap<number, number> = new Map(ERRORS);
const ENOSYS = -38;
const EINVAL = -22;
/** The first number that is Linux's own; a macOS error without a row and from here on has no counterpart. */
const FIRST_OWN = 35;
const EIO = 5;

/** [Linux x64, Linux arm64, macOS] bits of the flags of `open`. */
const OPEN_FLAGS: readonly (readonly [number, number, number])[] = [
  [0o1, 0o1, 0x1], // O_WRONLY
  [0o2, 0o2, 0x2], // O_RDWR
  [0o100, 0o100, 0x200], // O_CREAT
  [0o200, 0o200, 0x800], // O_EXCL
  [0o1000, 0o1000, 0x400], // O_TRUNC
  [0o2000, 0o2000, 0x8], // O_APPEND
  [0o4000, 0o4000, 0x4], // O_NONBLOCK
  [0o10000, 0o10000, 0x400000], // O_DSYNC
  [0o4000000, 0o4000000, 0x80], // the bit that O_SYNC has beside O_DSYNC
  [0o200000, 0o40000, 0x100000], // O_DIRECTORY
  [0o400000, 0o100000, 0x100], // O_NOFOLLOW
  [0o2000000, 0o2000000, 0x1000000], // O_CLOEXEC
  [0o10000000, 0o10000000, 0], // O_PATH
];

/** [Linux, macOS] bits of the flags of the *at functions. */
const AT_FLAGS: readonly (readonly [number, number])[] = [
  [0x100, 0x20], // AT_SYMLINK_NOFOLLOW
  [0x200, 0x80], // AT_REMOVEDIR
];
const AT_EMPTY_PATH = 0x1000;
const LINUX_CWD = -100;
const DARWIN_CWD = -2;

/** [Linux, macOS] bits of the flags of sends and receives. macOS has no MSG_NOSIGNAL; every host ignores SIGPIPE. */
const MESSAGE_FLAGS: readonly (readonly [number, number])[] = [
  [0x2, 0x2], // MSG_PEEK
  [0x40, 0x80], // MSG_DONTWAIT
  [0x100, 0x40], // MSG_WAITALL
  [0x4000, 0], // MSG_NOSIGNAL
];

/** macOS clocks by Linux clock: realtime, monotonic, CPU time of the process and of the thread. */
const CLOCKS = [0, 6, 12, 16];

/** Numbers of fcntl. */
const FCNTL = { SETFD: 2, SETFL: 4, PREALLOCATE: 42 } as const;
const FD_CLOEXEC = 1;
const LINUX_UTIME_OMIT = 0x3ffffffen;
const UTIME_OMIT = -2n;
const SEEK_SET = 0;
const SEEK_CUR = 1;
const MAX_POLL_MS = 0x7fffffff;

/** Functions of the C library: [name on arm64 and in messages, name on x64 if it differs, returns an int, variadic]. */
const FUNCTIONS = {
  read: ["read", undefined, false],
  write: ["write", undefined, false],
  close: ["close", undefined, true],
  lseek: ["lseek", undefined, false],
  pread: ["pread", undefined, false],
  pwrite: ["pwrite", undefined, false],
  readv: ["readv", undefined, false],
  writev: ["writev", undefined, false],
  preadv: ["preadv", undefined, false],
  pwritev: ["pwritev", undefined, false],
  sched_yield: ["sched_yield", undefined, true],
  shutdown: ["shutdown", undefined, true],
  sendto: ["sendto", undefined, false],
  recvfrom: ["recvfrom", undefined, false],
  accept: ["accept", undefined, true],
  fcntl: ["fcntl", undefined, true, 2],
  fsync: ["fsync", undefined, true],
  ftruncate: ["ftruncate", undefined, true],
  clock_gettime: ["clock_gettime", undefined, true],
  clock_getres: ["clock_getres", undefined, true],
  openat: ["openat", undefined, true, 3],
  mkdirat: ["mkdirat", undefined, true],
  unlinkat: ["unlinkat", undefined, true],
  renameat: ["renameat", undefined, true],
  linkat: ["linkat", undefined, true],
  symlinkat: ["symlinkat", undefined, true],
  readlinkat: ["readlinkat", undefined, false],
  poll: ["poll", undefined, true],
  utimensat: ["utimensat", undefined, true],
  futimens: ["futimens", undefined, true],
  arc4random_buf: ["arc4random_buf", undefined, false],
  fstat: ["fstat", "fstat$INODE64", true],
  fstatat: ["fstatat", "fstatat$INODE64", true],
  fdopendir: ["fdopendir", "fdopendir$INODE64", false],
  readdir: ["readdir", "readdir$INODE64", false],
  closedir: ["closedir", undefined, true],
} as const satisfies Record<string, readonly [string, string | undefined, boolean, number?]>;

/** A function of the C library that the calls use. */
export type DarwinFunction = keyof typeof FUNCTIONS;

/** The name of a function's symbol. */
export function symbolOf(name: DarwinFunction, arch: Host["arch"]): string {
  const [symbol, x64] = FUNCTIONS[name];
  return arch === "x64" ? x64 ?? symbol : symbol;
}

/** The index of a function's variadic argument. */
export function variadicOf(name: DarwinFunction): number | undefined {
  return (FUNCTIONS[name] as readonly [string, string | undefined, boolean, number?])[3];
}

/** The part of a machine that the translation needs; tests give a double. */
export interface DarwinMachine {
  readonly arch: Host["arch"];
  /** Calls a function with integers and addresses: the result, or −errno as macOS numbers it. */
  readonly call: (name: DarwinFunction, ...args: (number | bigint)[]) => number;
  /** A view of memory. */
  readonly view: (address: number, bytes: number) => DataView;
  /** Memory for structures: 256 bytes, and their address. */
  readonly scratch: number;
}

/** The machine that a host runs on. */
export function darwinMachine(host: Host, call: CCall, scratch: number): DarwinMachine {
  const names = Object.keys(FUNCTIONS) as DarwinFunction[];
  const addresses = host.functionAddresses(names.map((name) => symbolOf(name, host.arch)));
  const functions = Object.fromEntries(names.map((name) => [name, {
    address: addresses[symbolOf(name, host.arch)],
    isInt: FUNCTIONS[name][2],
    variadic: variadicOf(name),
  }]));
  return {
    arch: host.arch,
    call: (name, ...args) => call(functions[name], args),
    view: (address, bytes) => new DataView(host.view(address, bytes)),
    scratch,
  };
}

/** An address or number as a number. */
type Arguments = readonly (number | bigint)[];

/** macOS's bits for Linux's. */
function translated(flags: number, rows: readonly (readonly [from: number, to: number])[]): number {
  return rows.reduce((bits, [from, to]) => (flags & from) !== 0 ? bits | to : bits, 0);
}

function directory(fd: number | bigint): number | bigint {
  return Number(fd) === LINUX_CWD ? DARWIN_CWD : fd;
}

/** A result with Linux's number for the error. */
function linuxResult(result: number): number {
  if (result >= 0) return result;
  const linux = LINUX_ERROR.get(-result);
  return linux !== undefined ? -linux : -result < FIRST_OWN ? result : -EIO;
}

/** Offsets in macOS's struct stat and Linux's struct statx. */
const STAT = { DEVICE: 0, MODE: 4, LINKS: 6, INODE: 8, ACCESSED: 32, MODIFIED: 48, CHANGED: 64, SIZE: 96, BYTES: 144 };
const STATX = {
  LINKS: 16,
  MODE: 28,
  INODE: 32,
  SIZE: 40,
  ACCESSED: 64,
  CHANGED: 96,
  MODIFIED: 112,
  DEVICE_MAJOR: 136,
  DEVICE_MINOR: 140,
  BYTES: 256,
};
/** Offsets in macOS's struct dirent and Linux's struct linux_dirent64. */
const DIRENT = { INODE: 0, LENGTH: 18, TYPE: 20, NAME: 21, BYTES: 1048 };
const DIRENT64 = { INODE: 0, OFFSET: 8, BYTES: 16, TYPE: 18, NAME: 19 };
/** Offsets in macOS's fstore_t, for F_PREALLOCATE: space behind the end of the file, all of it or nothing. */
const FSTORE = { FLAGS: 0, POSITION_MODE: 4, OFFSET: 8, LENGTH: 16, BYTES: 32 };
const F_ALLOCATEALL = 4;
const F_PEOFPOSMODE = 3;

/** A directory that is being read: the C library's stream, and the entry that did not fit yet (or 0). */
interface DirectoryStream {
  readonly stream: number;
  pending: number;
}

/** Makes Linux's calls on macOS. */
export class DarwinCalls {
  readonly #machine: DarwinMachine;
  readonly #streams = new Map<number, DirectoryStream>();
  readonly #rows: Readonly<Partial<Record<LinuxCall, (args: Arguments) => number>>>;

  constructor(machine: DarwinMachine) {
    this.#machine = machine;
    const same = (name: DarwinFunction, count: number) => (args: Arguments) =>
      machine.call(name, ...args.slice(0, count));
    this.#rows = {
      read: same("read", 3),
      write: same("write", 3),
      close: ([fd]) => this.#close(Number(fd)),
      lseek: ([fd, offset, whence]) => this.#seek(Number(fd), offset, Number(whence)),
      pread64: same("pread", 4),
      pwrite64: same("pwrite", 4),
      readv: same("readv", 3),
      writev: same("writev", 3),
      preadv: same("preadv", 4),
      pwritev: same("pwritev", 4),
      sched_yield: same("sched_yield", 0),
      shutdown: same("shutdown", 2),
      sendto: ([fd, at, bytes, flags]) => this.#message("sendto", fd, at, bytes, Number(flags)),
      recvfrom: ([fd, at, bytes, flags]) => this.#message("recvfrom", fd, at, bytes, Number(flags)),
      accept4: ([fd, , , flags]) => this.#accept(fd, Number(flags)),
      fcntl: ([fd, command, flags]) => this.#setFlags(fd, Number(command), Number(flags)),
      fsync: same("fsync", 1),
      fdatasync: same("fsync", 1), // fdatasync of macOS is not a documented function
      ftruncate: same("ftruncate", 2),
      fadvise64: ([fd]) => Math.min(machine.call("lseek", fd, 0, SEEK_CUR), 0), // advice without a counterpart
      fallocate: ([fd, , offset, length]) => this.#allocate(fd, BigInt(offset), BigInt(length)),
      getdents64: ([fd, at, bytes]) => this.#readDirectory(Number(fd), Number(at), Number(bytes)),
      clock_gettime: ([clock, at]) => machine.call("clock_gettime", CLOCKS[Number(clock)] ?? -1, at),
      clock_getres: ([clock, at]) => machine.call("clock_getres", CLOCKS[Number(clock)] ?? -1, at),
      openat: ([fd, path, flags, mode = 0]) => this.#open(fd, path, Number(flags), mode),
      mkdirat: ([fd, path, mode]) => machine.call("mkdirat", directory(fd), path, mode),
      unlinkat: ([fd, path, flags]) =>
        machine.call("unlinkat", directory(fd), path, translated(Number(flags), AT_FLAGS)),
      renameat2: ([from, path, to, target, flags]) =>
        Number(flags) !== 0 ? EINVAL : machine.call("renameat", directory(from), path, directory(to), target),
      linkat: ([from, path, to, target]) => machine.call("linkat", directory(from), path, directory(to), target, 0),
      symlinkat: ([text, fd, path]) => machine.call("symlinkat", text, directory(fd), path),
      readlinkat: ([fd, path, at, bytes]) => machine.call("readlinkat", directory(fd), path, at, bytes),
      ppoll: ([at, count, time]) => machine.call("poll", at, count, this.#milliseconds(Number(time))),
      utimensat: ([fd, path, times, flags]) => this.#setTimes(fd, path, Number(times), Number(flags)),
      getrandom: ([at, bytes]) => {
        machine.call("arc4random_buf", at, bytes);
        return Number(bytes);
      },
      statx: ([fd, path, flags, , at]) => this.#status(fd, path, Number(flags), Number(at)),
    };
  }

  /** Makes a call: its result, or −errno. A call without a counterpart is ENOSYS. */
  readonly call: LinuxCalls = (name, ...args) => {
    const row = this.#rows[name];
    return row === undefined ? ENOSYS : linuxResult(row(args));
  };

  #close(fd: number): number {
    this.#endStream(fd);
    return this.#machine.call("close", fd);
  }

  #seek(fd: number, offset: number | bigint, whence: number): number {
    if (whence === SEEK_SET && Number(offset) === 0) this.#endStream(fd);
    return this.#machine.call("lseek", fd, offset, whence);
  }

  #message(
    name: "sendto" | "recvfrom",
    fd: number | bigint,
    at: number | bigint,
    bytes: number | bigint,
    flags: number,
  ) {
    return this.#machine.call(name, fd, at, bytes, translated(flags, MESSAGE_FLAGS), 0, 0);
  }

  #openFlags(flags: number): number {
    const column = this.#machine.arch === "x64" ? 0 : 1;
    return OPEN_FLAGS.reduce((bits, row) => (flags & row[column]) !== 0 ? bits | row[2] : bits, 0);
  }

  #accept(fd: number | bigint, flags: number): number {
    const { call } = this.#machine;
    const accepted = call("accept", fd, 0, 0);
    if (accepted < 0) return accepted;
    call("fcntl", accepted, FCNTL.SETFD, FD_CLOEXEC);
    // An accepted socket inherits O_NONBLOCK on macOS, so the flag is always set to the wanted value.
    call("fcntl", accepted, FCNTL.SETFL, this.#openFlags(flags) & this.#openFlags(0o4000));
    return accepted;
  }

  #setFlags(fd: number | bigint, command: number, flags: number): number {
    return command === FCNTL.SETFL ? this.#machine.call("fcntl", fd, command, this.#openFlags(flags)) : EINVAL;
  }

  #open(fd: number | bigint, path: number | bigint, flags: number, mode: number | bigint): number {
    return this.#machine.call("openat", directory(fd), path, this.#openFlags(flags), mode);
  }

  /** The timeout of poll for that of ppoll: a timespec, or 0 for none. Rounds up, so that no wait ends too early. */
  #milliseconds(time: number): number {
    if (time === 0) return -1;
    const view = this.#machine.view(time, 16);
    const ms = view.getBigInt64(0, true) * 1000n + (view.getBigInt64(8, true) + 999_999n) / 1_000_000n;
    return ms > BigInt(MAX_POLL_MS) ? MAX_POLL_MS : Number(ms);
  }

  #setTimes(fd: number | bigint, path: number | bigint, times: number, flags: number): number {
    const { call, view } = this.#machine;
    const timespecs = view(times, 32);
    for (const at of [8, 24]) {
      if (timespecs.getBigInt64(at, true) === LINUX_UTIME_OMIT) timespecs.setBigInt64(at, UTIME_OMIT, true);
    }
    if (Number(path) === 0) return call("futimens", fd, times);
    return call("utimensat", directory(fd), path, times, translated(flags, AT_FLAGS));
  }

  /** Extends a file to `offset + length` with space that is allocated. */
  #allocate(fd: number | bigint, offset: bigint, length: bigint): number {
    const { call, view, scratch } = this.#machine;
    if (offset < 0n || length <= 0n) return EINVAL;
    const result = call("fstat", fd, scratch);
    if (result < 0) return result;
    const missing = offset + length - view(scratch, STAT.BYTES).getBigInt64(STAT.SIZE, true);
    if (missing <= 0n) return 0;
    const store = view(scratch, FSTORE.BYTES);
    store.setUint32(FSTORE.FLAGS, F_ALLOCATEALL, true);
    store.setInt32(FSTORE.POSITION_MODE, F_PEOFPOSMODE, true);
    store.setBigInt64(FSTORE.OFFSET, 0n, true);
    store.setBigInt64(FSTORE.LENGTH, missing, true);
    const allocated = call("fcntl", fd, FCNTL.PREALLOCATE, scratch);
    return allocated < 0 ? allocated : call("ftruncate", fd, offset + length);
  }

  #status(fd: number | bigint, path: number | bigint, flags: number, at: number): number {
    const { call, view, scratch } = this.#machine;
    const result = (flags & AT_EMPTY_PATH) !== 0
      ? call("fstat", fd, scratch)
      : call("fstatat", directory(fd), path, scratch, translated(flags, AT_FLAGS));
    if (result < 0) return result;
    const from = view(scratch, STAT.BYTES);
    const to = view(at, STATX.BYTES);
    to.setUint16(STATX.MODE, from.getUint16(STAT.MODE, true), true);
    to.setUint32(STATX.LINKS, from.getUint16(STAT.LINKS, true), true);
    to.setBigUint64(STATX.INODE, from.getBigUint64(STAT.INODE, true), true);
    to.setBigInt64(STATX.SIZE, from.getBigInt64(STAT.SIZE, true), true);
    to.setUint32(STATX.DEVICE_MAJOR, 0, true);
    to.setUint32(STATX.DEVICE_MINOR, from.getUint32(STAT.DEVICE, true), true);
    for (const time of ["ACCESSED", "MODIFIED", "CHANGED"] as const) {
      to.setBigInt64(STATX[time], from.getBigInt64(STAT[time], true), true);
      to.setUint32(STATX[time] + 8, Number(from.getBigInt64(STAT[time] + 8, true)), true);
    }
    return 0;
  }

  /** Writes entries as Linux's, as many as fit; 0 at the end. */
  #readDirectory(fd: number, at: number, bytes: number): number {
    const { call, view } = this.#machine;
    const known = this.#streams.get(fd) ?? this.#startStream(fd);
    if (typeof known === "number") return known;
    const to = view(at, bytes);
    let used = 0;
    for (;;) {
      const entry = known.pending || call("readdir", known.stream);
      if (entry < 0) return entry;
      if (entry === 0) break;
      const written = this.#writeEntry(entry, to, used);
      known.pending = written === 0 ? entry : 0;
      if (written === 0) return used === 0 ? EINVAL : used;
      used += written;
    }
    if (used === 0) this.#endStream(fd);
    return used;
  }

  /** Writes the entry at address `entry`; its size, or 0 when it does not fit. */
  #writeEntry(entry: number, to: DataView, at: number): number {
    const head = this.#machine.view(entry, DIRENT.NAME);
    const length = head.getUint16(DIRENT.LENGTH, true);
    const size = Math.ceil((DIRENT64.NAME + length + 1) / 8) * 8;
    if (at + size > to.byteLength) return 0;
    const name = this.#machine.view(entry + DIRENT.NAME, Math.max(length, 1));
    to.setBigUint64(at + DIRENT64.INODE, head.getBigUint64(DIRENT.INODE, true), true);
    to.setBigUint64(at + DIRENT64.OFFSET, 0n, true);
    to.setUint16(at + DIRENT64.BYTES, size, true);
    to.setUint8(at + DIRENT64.TYPE, head.getUint8(DIRENT.TYPE));
    for (let k = 0; k < size - DIRENT64.NAME; k++) {
      to.setUint8(at + DIRENT64.NAME + k, k < length ? name.getUint8(k) : 0);
    }
    return size;
  }

  /** Opens the directory again, because a stream takes its descriptor; −errno when it cannot be opened. */
  #startStream(fd: number): DirectoryStream | number {
    const { call, view, scratch } = this.#machine;
    view(scratch, 2).setUint16(0, 0x2e, true); // "."
    const again = call("openat", fd, scratch, this.#openFlags(0o2000000) | DIRECTORY, 0);
    if (again < 0) return again;
    const stream = call("fdopendir", again);
    if (stream <= 0) {
      call("close", again);
      return stream < 0 ? stream : EINVAL;
    }
    const started = { stream, pending: 0 };
    this.#streams.set(fd, started);
    return started;
  }

  #endStream(fd: number): void {
    const known = this.#streams.get(fd);
    if (known === undefined) return;
    this.#streams.delete(fd);
    this.#machine.call("closedir", known.stream);
  }
}

/** macOS's O_DIRECTORY. */
const DIRECTORY = 0x100000;
