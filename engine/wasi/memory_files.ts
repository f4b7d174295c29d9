/**
 * Files and streams in memory, as system calls. In: files by path, the bytes of standard input, receivers of standard
 * output and error. Out: descriptors above those of the process, and a function that makes the calls for them and
 * passes all others on. Invariants: calls behave as Linux's (linux_calls.ts), so the functions of WASI do not know the
 * difference; a path is one name, because paths are resolved before (paths.ts); the bytes of all files are limited.
 */
import type { LinuxCall, LinuxCalls } from "../host/calls/linux_calls.ts";
import type { openFlags } from "./abi.ts";

/** Gives the bytes at an address that a call passes: memory of the guest, or of the scratch buffer. */
export type BytesAt = (address: number, length: number) => Uint8Array;

/** The first number of a descriptor in memory. */
const FIRST_FD = 0x4000_0000;
/** The bytes that a file, a directory, and each further name of a file count besides the contents. */
const NODE_BYTES = 512;
/** The bytes that a part of collected output counts besides its own. */
const PART_BYTES = 128;
/** The longest name, as Linux has it. */
const MAX_NAME = 255;
const PATH_BYTES = 8192;

/** Linux's error numbers. */
const E = {
  PERM: -1,
  NOENT: -2,
  BADF: -9,
  BUSY: -16,
  EXIST: -17,
  XDEV: -18,
  NOTDIR: -20,
  ISDIR: -21,
  INVAL: -22,
  FBIG: -27,
  NOSPC: -28,
  SPIPE: -29,
  NAMETOOLONG: -36,
  NOSYS: -38,
  NOTEMPTY: -39,
  LOOP: -40,
  NOTSOCK: -88,
} as const;

/** Type bits of modes, and Linux's types of directory entries. */
const MODE = { FIFO: 0x1000, DIRECTORY: 0x4000, FILE: 0x8000, LINK: 0xa000 } as const;
const ENTRY_TYPE = { directory: 4, file: 8, link: 10 } as const;
const AT_REMOVEDIR = 0x200;
const UTIME_NOW = 0x3fffffff;
const UTIME_OMIT = 0x3ffffffe;
const POLL_IN = 1, POLL_OUT = 4;
const POLLFD_BYTES = 8;
const VECTOR_BYTES = 16;
const STATX_BYTES = 256;
const MAX_FILE_BYTES = 2 ** 31 - 1;

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

interface Status {
  readonly inode: number;
  links: number;
  /** Nanoseconds since 1970. */
  accessed: bigint;
  modified: bigint;
  changed: bigint;
}

interface FileNode extends Status {
  readonly kind: "file";
  /** The contents, and room for more. */
  bytes: Uint8Array;
  size: number;
}

interface DirectoryNode extends Status {
  readonly kind: "directory";
  readonly entries: Map<string, Node>;
  parent: DirectoryNode;
}

interface LinkNode extends Status {
  readonly kind: "link";
  readonly target: Uint8Array;
}

/** A standard stream: a source of bytes, or a receiver. */
interface StreamNode extends Status {
  readonly kind: "stream";
  /** At most `most` bytes; none at the end. */
  readonly read?: (most: number) => Uint8Array;
  readonly write?: (bytes: Uint8Array) => void;
}

type Node = FileNode | DirectoryNode | LinkNode | StreamNode;

/** An open file description. */
interface Open {
  readonly node: Node;
  position: number;
  append: boolean;
  readonly reads: boolean;
  readonly writes: boolean;
  /** The entries of a directory since they were first listed, until all have been. */
  listed?: readonly (readonly [string, Node])[];
}

/**
 * A character that no name has, because it separates names on Windows: a program that writes the files to its folders
 * there would follow `..\\..` out of them.
 */
const SEPARATOR = "\\";

/** Ends a call with an error number. */
class CallError extends Error {
  readonly errno: number;

  constructor(errno: number) {
    super(`errno ${-errno}`);
    this.errno = errno;
  }
}

function fail(errno: number): never {
  throw new CallError(errno);
}

