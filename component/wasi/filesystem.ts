/**
 * wasi:filesystem of WASI 0.2. In: descriptors of preview 1. Out: the classes of the interface, in jco's form.
 * Invariant: a descriptor has at most the rights of the directory that it was opened in.
 */
import { FDFLAG, FILETYPE, FSTFLAG, OFLAG, RIGHT } from "@waft/engine/internal/wasi/abi";
import { ComponentError } from "../abi/traps.ts";
import { type Holding, HostShare, SHARES } from "../async/host_quota.ts";
import type { FileStatus, Preview1 } from "./preview1.ts";
import { InputStream, IoError, OutputStream, SharedDescriptor } from "./streams.ts";

/** Names of descriptor types, by the file types of preview 1. */
const TYPES: Readonly<Record<number, string>> = {
  [FILETYPE.unknown]: "unknown",
  [FILETYPE.block_device]: "block-device",
  [FILETYPE.character_device]: "character-device",
  [FILETYPE.directory]: "directory",
  [FILETYPE.regular_file]: "regular-file",
  [FILETYPE.socket_dgram]: "socket",
  [FILETYPE.socket_stream]: "socket",
  [FILETYPE.symbolic_link]: "symbolic-link",
};

/** Rights that change files, and those that change directories. */
const WRITE_RIGHTS = BigInt(RIGHT.fd_write | RIGHT.fd_allocate | RIGHT.fd_filestat_set_size);
const READ_RIGHTS = BigInt(RIGHT.fd_read | RIGHT.fd_readdir);
const MUTATE_RIGHTS = BigInt(
  RIGHT.path_create_directory | RIGHT.path_create_file | RIGHT.path_link_source | RIGHT.path_link_target |
    RIGHT.path_rename_source | RIGHT.path_rename_target | RIGHT.path_filestat_set_size |
    RIGHT.path_filestat_set_times | RIGHT.path_symlink | RIGHT.path_remove_directory | RIGHT.path_unlink_file,
);

interface DescriptorFlags {
  readonly read?: boolean;
  readonly write?: boolean;
  readonly fileIntegritySync?: boolean;
  readonly dataIntegritySync?: boolean;
  readonly requestedWriteSync?: boolean;
  readonly mutateDirectory?: boolean;
}

interface OpenFlags {
  readonly create?: boolean;
  readonly directory?: boolean;
  readonly exclusive?: boolean;
  readonly truncate?: boolean;
}

interface PathFlags {
  readonly symlinkFollow?: boolean;
}

interface Datetime {
  readonly seconds: bigint;
  readonly nanoseconds: number;
}

type NewTimestamp = { readonly tag: "no-change" | "now" } | { readonly tag: "timestamp"; readonly val: Datetime };

/** A time in nanoseconds as a date with seconds. */
export function datetime(nanoseconds: bigint): Datetime {
  return { seconds: nanoseconds / 1_000_000_000n, nanoseconds: Number(nanoseconds % 1_000_000_000n) };
}

/** The record `descriptor-stat`. */
interface StatusRecord {
  readonly type: string;
  readonly linkCount: bigint;
  readonly size: bigint;
  readonly dataAccessTimestamp: Datetime;
  readonly dataModificationTimestamp: Datetime;
  readonly statusChangeTimestamp: Datetime;
}

function statusRecord(status: FileStatus): StatusRecord {
  return {
    type: TYPES[status.type] ?? "unknown",
    linkCount: status.links,
    size: status.size,
    dataAccessTimestamp: datetime(status.accessed),
    dataModificationTimestamp: datetime(status.modified),
    statusChangeTimestamp: datetime(status.changed),
  };
}

/** Times and flags of {fd,path}_filestat_set_times. */
function times(accessed: NewTimestamp, modified: NewTimestamp): [bigint, bigint, number] {
  const nanoseconds = (stamp: NewTimestamp) =>
    stamp.tag === "timestamp" ? stamp.val.seconds * 1_000_000_000n + BigInt(stamp.val.nanoseconds) : 0n;
  const flag = (stamp: NewTimestamp, set: number, now: number) =>
    stamp.tag === "timestamp" ? set : stamp.tag === "now" ? now : 0;
  const flags = flag(accessed, FSTFLAG.atim, FSTFLAG.atim_now) | flag(modified, FSTFLAG.mtim, FSTFLAG.mtim_now);
  return [nanoseconds(accessed), nanoseconds(modified), flags];
}

function hash({ device, inode }: FileStatus) {
  return { lower: inode, upper: device };
}

/** wasi:filesystem/types descriptor. */
export class Descriptor {
  readonly #preview1: Preview1;
  readonly #shared: SharedDescriptor;
  readonly #asked: DescriptorFlags;

