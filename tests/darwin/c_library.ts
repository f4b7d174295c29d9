/**
 * A double of macOS's C library on Linux. In: calls of DarwinMachine (darwin_calls.ts), with macOS's flags, structures
 * and error numbers. Out: their effects on this machine's files, made by Linux system calls, and a record of
 * the calls. It knows macOS's rules and throws when a caller breaks one: a flag that macOS does not define, a missing
 * mode, a directory descriptor that is Linux's AT_FDCWD, a number of arguments that the function does not have.
 *
 * Written from macOS's headers, apart from the translation that it tests: <sys/errno.h>, <sys/fcntl.h>, <sys/stat.h>,
 * <sys/dirent.h>, <sys/socket.h>, <time.h>.
 */
import type { DarwinFunction, DarwinMachine } from "../../engine/host/calls/darwin_calls.ts";
import type { Host } from "../../engine/host/host.ts";
import { type LinuxCalls, linuxCalls } from "../../engine/host/calls/linux_calls.ts";

/** The errors of macOS in the order of their numbers, from 1 on; "-" where the header has none that matters. */
const ERRORS = ("perm noent srch intr io nxio 2big noexec badf child deadlk nomem acces fault notblk busy exist xdev " +
  "nodev notdir isdir inval nfile mfile notty txtbsy fbig nospc spipe rofs mlink pipe dom range again inprogress " +
  "already notsock destaddrreq msgsize prototype noprotoopt protonosupport - notsup - afnosupport addrinuse " +
  "addrnotavail netdown netunreach netreset connaborted connreset nobufs isconn notconn - - timedout connrefused loop " +
  "nametoolong - hostunreach notempty - - dquot stale - - - - - - nolck nosys - - - - - overflow - - - - canceled " +
  "idrm nomsg ilseq - badmsg multihop - nolink - - proto").split(" ");

/** Linux's numbers of the errors that the tests meet. */
const LINUX_ERRORS: Readonly<Record<number, string>> = {
  1: "perm",
  2: "noent",
  9: "badf",
  11: "again",
  13: "acces",
  14: "fault",
  17: "exist",
  18: "xdev",
  20: "notdir",
  21: "isdir",
  22: "inval",
  24: "mfile",
  25: "notty",
  26: "txtbsy",
  27: "fbig",
  28: "nospc",
  29: "spipe",
  31: "mlink",
  32: "pipe",
  36: "nametoolong",
  38: "nosys",
  39: "notempty",
  40: "loop",
  75: "overflow",
  88: "notsock",
  95: "notsup",
  104: "connreset",
  107: "notconn",
};

/** macOS flags of `open` and Linux's on x64. */
const OPEN: readonly (readonly [number, number])[] = [
  [0x1, 0o1], // O_WRONLY
  [0x2, 0o2], // O_RDWR
  [0x4, 0o4000], // O_NONBLOCK
  [0x8, 0o2000], // O_APPEND
  [0x80, 0o4010000], // O_SYNC
  [0x100, 0o400000], // O_NOFOLLOW
  [0x200, 0o100], // O_CREAT
  [0x400, 0o1000], // O_TRUNC
  [0x800, 0o200], // O_EXCL
  [0x100000, 0o200000], // O_DIRECTORY
  [0x400000, 0o10000], // O_DSYNC
  [0x1000000, 0o2000000], // O_CLOEXEC
];
const O_CREAT = 0x200;
const AT_SYMLINK_NOFOLLOW: readonly (readonly [number, number])[] = [[0x20, 0x100]];
const AT_REMOVEDIR: readonly (readonly [number, number])[] = [[0x80, 0x200]];
/** MSG_PEEK, MSG_WAITALL, MSG_DONTWAIT. */
const MESSAGES: readonly (readonly [number, number])[] = [[0x2, 0x2], [0x40, 0x100], [0x80, 0x40]];
/** CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID. */
const CLOCKS: Readonly<Record<number, number>> = { 0: 0, 6: 1, 12: 2, 16: 3 };

function broken(rule: string): never {
  throw new Error(`macOS's C library was called wrongly: ${rule}`);
}

function flagsOf(what: string, flags: number, rows: readonly (readonly [number, number])[]): number {
  let rest = flags;
  let linux = 0;
  for (const [darwin, other] of rows) {
    if ((flags & darwin) === 0) continue;
    rest &= ~darwin;
    linux |= other;
  }
  return rest === 0 ? linux : broken(`${what} has the undefined flags 0x${rest.toString(16)}`);
}

/** An open stream of a directory. */
interface Stream {
  readonly fd: number;
  readonly entry: number;
  readonly buffer: number;
  at: number;
  end: number;
}