/** Whether a directory is `node`, or is inside of it. */
function isWithin(directory: DirectoryNode, node: Node): boolean {
  for (let above = directory;; above = above.parent) {
    if (above === node) return true;
    if (above === above.parent) return false;
  }
}

type Call = (fd: number, ...args: number[]) => number;

/** The place of the descriptor among the arguments of a call; those without one are the system's. */
const FD_AT: Partial<Record<LinuxCall, number>> = { symlinkat: 1 };
const WITHOUT_FD: ReadonlySet<LinuxCall> = new Set(["clock_gettime", "clock_getres", "getrandom", "sched_yield"]);

/** The files of one guest. */
export class MemoryFiles {
  readonly #flags: ReturnType<typeof openFlags>;
  readonly #bytesAt: BytesAt;
  readonly #below: LinuxCalls;
  readonly #most: number;
  readonly #open = new Map<number, Open>();
  readonly #root: DirectoryNode;
  #nextFd = FIRST_FD;
  #nextInode = 1;
  #used = 0;

  /** `below` makes the calls for other descriptors; files have at most `most` bytes together. */
  constructor(flags: ReturnType<typeof openFlags>, bytesAt: BytesAt, below: LinuxCalls, most: number) {
    this.#flags = flags;
    this.#bytesAt = bytesAt;
    this.#below = below;
    this.#most = most;
    this.#root = this.#fitting("the directory of the files", () => this.#newDirectory(undefined));
  }

