/**
 * Preview 1 as the implementation below WASI 0.2: its functions, called with a memory that belongs to the host. In:
 * descriptors, paths, bytes. Out: results, or a ComponentError with the code of an error. Invariant: every file, clock
 * and wait of a component goes through the functions that confine preview 1's guests.
 */
import { host, type Memory } from "@waft/engine";
import { DIRECTORY_RIGHTS, ERRNO, type ErrnoName } from "@waft/engine/internal/wasi/abi";
import { Wasi, type WasiOptions } from "@waft/engine/wasi";
import { ComponentError } from "../abi/traps.ts";

/** Error codes of wasi:filesystem, by the names of preview 1. */
const CODES: Partial<Record<ErrnoName, string>> = {
  acces: "access",
  again: "would-block",
  already: "already",
  badf: "bad-descriptor",
  busy: "busy",
  deadlk: "deadlock",
  dquot: "quota",
  exist: "exist",
  fbig: "file-too-large",
  ilseq: "illegal-byte-sequence",
  inprogress: "in-progress",
  intr: "interrupted",
  inval: "invalid",
  io: "io",
  isdir: "is-directory",
  loop: "loop",
  mlink: "too-many-links",
  msgsize: "message-size",
  nametoolong: "name-too-long",
  nodev: "no-device",
  noent: "no-entry",
  nolck: "no-lock",
  nomem: "insufficient-memory",
  nospc: "insufficient-space",
  notdir: "not-directory",
  notempty: "not-empty",
  notrecoverable: "not-recoverable",
  notsup: "unsupported",
  notty: "no-tty",
  nxio: "no-such-device",
  overflow: "overflow",
  perm: "not-permitted",
  pipe: "pipe",
  rofs: "read-only",
  spipe: "invalid-seek",
  txtbsy: "text-file-busy",
  xdev: "cross-device",
  notcapable: "not-permitted",
};

const NAMES = new Map<number, string>(
  (Object.keys(ERRNO) as ErrnoName[]).map((name) => [ERRNO[name], CODES[name] ?? "io"]),
);

/** The maximum number of bytes that one read or write transfers. */
export const CHUNK_BYTES = 1 << 16;

/** The number of bytes that a pipe takes without waiting once it is ready (Linux's PIPE_BUF). */
export const READY_BYTES = 4096;

/** Places in the memory: structures, two paths, data. */
const AT = { STRUCT: 0, OUT: 4096, PATH: 8192, PATH2: 16384, DATA: 32768 } as const;
const MAX_PATH_BYTES = 8192;

/** Size of a subscription of poll_oneoff; the events go to the data area. */
const SUBSCRIPTION_BYTES = 48;
const MAX_SUBSCRIPTIONS = Math.floor((AT.OUT - AT.STRUCT) / SUBSCRIPTION_BYTES);
/** The polling interval of descriptors that do not fit into one call, in nanoseconds. */
const POLL_NS = 5_000_000n;

/** The functions of preview 1, by name. */
type Functions = Readonly<Record<string, (...args: (number | bigint)[]) => number>>;

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

/** A subscription of poll_oneoff. */
export type Subscription =
  | { readonly kind: "read" | "write"; readonly fd: number }
  | { readonly kind: "clock"; readonly until: bigint };

export interface FileStatus {
  readonly device: bigint;
  readonly inode: bigint;
  readonly type: number;
  readonly links: bigint;
  readonly size: bigint;
  readonly accessed: bigint;
  readonly modified: bigint;
  readonly changed: bigint;
}

/** One guest's preview 1. */
export class Preview1 {
  /** The implementation below. */
  readonly wasi: Wasi;
  readonly #functions: Functions;
  readonly #memory: Memory = host.memory(4, 4);
  readonly #bytes: Uint8Array = new Uint8Array(this.#memory.buffer);
  readonly #view: DataView = new DataView(this.#memory.buffer);

  /** Whether waits may leave the thread to the event loop, because the guest is called by `callAsync`. */
  readonly waitsInEventLoop: boolean;

  constructor(options: WasiOptions, waitsInEventLoop = false) {
    this.waitsInEventLoop = waitsInEventLoop;
    this.wasi = new Wasi(options);
    this.wasi.attachMemory(this.#memory);
    this.#functions = this.wasi.imports as unknown as Functions;
  }

  /** Closes every descriptor. */
  close(): void {
    this.wasi.close();
  }

  /**
   * Adds an open directory as a preopened one, which `close` closes. `rights` are those on the directory and on all
   * that is opened in it.
   */
  addDirectory(fd: number, guest: string, rights: number): void {
    this.wasi.addDirectory(fd, guest, rights & DIRECTORY_RIGHTS, rights);
  }

  #call(name: string, ...args: (number | bigint)[]): void {
    const errno = this.#functions[name](...args);
    if (errno !== 0) throw new ComponentError(NAMES.get(errno) ?? "io");
  }