/** The number of arguments of each function; `openat` may have one more. */
const COUNTS: Readonly<Record<DarwinFunction, number>> = {
  read: 3,
  write: 3,
  close: 1,
  lseek: 3,
  pread: 4,
  pwrite: 4,
  readv: 3,
  writev: 3,
  preadv: 4,
  pwritev: 4,
  sched_yield: 0,
  shutdown: 2,
  sendto: 6,
  recvfrom: 6,
  accept: 3,
  fcntl: 3,
  fsync: 1,
  ftruncate: 2,
  clock_gettime: 2,
  clock_getres: 2,
  openat: 3,
  mkdirat: 3,
  unlinkat: 3,
  renameat: 4,
  linkat: 5,
  symlinkat: 3,
  readlinkat: 4,
  poll: 3,
  utimensat: 4,
  futimens: 2,
  arc4random_buf: 2,
  fstat: 2,
  fstatat: 4,
  fdopendir: 1,
  readdir: 1,
  closedir: 1,
};

/** The errors of macOS that have a name here, in the order of their numbers; others are "-". */
export const DARWIN_ERRORS: readonly string[] = ERRORS;

/** Every function of the library. */
export const DARWIN_FUNCTIONS = Object.keys(COUNTS) as readonly DarwinFunction[];

/** The C library. */
export class DarwinLibrary implements DarwinMachine {
  readonly arch = "x64";
  readonly scratch: number;
  /** The names of the functions called so far. */
  readonly called: Set<DarwinFunction> = new Set();
  readonly #host: Host;
  readonly #sys: LinuxCalls;
  readonly #streams = new Map<number, Stream>();
  readonly #own: number;

  constructor(host: Host) {
    this.#host = host;
    this.#sys = linuxCalls(host);
    this.scratch = host.reserve(host.pageSize, 3);
    this.#own = host.reserve(host.pageSize, 3);
  }