  /** Makes a part of the option `files`. Throws RangeError with the option's name if it exceeds the limit. */
  #fitting<T>(what: string, make: () => T): T {
    try {
      return make();
    } catch (error) {
      if (!(error instanceof CallError) || error.errno !== E.NOSPC) throw error;
      throw new RangeError(`The option maxFileBytes, ${this.#most}, has no room for ${what}`);
    }
  }

  /**
   * Adds a file at a path with slashes. Throws TypeError for a path that has no file name or leads through a file, and
   * RangeError above the limit.
   */
  addFile(path: string, contents: Uint8Array): void {
    this.#fitting(`the file "${path}"`, () => this.#addFile(path, contents));
  }

  #addFile(path: string, contents: Uint8Array): void {
    const names = path.split("/").filter((name) => name !== "");
    const last = names.pop();
    const isBad = (name: string) =>
      name === "." || name === ".." || name.includes("\0") || name.includes(SEPARATOR) || name.length > MAX_NAME;
    if (last === undefined || path.endsWith("/") || [...names, last].some(isBad)) {
      throw new TypeError(`"${path}" is not the path of a file`);
    }
    let directory = this.#root;
    for (const name of names) {
      const next = directory.entries.get(name) ?? this.#newDirectory(directory);
      if (next.kind !== "directory") throw new TypeError(`"${path}" leads through a file`);
      directory.entries.set(name, next);
      directory = next;
    }
    if (directory.entries.has(last)) throw new TypeError(`"${path}" is given twice, or is a directory`);
    directory.entries.set(last, this.#newFile(contents));
  }

  /** Opens the directory of all files. */
  openRoot(): number {
    return this.#add({ node: this.#root, position: 0, append: false, reads: true, writes: false });
  }

  /** Opens a source of bytes. */
  openSource(read: (most: number) => Uint8Array): number {
    const node: StreamNode = { kind: "stream", read, ...this.#status() };
    return this.#add({ node, position: 0, append: false, reads: true, writes: false });
  }

  /** Opens a receiver of bytes, which may keep what it gets. */
  openReceiver(write: (bytes: Uint8Array) => void): number {
    const node: StreamNode = { kind: "stream", write, ...this.#status() };
    return this.#add({ node, position: 0, append: false, reads: false, writes: true });
  }

  /** A receiver that keeps all bytes, which count like those of files. */
  collecting(keep: (bytes: Uint8Array) => void): (bytes: Uint8Array) => void {
    return (bytes) => {
      this.#take(bytes.length + PART_BYTES);
      keep(bytes);
    };
  }

  /** The contents of all files by their paths. */
  contents(): Record<string, Uint8Array> {
    const found: Record<string, Uint8Array> = Object.create(null);
    const visit = ({ entries }: DirectoryNode, prefix: string) => {
      for (const [name, node] of entries) {
        if (node.kind === "directory") visit(node, `${prefix}${name}/`);
        else if (node.kind === "file") found[prefix + name] = node.bytes.slice(0, node.size);
      }
    };
    visit(this.#root, "");
    return found;
  }

  /** Makes a call: for descriptors in memory here, otherwise by the system. */
  readonly call: LinuxCalls = (name, ...args) => {
    if (name === "ppoll") return this.#poll(args.map(Number));
    const fd = WITHOUT_FD.has(name) ? -1 : Number(args[FD_AT[name] ?? 0]);
    const second = name === "linkat" || name === "renameat2" ? Number(args[2]) : fd;
    const inMemory = this.#open.has(fd);
    if (!inMemory && !this.#open.has(second)) return this.#below(name, ...args);
    if (inMemory !== this.#open.has(second)) return E.XDEV;
    const call = (this.#calls as Partial<Record<LinuxCall, Call>>)[name];
    if (call === undefined) return E.NOSYS;
    try {
      return call(...args.map(Number) as [number, ...number[]]);
    } catch (error) {
      if (error instanceof CallError) return error.errno;
      throw error;
    }
  };

  readonly #calls = {
    openat: (fd, path, flags) => this.#openAt(this.#directory(fd), this.#name(path), flags),
    close: (fd) => {
      this.#close(fd);
      return 0;
    },
    read: (fd, address, length) => this.#read(fd, [[address, length]], undefined),
    write: (fd, address, length) => this.#write(fd, [[address, length]], undefined),
    readv: (fd, vectors, count) => this.#read(fd, this.#vectors(vectors, count), undefined),
    writev: (fd, vectors, count) => this.#write(fd, this.#vectors(vectors, count), undefined),
    preadv: (fd, vectors, count, offset) => this.#read(fd, this.#vectors(vectors, count), offset),
    pwritev: (fd, vectors, count, offset) => this.#write(fd, this.#vectors(vectors, count), offset),
    preadv2: (fd, vectors, count, at) => this.#read(fd, this.#vectors(vectors, count), at < 0 ? undefined : at),
    pwritev2: (fd, vectors, count, at) => this.#write(fd, this.#vectors(vectors, count), at < 0 ? undefined : at),
    lseek: (fd, offset, whence) => this.#seek(fd, offset, whence),
    fsync: () => 0,
    fdatasync: () => 0,
    fadvise64: () => 0,
    ftruncate: (fd, size) => this.#resize(this.#writableFile(fd), size),
    fallocate: (fd, _mode, offset, length) => {
      const file = this.#writableFile(fd);
      if (offset < 0 || length <= 0) return E.INVAL;
      return this.#resize(file, Math.max(file.size, offset + length));
    },
    fcntl: (fd, _command, flags) => {
      this.#of(fd).append = (flags & this.#flags.APPEND) !== 0;
      return 0;
    },
    statx: (fd, path, _flags, _mask, out) => this.#stat(this.#nodeAt(fd, path), out),
    getdents64: (fd, address, length) => this.#list(fd, address, length),
    mkdirat: (fd, path) => {
      const parent = this.#directory(fd);
      this.#insert(parent, this.#newName(parent, path, true), this.#newDirectory(parent));
      return 0;
    },
    symlinkat: (target, fd, path) => {
      const parent = this.#directory(fd);
      const name = this.#newName(parent, path, false);
      const bytes = this.#text(target);
      this.#take(NODE_BYTES + bytes.length);
      this.#insert(parent, name, { kind: "link", target: bytes, ...this.#status() });
      return 0;
    },
    readlinkat: (fd, path, address, size) => {
      const node = this.#nodeAt(fd, path);
      if (node.kind !== "link") return E.INVAL;
      const part = node.target.subarray(0, size);
      this.#bytesAt(address, part.length).set(part);
      return part.length;
    },
    unlinkat: (fd, path, flags) => this.#unlink(this.#directory(fd), path, (flags & AT_REMOVEDIR) !== 0),
    linkat: (from, path, to, newPath) => {
      const node = this.#nodeAt(from, path);
      const parent = this.#directory(to);
      const name = this.#newName(parent, newPath, false);
      if (node.kind === "directory") return E.PERM;
      this.#take(NODE_BYTES);
      this.#insert(parent, name, node);
      node.links++;
      return 0;
    },
    renameat2: (from, path, to, newPath) => this.#rename(this.#directory(from), path, this.#directory(to), newPath),
    utimensat: (fd, path, times) => {
      this.#setTimes(path === 0 ? this.#of(fd).node : this.#nodeAt(fd, path), times);
      return 0;
    },
    accept4: () => E.NOTSOCK,
    shutdown: () => E.NOTSOCK,
    sendto: () => E.NOTSOCK,
    recvfrom: () => E.NOTSOCK,
  } satisfies Partial<Record<LinuxCall, Call>>;

  // Nodes and descriptions.

  #now(): bigint {
    return BigInt(Date.now()) * 1_000_000n;
  }

  #status(): Status {
    const now = this.#now();
    return { inode: this.#nextInode++, links: 1, accessed: now, modified: now, changed: now };
  }

  /** Counts bytes. Fails with ENOSPC above the limit. */
  #take(bytes: number): void {
    if (this.#used + bytes > this.#most) fail(E.NOSPC);
    this.#used += bytes;
  }

  #newDirectory(parent: DirectoryNode | undefined): DirectoryNode {
    this.#take(NODE_BYTES);
    const made = { kind: "directory", entries: new Map<string, Node>(), ...this.#status() } as unknown as DirectoryNode;
    made.parent = parent ?? made;
    return made;
  }

  #newFile(contents: Uint8Array): FileNode {
    if (contents.length > MAX_FILE_BYTES) throw new RangeError(`A file in memory has at most ${MAX_FILE_BYTES} bytes`);
    this.#take(NODE_BYTES + contents.length);
    return { kind: "file", bytes: contents.slice(), size: contents.length, ...this.#status() };
  }

  /** Forgets a node that neither a directory nor a description has. */
  #release(node: Node): void {
    if (node.links > 0 || [...this.#open.values()].some((open) => open.node === node)) return;
    const contents = node.kind === "file" ? node.bytes.length : node.kind === "link" ? node.target.length : 0;
    this.#used -= NODE_BYTES + contents;
  }

  #add(open: Open): number {
    const fd = this.#nextFd++;
    this.#open.set(fd, open);
    return fd;
  }

  #close(fd: number): void {
    const { node } = this.#of(fd);
    this.#open.delete(fd);
    if (node.kind !== "stream") this.#release(node);
  }

  #of(fd: number): Open {
    return this.#open.get(fd) ?? fail(E.BADF);
  }

  #directory(fd: number): DirectoryNode {
    const { node } = this.#of(fd);
    return node.kind === "directory" ? node : fail(E.NOTDIR);
  }

  #writableFile(fd: number): FileNode {
    const { node, writes } = this.#of(fd);
    return node.kind === "file" && writes ? node : fail(E.INVAL);
  }

  // Names.

  /** The bytes of a C string. */
  #text(address: number): Uint8Array {
    const bytes = this.#bytesAt(address, PATH_BYTES);
    return bytes.slice(0, bytes.indexOf(0));
  }

  #name(address: number): string {
    const text = this.#text(address);
    return DECODER.decode(text);
  }

  /** The name of an entry without the slash that may follow it. */
  #entryName(path: string): string {
    const name = path.replace(/\/+$/, "");
    if (ENCODER.encode(name).length > MAX_NAME) fail(E.NAMETOOLONG);
    return name;
  }

  /** The node with a name in a directory: itself for "." and "". */
  #lookUp(directory: DirectoryNode, path: string): Node {
    const name = this.#entryName(path);
    if (name === "" || name === ".") return directory;
    const node = directory.entries.get(name) ?? fail(E.NOENT);
    if (path.endsWith("/") && node.kind !== "directory") fail(E.NOTDIR);
    return node;
  }

  #nodeAt(fd: number, address: number): Node {
    const path = this.#name(address);
    return path === "" ? this.#of(fd).node : this.#lookUp(this.#directory(fd), path);
  }

  /** A name for a new entry. */
  #portable(name: string): string {
    return name.includes(SEPARATOR) ? fail(E.INVAL) : name;
  }

  /** A name that the directory does not have yet. */
  #newName(directory: DirectoryNode, address: number, maySlash: boolean): string {
    const path = this.#name(address);
    const name = this.#entryName(path);
    if (name === "" || name === "." || directory.entries.has(name)) fail(E.EXIST);
    if (!maySlash && path.endsWith("/")) fail(E.NOENT);
    // A directory that has been removed gets no entries.
    if (directory.links === 0) fail(E.NOENT);
    return this.#portable(name);
  }

  #insert(directory: DirectoryNode, name: string, node: Node): void {
    directory.entries.set(name, node);
    directory.modified = directory.changed = this.#now();
  }

  #remove(directory: DirectoryNode, name: string): void {
    const node = directory.entries.get(name)!;
    directory.entries.delete(name);
    directory.modified = directory.changed = this.#now();
    node.links--;
    if (node.links > 0) this.#used -= NODE_BYTES;
    else this.#release(node);
  }

  #openAt(directory: DirectoryNode, path: string, flags: number): number {
    const f = this.#flags;
    const has = (flag: number) => (flags & flag) !== 0;
    let node: Node | undefined;
    try {
      node = this.#lookUp(directory, path);
    } catch (error) {
      if (!(error instanceof CallError) || error.errno !== E.NOENT || !has(f.CREAT)) throw error;
    }
    if (node !== undefined && has(f.CREAT) && has(f.EXCL)) return E.EXIST;
    if (node === undefined) {
      if (path.endsWith("/")) return E.ISDIR;
      if (directory.links === 0) return E.NOENT;
      const name = this.#portable(this.#entryName(path));
      this.#insert(directory, name, node = this.#newFile(new Uint8Array(0)));
    }
    if (node.kind === "link") return has(f.DIRECTORY) ? E.NOTDIR : E.LOOP;
    if (has(f.DIRECTORY) && node.kind !== "directory") return E.NOTDIR;
    const access = flags & 3;
    const writes = access === f.WRONLY || access === f.RDWR;
    if (node.kind === "directory" && (writes || has(f.CREAT | f.TRUNC))) return E.ISDIR;
    if (node.kind === "file" && has(f.TRUNC)) this.#resize(node, 0);
    return this.#add({ node, position: 0, append: has(f.APPEND), reads: access !== f.WRONLY, writes });
  }

  #unlink(directory: DirectoryNode, address: number, isDirectory: boolean): number {
    const path = this.#name(address);
    const node = this.#lookUp(directory, path);
    if (node === directory) return isDirectory ? E.INVAL : E.ISDIR;
    if (isDirectory && node.kind !== "directory") return E.NOTDIR;
    if (!isDirectory && node.kind === "directory") return E.ISDIR;
    if (node.kind === "directory" && node.entries.size > 0) return E.NOTEMPTY;
    this.#remove(directory, this.#entryName(path));
    return 0;
  }

  #rename(from: DirectoryNode, path: number, to: DirectoryNode, newPath: number): number {
    const [source, target] = [this.#name(path), this.#name(newPath)];
    const [oldName, name] = [this.#entryName(source), this.#entryName(target)];
    // In the order of Linux (fs/namei.c).
    if ([oldName, name].some((part) => part === "" || part === ".")) return E.BUSY;
    const node = from.entries.get(oldName) ?? fail(E.NOENT);
    if (node.kind !== "directory" && (source.endsWith("/") || target.endsWith("/"))) return E.NOTDIR;
    const old = to.entries.get(name);
    if (isWithin(to, node)) return E.INVAL;
    if (old !== undefined && isWithin(from, old)) return E.NOTEMPTY;
    if (old === node) return 0;
    if (to.links === 0) return E.NOENT;
    this.#portable(name);
    if (old !== undefined) {
      if (old.kind === "directory" && node.kind !== "directory") return E.ISDIR;
      if (old.kind !== "directory" && node.kind === "directory") return E.NOTDIR;
      if (old.kind === "directory" && old.entries.size > 0) return E.NOTEMPTY;
      this.#remove(to, name);
    }
    from.entries.delete(oldName);
    from.modified = this.#now();
    this.#insert(to, name, node);
    if (node.kind === "directory") node.parent = to;
    return 0;
  }

  // Contents.

  /** The addresses and lengths of vectors. */
  #vectors(address: number, count: number): [number, number][] {
    const bytes = this.#bytesAt(address, count * VECTOR_BYTES);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    return Array.from({ length: count }, (_, k) => [
      Number(view.getBigUint64(k * VECTOR_BYTES, true)),
      Number(view.getBigUint64(k * VECTOR_BYTES + 8, true)),
    ]);
  }

  #read(fd: number, vectors: readonly (readonly [number, number])[], offset: number | undefined): number {
    const open = this.#of(fd);
    const { node } = open;
    if (node.kind === "directory") return E.ISDIR;
    if (!open.reads || node.kind === "link") return E.BADF;
    if (node.kind === "stream" && offset !== undefined) return E.SPIPE;
    let at = offset ?? open.position;
    let done = 0;
    for (const [address, length] of vectors) {
      const part = node.kind === "stream"
        ? node.read?.(length) ?? new Uint8Array(0)
        : node.bytes.subarray(at, Math.min(node.size, at + length));
      this.#bytesAt(address, part.length).set(part);
      at += part.length;
      done += part.length;
      if (part.length < length) break;
    }
    if (offset === undefined) open.position = at;
    node.accessed = this.#now();
    return done;
  }

  #write(fd: number, vectors: readonly (readonly [number, number])[], offset: number | undefined): number {
    const open = this.#of(fd);
    const { node } = open;
    if (!open.writes || node.kind === "link" || node.kind === "directory") return E.BADF;
    let done = 0;
    if (node.kind === "stream") {
      if (offset !== undefined) return E.SPIPE;
      for (const [address, length] of vectors) {
        if (length > 0) node.write!(this.#bytesAt(address, length).slice());
        done += length;
      }
      return done;
    }
    let at = open.append ? node.size : offset ?? open.position;
    const length = vectors.reduce((sum, [, length]) => sum + length, 0);
    if (length > 0) this.#grow(node, at + length);
    for (const [address, length] of vectors) {
      node.bytes.set(this.#bytesAt(address, length), at);
      at += length;
      done += length;
    }
    if (length > 0) node.size = Math.max(node.size, at);
    if (offset === undefined) open.position = at;
    node.modified = node.changed = this.#now();
    return done;
  }

  /** Makes room for a file of `size` bytes. */
  #grow(file: FileNode, size: number): void {
    if (size > MAX_FILE_BYTES) fail(E.FBIG);
    const room = file.bytes.length;
    if (size <= room) return;
    const wanted = Math.min(Math.max(size, 2 * room), Math.max(size, this.#most - this.#used + room));
    this.#take(wanted - room);
    const bytes = new Uint8Array(wanted);
    bytes.set(file.bytes.subarray(0, file.size));
    file.bytes = bytes;
  }

  #resize(file: FileNode, size: number): number {
    if (size < 0) return E.INVAL;
    this.#grow(file, size);
    if (size < file.size) file.bytes.fill(0, size, file.size);
    file.size = size;
    file.modified = file.changed = this.#now();
    return 0;
  }

  #seek(fd: number, offset: number, whence: number): number {
    const open = this.#of(fd);
    const { node } = open;
    if (node.kind === "stream") return E.SPIPE;
    const from = whence === 0 ? 0 : whence === 1 ? open.position : node.kind === "file" ? node.size : 0;
    const to = from + offset;
    if (to < 0 || !Number.isSafeInteger(to)) return E.INVAL;
    return open.position = to;
  }

  #setTimes(node: Node, address: number): void {
    const now = this.#now();
    const bytes = address === 0 ? undefined : this.#bytesAt(address, 32);
    const view = bytes && new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const read = (at: number, before: bigint): bigint => {
      const nanoseconds = Number(view!.getBigInt64(at + 8, true));
      if (nanoseconds === UTIME_OMIT) return before;
      return nanoseconds === UTIME_NOW ? now : view!.getBigInt64(at, true) * 1_000_000_000n + BigInt(nanoseconds);
    };
    node.accessed = view === undefined ? now : read(0, node.accessed);
    node.modified = view === undefined ? now : read(16, node.modified);
    node.changed = now;
  }

  #stat(node: Node, out: number): number {
    const bytes = this.#bytesAt(out, STATX_BYTES);
    bytes.fill(0);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const size = node.kind === "file" ? node.size : node.kind === "link" ? node.target.length : 0;
    const type = { file: MODE.FILE, directory: MODE.DIRECTORY, link: MODE.LINK, stream: MODE.FIFO }[node.kind];
    view.setUint32(16, node.links, true);
    view.setUint16(28, type | 0o600, true);
    view.setBigUint64(32, BigInt(node.inode), true);
    view.setBigUint64(40, BigInt(size), true);
    for (const [at, time] of [[64, node.accessed], [96, node.changed], [112, node.modified]] as const) {
      view.setBigInt64(at, time / 1_000_000_000n, true);
      view.setUint32(at + 8, Number(time % 1_000_000_000n), true);
    }
    return 0;
  }

  /** Writes entries from the position on, which is the number of an entry. */
  #list(fd: number, address: number, length: number): number {
    const open = this.#of(fd);
    const directory = this.#directory(fd);
    if (directory.links === 0) return E.NOENT;
    // A copy of the map for each part of the list would take quadratic time.
    if (open.position === 0) delete open.listed;
    const entries = open.listed ??= [[".", directory], ["..", directory.parent], ...directory.entries];
    const bytes = this.#bytesAt(address, length);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    let at = 0;
    for (; open.position < entries.length; open.position++) {
      const [name, { inode, kind }] = entries[open.position];
      const text = ENCODER.encode(name);
      const size = (19 + text.length + 1 + 7) & ~7;
      if (at + size > length) break;
      bytes.fill(0, at, at + size);
      view.setBigUint64(at, BigInt(inode), true);
      view.setBigUint64(at + 8, BigInt(open.position + 1), true);
      view.setUint16(at + 16, size, true);
      bytes[at + 18] = ENTRY_TYPE[kind as keyof typeof ENTRY_TYPE] ?? 0;
      bytes.set(text, at + 19);
      at += size;
    }
    if (open.position >= entries.length) delete open.listed;
    return at === 0 && open.position < entries.length ? E.INVAL : at;
  }

  /** ppoll of descriptors of both kinds: those in memory are always ready. */
  #poll(args: number[]): number {
    const [address, count] = args;
    const bytes = this.#bytesAt(address, count * POLLFD_BYTES);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const isOwn = (at: number) => this.#open.has(view.getInt32(at, true));
    let own = 0;
    for (let at = 0; at < bytes.length; at += POLLFD_BYTES) own += isOwn(at) ? 1 : 0;
    if (own === 0) return this.#below("ppoll", ...args);
    for (let at = 0; at < bytes.length; at += POLLFD_BYTES) {
      view.setUint16(at + 6, isOwn(at) ? view.getUint16(at + 4, true) & (POLL_IN | POLL_OUT) : 0, true);
    }
    return own;
  }
}