  /**
   * `keep` leaves the descriptor open: guests ask for the preopened directories any number of times. `asked` are the
   * flags with which it was opened.
   */
  constructor(preview1: Preview1, fd: number, keep = false, asked: DescriptorFlags = { mutateDirectory: true }) {
    this.#preview1 = preview1;
    this.#asked = asked;
    this.#shared = new SharedDescriptor(preview1, fd, keep).use();
  }

  get #fd(): number {
    return this.#shared.fd;
  }

  readViaStream(offset: bigint): InputStream {
    this.#require(RIGHT.fd_read);
    return new InputStream(this.#preview1, this.#shared, offset);
  }

  writeViaStream(offset: bigint): OutputStream {
    this.#require(RIGHT.fd_write);
    return new OutputStream(this.#preview1, this.#shared, offset);
  }

  appendViaStream(): OutputStream {
    this.#require(RIGHT.fd_write);
    return new OutputStream(this.#preview1, this.#shared, "end");
  }

  /** Throws bad-descriptor for a directory, and `code` for a file that was not opened for the operation. */
  #require(right: number, code = "bad-descriptor"): void {
    const { type, rights } = this.#preview1.descriptorStatus(this.#fd);
    if (type === FILETYPE.directory) throw new ComponentError("bad-descriptor");
    if ((rights & BigInt(right)) === 0n) throw new ComponentError(code);
  }

  /** Runs an operation; its failure has the code of {@linkcode #require} if the descriptor does not permit it. */
  #permitted<T>(right: number, action: () => T, code?: string): T {
    try {
      return action();
    } catch (error) {
      this.#require(right, code);
      throw error;
    }
  }

  advise(offset: bigint, length: bigint, advice: string): void {
    this.#require(RIGHT.fd_advise);
    const codes = ["normal", "sequential", "random", "will-need", "dont-need", "no-reuse"];
    this.#preview1.onDescriptor("fd_advise", this.#fd, offset, length, codes.indexOf(advice));
  }

  syncData(): void {
    this.#preview1.onDescriptor("fd_datasync", this.#fd);
  }

  sync(): void {
    this.#preview1.onDescriptor("fd_sync", this.#fd);
  }

  getFlags(): DescriptorFlags {
    const { rights, flags, type } = this.#preview1.descriptorStatus(this.#fd);
    return {
      read: (rights & READ_RIGHTS) !== 0n,
      write: (rights & BigInt(RIGHT.fd_write)) !== 0n,
      fileIntegritySync: (flags & FDFLAG.sync) !== 0,
      dataIntegritySync: (flags & FDFLAG.dsync) !== 0,
      requestedWriteSync: (flags & FDFLAG.rsync) !== 0,
      mutateDirectory: type === FILETYPE.directory && this.#asked.mutateDirectory === true &&
        (rights & MUTATE_RIGHTS) !== 0n,
    };
  }

  getType(): string {
    return TYPES[this.#preview1.descriptorStatus(this.#fd).type] ?? "unknown";
  }

  setSize(size: bigint): void {
    const change = () => this.#preview1.onDescriptor("fd_filestat_set_size", this.#fd, size);
    this.#permitted(RIGHT.fd_filestat_set_size, change, "invalid");
  }

  setTimes(accessed: NewTimestamp, modified: NewTimestamp): void {
    this.#preview1.onDescriptor("fd_filestat_set_times", this.#fd, ...times(accessed, modified));
  }

  read(length: bigint, offset: bigint): [Uint8Array, boolean] {
    const most = Number(length < 0x10000n ? length : 0x10000n);
    const bytes = this.#permitted(RIGHT.fd_read, () => this.#preview1.read(this.#fd, most, offset));
    return [bytes, most > 0 && bytes.length === 0];
  }

  write(bytes: Uint8Array, offset: bigint): bigint {
    this.#permitted(RIGHT.fd_write, () => this.#preview1.write(this.#fd, bytes, offset));
    return BigInt(bytes.length);
  }

  readDirectory(): DirectoryEntryStream {
    return new DirectoryEntryStream([...this.#preview1.entries(this.#fd)]);
  }

  createDirectoryAt(path: string): void {
    this.#preview1.onPath("path_create_directory", this.#fd, [], path);
  }

  stat(): ReturnType<typeof statusRecord> {
    return statusRecord(this.#preview1.status(this.#fd));
  }

  statAt(flags: PathFlags, path: string): ReturnType<typeof statusRecord> {
    return statusRecord(this.#preview1.statusAt(this.#fd, flags.symlinkFollow === true, path));
  }

  setTimesAt(flags: PathFlags, path: string, accessed: NewTimestamp, modified: NewTimestamp): void {
    const follow = flags.symlinkFollow === true ? 1 : 0;
    this.#preview1.onPath("path_filestat_set_times", this.#fd, [follow], path, ...times(accessed, modified));
  }

  linkAt(flags: PathFlags, path: string, target: Descriptor, targetPath: string): void {
    const follow = flags.symlinkFollow === true ? 1 : 0;
    this.#preview1.twoPaths("path_link", this.#fd, [follow], path, target.#fd, targetPath);
  }

  openAt(pathFlags: PathFlags, path: string, open: OpenFlags, flags: DescriptorFlags): Descriptor {
    const { inheriting } = this.#preview1.descriptorStatus(this.#fd);
    const oflags = (open.create ? OFLAG.creat : 0) | (open.directory ? OFLAG.directory : 0) |
      (open.exclusive ? OFLAG.excl : 0) | (open.truncate ? OFLAG.trunc : 0);
    let rights = inheriting;
    if (!flags.write) rights &= ~WRITE_RIGHTS;
    if (!flags.read) rights &= ~READ_RIGHTS;
    let kept = inheriting;
    if (open.directory && !flags.mutateDirectory) {
      rights &= ~MUTATE_RIGHTS;
      kept &= ~(MUTATE_RIGHTS | WRITE_RIGHTS);
    }
    const fdflags = (flags.fileIntegritySync ? FDFLAG.sync : 0) | (flags.dataIntegritySync ? FDFLAG.dsync : 0) |
      (flags.requestedWriteSync ? FDFLAG.rsync : 0);
    const follow = pathFlags.symlinkFollow === true;
    const fd = this.#preview1.open(this.#fd, follow, path, oflags, rights, kept, fdflags);
    return new Descriptor(this.#preview1, fd, false, flags);
  }

  readlinkAt(path: string): string {
    return this.#preview1.readLink(this.#fd, path);
  }

  removeDirectoryAt(path: string): void {
    this.#preview1.onPath("path_remove_directory", this.#fd, [], path);
  }

  renameAt(path: string, target: Descriptor, targetPath: string): void {
    this.#preview1.twoPaths("path_rename", this.#fd, [], path, target.#fd, targetPath);
  }

  symlinkAt(content: string, path: string): void {
    if (content.startsWith("/")) throw new ComponentError("not-permitted");
    this.#preview1.symlink(content, this.#fd, path);
  }

  unlinkFileAt(path: string): void {
    this.#preview1.onPath("path_unlink_file", this.#fd, [], path);
  }

  isSameObject(other: Descriptor): boolean {
    const [a, b] = [this.#preview1.status(this.#fd), this.#preview1.status(other.#fd)];
    return a.device === b.device && a.inode === b.inode;
  }

  metadataHash(): { lower: bigint; upper: bigint } {
    return hash(this.#preview1.status(this.#fd));
  }

  metadataHashAt(flags: PathFlags, path: string): { lower: bigint; upper: bigint } {
    return hash(this.#preview1.statusAt(this.#fd, flags.symlinkFollow === true, path));
  }

  [Symbol.dispose](): void {
    this.#shared.release();
  }
}

/** The bytes of the host that a directory entry counts besides its name. */
const ENTRY_BYTES = 64;

/** wasi:filesystem/types directory-entry-stream. */
export class DirectoryEntryStream implements Holding {
  readonly #entries: readonly { name: string; type: number }[];
  readonly [SHARES]: readonly HostShare[];
  #next = 0;

  constructor(entries: readonly { name: string; type: number }[]) {
    this.#entries = entries;
    this[SHARES] = [new HostShare(entries.reduce((sum, { name }) => sum + ENTRY_BYTES + 2 * name.length, 0))];
  }

  readDirectoryEntry(): { type: string; name: string } | undefined {
    const entry = this.#entries[this.#next++];
    return entry === undefined ? undefined : { type: TYPES[entry.type] ?? "unknown", name: entry.name };
  }
}

/** filesystem-error-code: the code behind an error of a stream. */
export function filesystemErrorCode(error: IoError): string | undefined {
  return error instanceof IoError ? error.code : undefined;
}

/** The first descriptor after the standard streams. */
const FIRST_PREOPEN = 3;

/** The preopened directories with their names. */
export function preopens(preview1: Preview1): [Descriptor, string][] {
  const list: [Descriptor, string][] = [];
  for (let fd = FIRST_PREOPEN;; fd++) {
    const name = preview1.preopenName(fd);
    if (name === undefined) return list;
    list.push([new Descriptor(preview1, fd, true), name]);
  }
}