  /** Writes a path and returns its length in bytes. */
  #path(path: string, at: number = AT.PATH): number {
    const { read, written } = ENCODER.encodeInto(path, this.#bytes.subarray(at, at + MAX_PATH_BYTES));
    if (read < path.length) throw new ComponentError("name-too-long");
    return written;
  }

  /** Describes the data area, of `length` bytes, as the only vector. */
  #vector(length: number): void {
    this.#view.setUint32(AT.STRUCT, AT.DATA, true);
    this.#view.setUint32(AT.STRUCT + 4, length, true);
  }

  exit(status: number): never {
    this.#functions["proc_exit"](status);
    throw new Error("proc_exit returned");
  }

  /** Charges the fuel of `count` subscriptions. Throws the trap if the time of the call is up. */
  chargeSubscriptions(count: number): void {
    this.wasi.charge(count * SUBSCRIPTION_BYTES);
  }

  isReady(fd: number, writes: boolean): boolean {
    return this.wasi.isReady(fd, writes);
  }

  /** Reads at most `length` bytes: at `offset`, or at the descriptor's position. No bytes mean the end. */
  read(fd: number, length: number, offset?: bigint): Uint8Array {
    this.#vector(Math.min(length, CHUNK_BYTES));
    if (offset === undefined) this.#call("fd_read", fd, AT.STRUCT, 1, AT.OUT);
    else this.#call("fd_pread", fd, AT.STRUCT, 1, offset, AT.OUT);
    return this.#bytes.slice(AT.DATA, AT.DATA + this.#view.getUint32(AT.OUT, true));
  }

  /** Writes all of `data`. Throws the trap if the time of the call is up before. */
  write(fd: number, data: Uint8Array, offset?: bigint): void {
    for (let at = 0; at < data.length;) {
      this.wasi.charge(0);
      at += this.#writeSome(fd, data, at, offset);
    }
  }

  #writeSome(fd: number, data: Uint8Array, at: number, offset: bigint | undefined): number {
    const part = data.subarray(at, at + CHUNK_BYTES);
    this.#bytes.set(part, AT.DATA);
    this.#vector(part.length);
    if (offset === undefined) this.#call("fd_write", fd, AT.STRUCT, 1, AT.OUT);
    else this.#call("fd_pwrite", fd, AT.STRUCT, 1, offset + BigInt(at), AT.OUT);
    return this.#view.getUint32(AT.OUT, true);
  }

  closeDescriptor(fd: number): void {
    this.#call("fd_close", fd);
  }

  /** Calls a function of one descriptor and number arguments. */
  onDescriptor(name: string, fd: number, ...args: (number | bigint)[]): void {
    this.#call(name, fd, ...args);
  }

  /** Calls a function of a directory and a path; `flags` come before the path, `rest` after it. */
  onPath(name: string, fd: number, flags: readonly number[], path: string, ...rest: (number | bigint)[]): void {
    this.#call(name, fd, ...flags, AT.PATH, this.#path(path), ...rest);
  }

  status(fd: number): FileStatus {
    this.#call("fd_filestat_get", fd, AT.OUT);
    return this.#readStatus();
  }

  statusAt(fd: number, follow: boolean, path: string): FileStatus {
    this.#call("path_filestat_get", fd, follow ? 1 : 0, AT.PATH, this.#path(path), AT.OUT);
    return this.#readStatus();
  }

  #readStatus(): FileStatus {
    const word = (offset: number) => this.#view.getBigUint64(AT.OUT + offset, true);
    return {
      device: word(0),
      inode: word(8),
      type: this.#bytes[AT.OUT + 16],
      links: word(24),
      size: word(32),
      accessed: word(40),
      modified: word(48),
      changed: word(56),
    };
  }

  /** The type, flags and rights of a descriptor. */
  descriptorStatus(fd: number): { type: number; flags: number; rights: bigint; inheriting: bigint } {
    this.#call("fd_fdstat_get", fd, AT.OUT);
    return {
      type: this.#bytes[AT.OUT],
      flags: this.#view.getUint16(AT.OUT + 2, true),
      rights: this.#view.getBigUint64(AT.OUT + 8, true),
      inheriting: this.#view.getBigUint64(AT.OUT + 16, true),
    };
  }

  open(
    fd: number,
    follow: boolean,
    path: string,
    oflags: number,
    rights: bigint,
    inheriting: bigint,
    flags: number,
  ): number {
    const length = this.#path(path);
    this.#call("path_open", fd, follow ? 1 : 0, AT.PATH, length, oflags, rights, inheriting, flags, AT.OUT);
    return this.#view.getUint32(AT.OUT, true);
  }

  readLink(fd: number, path: string): string {
    this.#call("path_readlink", fd, AT.PATH, this.#path(path), AT.DATA, CHUNK_BYTES, AT.OUT);
    return this.#text(AT.DATA, this.#view.getUint32(AT.OUT, true));
  }

  /** A function of two paths, such as path_rename, and path_link with flags. */
  twoPaths(name: string, fd: number, flags: readonly number[], path: string, other: number, otherPath: string): void {
    const length = this.#path(path);
    this.#call(name, fd, ...flags, AT.PATH, length, other, AT.PATH2, this.#path(otherPath, AT.PATH2));
  }

  symlink(content: string, fd: number, path: string): void {
    const length = this.#path(content, AT.PATH2);
    this.#call("path_symlink", AT.PATH2, length, fd, AT.PATH, this.#path(path));
  }

  /** The name of a preopened directory; undefined if there is none at `fd`. */
  preopenName(fd: number): string | undefined {
    if (this.#functions["fd_prestat_get"](fd, AT.OUT) !== 0) return undefined;
    const length = this.#view.getUint32(AT.OUT + 4, true);
    this.#call("fd_prestat_dir_name", fd, AT.DATA, length);
    return this.#text(AT.DATA, length);
  }

  /** The entries of a directory, without `.` and `..`. */
  *entries(fd: number): Generator<{ name: string; type: number }> {
    for (let cookie = 0n;;) {
      this.#call("fd_readdir", fd, AT.DATA, CHUNK_BYTES, cookie, AT.OUT);
      const used = this.#view.getUint32(AT.OUT, true);
      const page = this.#bytes.slice(AT.DATA, AT.DATA + used);
      const view = new DataView(page.buffer);
      let at = 0;
      while (at + 24 <= used) {
        const end = at + 24 + view.getUint32(at + 16, true);
        if (end > used) break;
        const name = DECODER.decode(page.subarray(at + 24, end));
        cookie = view.getBigUint64(at, true);
        if (name !== "." && name !== "..") yield { name, type: page[at + 20] };
        at = end;
      }
      if (used < CHUNK_BYTES || at === 0) return;
    }
  }

  #text(at: number, length: number): string {
    return DECODER.decode(this.#bytes.subarray(at, at + length));
  }

  /** The time of a clock in nanoseconds: 0 is the calendar's, 1 the monotonic one. */
  time(clock: 0 | 1): bigint {
    this.#call("clock_time_get", clock, 1n, AT.OUT);
    return this.#view.getBigUint64(AT.OUT, true);
  }

  resolution(clock: 0 | 1): bigint {
    this.#call("clock_res_get", clock, AT.OUT);
    return this.#view.getBigUint64(AT.OUT, true);
  }

  random(length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    for (let at = 0; at < length; at += CHUNK_BYTES) {
      const part = Math.min(CHUNK_BYTES, length - at);
      this.#call("random_get", AT.DATA, part);
      bytes.set(this.#bytes.subarray(AT.DATA, AT.DATA + part), at);
    }
    return bytes;
  }

  #seed: readonly [bigint, bigint] | undefined;

  /** Random bits for hash tables: the same at each call, as programs that call it twice may rely on. */
  insecureSeed(): [bigint, bigint] {
    if (this.#seed === undefined) {
      const view = new DataView(this.random(16).buffer);
      this.#seed = [view.getBigUint64(0), view.getBigUint64(8)];
    }
    return [...this.#seed];
  }

  /**
   * Waits until one of the subscriptions is ready, or for a short time if there are more of descriptors than fit: the
   * caller looks at all of them again.
   */
  poll(subscriptions: readonly Subscription[]): void {
    const streams = subscriptions.filter((subscription) => subscription.kind !== "clock");
    const list: Subscription[] = streams.slice(0, MAX_SUBSCRIPTIONS - 1);
    const times = subscriptions.flatMap((subscription) => subscription.kind === "clock" ? [subscription.until] : []);
    if (list.length < streams.length) times.push(this.time(1) + POLL_NS);
    // Of the clocks only the earliest counts.
    if (times.length > 0) list.push({ kind: "clock", until: times.reduce((a, b) => a < b ? a : b) });
    list.forEach((subscription, k) => this.#subscribe(k * SUBSCRIPTION_BYTES, k, subscription));
    this.#call("poll_oneoff", AT.STRUCT, AT.DATA, list.length, AT.OUT);
  }

  #subscribe(at: number, index: number, subscription: Subscription): void {
    this.#bytes.fill(0, at, at + 48);
    this.#view.setBigUint64(at, BigInt(index), true);
    if (subscription.kind === "clock") {
      this.#view.setUint32(at + 16, 1, true);
      this.#view.setBigUint64(at + 24, subscription.until, true);
      this.#view.setUint16(at + 40, 1, true);
      return;
    }
    this.#bytes[at + 8] = subscription.kind === "read" ? 1 : 2;
    this.#view.setUint32(at + 16, subscription.fd, true);
  }
}