  view = (address: number, bytes: number): DataView => new DataView(this.#host.view(address, bytes));

  call = (name: DarwinFunction, ...args: (number | bigint)[]): number => {
    this.called.add(name);
    const count = COUNTS[name];
    if (args.length !== count && !(name === "openat" && args.length === 4)) {
      broken(`${name} has ${count} arguments, not ${args.length}`);
    }
    const result = this.#call(name, args);
    if (result >= 0) return result;
    const error = LINUX_ERRORS[-result] ?? broken(`no number for Linux's error ${-result}`);
    return -ERRORS.indexOf(error) - 1;
  };

  #call(name: DarwinFunction, args: readonly (number | bigint)[]): number {
    const sys = this.#sys;
    const [a = 0, b = 0, c = 0, d = 0, e = 0] = args;
    switch (name) {
      case "pread":
      case "pwrite":
        return sys(`${name}64`, a, b, c, d);
      case "read":
      case "write":
      case "close":
      case "lseek":
      case "readv":
      case "writev":
      case "preadv":
      case "pwritev":
      case "sched_yield":
      case "shutdown":
      case "fsync":
      case "ftruncate":
        return sys(name, ...args);
      case "sendto":
      case "recvfrom":
        return sys(name, a, b, c, flagsOf(name, Number(d), MESSAGES), 0, 0);
      case "accept":
        return sys("accept4", a, b, c, 0);
      case "fcntl":
        return this.#fcntl(a, Number(b), Number(c));
      case "clock_gettime":
      case "clock_getres":
        return CLOCKS[Number(a)] === undefined ? -22 : sys(name, CLOCKS[Number(a)], b);
      case "openat":
        if ((Number(c) & O_CREAT) !== 0 && args.length < 4) broken("openat creates a file without a mode");
        return sys("openat", this.#at(a), b, flagsOf(name, Number(c), OPEN), d);
      case "mkdirat":
        return sys("mkdirat", this.#at(a), b, c);
      case "unlinkat":
        return sys("unlinkat", this.#at(a), b, flagsOf(name, Number(c), AT_REMOVEDIR));
      case "renameat":
        return sys("renameat2", this.#at(a), b, this.#at(c), d, 0);
      case "linkat":
        return sys("linkat", this.#at(a), b, this.#at(c), d, Number(e) === 0 ? 0 : broken("linkat follows links"));
      case "symlinkat":
        return sys("symlinkat", a, this.#at(b), c);
      case "readlinkat":
        return sys("readlinkat", this.#at(a), b, c, d);
      case "poll":
        return this.#poll(a, b, Number(c));
      case "futimens":
        return this.#setTimes(a, 0, Number(b), 0);
      case "utimensat":
        if (Number(b) === 0) broken("utimensat needs a path");
        return this.#setTimes(this.#at(a), b, Number(c), flagsOf(name, Number(d), AT_SYMLINK_NOFOLLOW));
      case "arc4random_buf":
        return Math.min(sys("getrandom", a, b, 0), 0);
      case "fstat":
        this.view(this.#own, 1).setUint8(0, 0);
        return this.#stat(a, this.#own, 0x1000, Number(b));
      case "fstatat":
        return this.#stat(this.#at(a), b, flagsOf(name, Number(d), AT_SYMLINK_NOFOLLOW), Number(c));
      case "fdopendir":
        return this.#openStream(Number(a));
      case "readdir":
        return this.#readStream(this.#streams.get(Number(a)) ?? broken("readdir of no stream"));
      case "closedir":
        return this.#closeStream(Number(a));
    }
  }

  /** A directory descriptor: macOS's AT_FDCWD is −2. */
  #at(fd: number | bigint): number | bigint {
    if (Number(fd) === -2) return -100;
    return Number(fd) >= 0 ? fd : broken(`the directory descriptor ${fd}`);
  }

  #fcntl(fd: number | bigint, command: number, argument: number): number {
    switch (command) {
      case 2:
        return this.#sys("fcntl", fd, 2, argument === 1 ? 1 : broken("F_SETFD has one flag"));
      case 4:
        return this.#sys("fcntl", fd, 4, flagsOf("F_SETFL", argument, OPEN));
      case 42: {
        const store = this.view(argument, 32);
        const isRight = store.getUint32(0, true) === 4 && store.getInt32(4, true) === 3 &&
          store.getBigInt64(8, true) === 0n && store.getBigInt64(16, true) > 0n;
        return isRight ? 0 : broken("F_PREALLOCATE has another fstore_t");
      }
      default:
        return broken(`fcntl has no command ${command}`);
    }
  }

  #poll(fds: number | bigint, count: number | bigint, ms: number): number {
    if (!Number.isSafeInteger(ms) || ms > 0x7fffffff) broken("poll takes whole milliseconds in an int");
    const time = this.view(this.#own + 64, 16);
    time.setBigInt64(0, BigInt(Math.floor(ms / 1000)), true);
    time.setBigInt64(8, BigInt(ms % 1000) * 1_000_000n, true);
    return this.#sys("ppoll", fds, count, ms < 0 ? 0 : this.#own + 64, 0, 0);
  }

  #setTimes(fd: number | bigint, path: number | bigint, times: number, flags: number): number {
    const from = this.view(times, 32);
    const to = this.view(this.#own + 64, 32);
    for (const at of [0, 16]) {
      const nanoseconds = from.getBigInt64(at + 8, true);
      if (nanoseconds < -2n || nanoseconds > 999_999_999n) broken(`a time of ${nanoseconds} ns`);
      to.setBigInt64(at, from.getBigInt64(at, true), true);
      to.setBigInt64(at + 8, nanoseconds === -2n ? 0x3ffffffen : nanoseconds, true);
    }
    return this.#sys("utimensat", fd, path, this.#own + 64, flags);
  }

  /** Writes a struct stat. */
  #stat(fd: number | bigint, path: number | bigint, flags: number, out: number): number {
    const statx = this.#own + 256;
    const result = this.#sys("statx", fd, path, flags, 0x7ff, statx);
    if (result < 0) return result;
    const from = this.view(statx, 256);
    const to = this.view(out, 144);
    for (let k = 0; k < 144; k++) to.setUint8(k, 0xa5);
    to.setInt32(0, (from.getUint32(136, true) << 24) | from.getUint32(140, true), true); // makedev(major, minor)
    to.setUint16(4, from.getUint16(28, true), true);
    to.setUint16(6, from.getUint32(16, true), true);
    to.setBigUint64(8, from.getBigUint64(32, true), true);
    for (const [source, target] of [[64, 32], [112, 48], [96, 64]] as const) {
      to.setBigInt64(target, from.getBigInt64(source, true), true);
      to.setBigInt64(target + 8, BigInt(from.getUint32(source + 8, true)), true);
    }
    to.setBigInt64(96, from.getBigInt64(40, true), true);
    return result;
  }

  #openStream(fd: number): number {
    const entry = this.#host.reserve(this.#host.pageSize * 2, 3);
    this.#streams.set(entry, { fd, entry, buffer: entry + this.#host.pageSize, at: 0, end: 0 });
    return entry;
  }

  /** The next entry as a struct dirent of 64-bit inodes; 0 at the end. */
  #readStream(stream: Stream): number {
    if (stream.at === stream.end) {
      const got = this.#sys("getdents64", stream.fd, stream.buffer, this.#host.pageSize);
      if (got <= 0) return 0;
      stream.at = 0;
      stream.end = got;
    }
    const from = this.view(stream.buffer + stream.at, stream.end - stream.at);
    const to = this.view(stream.entry, 1048);
    let length = 0;
    while (from.getUint8(19 + length) !== 0) to.setUint8(21 + length, from.getUint8(19 + length++));
    for (let k = length; k < 16; k++) to.setUint8(21 + k, k === length ? 0 : 0x5a); // the byte after a name is not zero
    to.setBigUint64(0, from.getBigUint64(0, true), true);
    to.setUint16(18, length, true);
    to.setUint8(20, from.getUint8(18));
    stream.at += from.getUint16(16, true);
    return stream.entry;
  }

  #closeStream(address: number): number {
    const stream = this.#streams.get(address) ?? broken("closedir of no stream");
    this.#streams.delete(address);
    this.#host.release(stream.entry, this.#host.pageSize * 2);
    return this.#sys("close", stream.fd);
  }
}
