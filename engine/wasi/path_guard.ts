/**
 * Protects files and directories from changes by any guest, whatever its preopened directories.
 *
 * In: names, files and directories to protect, and a resolved place or an open descriptor. Out: nothing, or the error
 * EPERM. Invariant: entries are matched by name in any spelling that a file system could treat as equal, and by device
 * and inode number, so that hard links, bind mounts and renamed parent directories do not bypass the protection. A path
 * that does not exist yet is protected too: a guest cannot move or link prepared content to it. Files are identified
 * again at each check, because their owner may replace them while a guest runs.
 */
import { systemName } from "../host/process.ts";
import { ERRNO, FILETYPE } from "./abi.ts";
import type { PathSystem, Place } from "./paths.ts";
import { WasiError } from "./wasi_error.ts";
import { type FileStatus, filetypeOf, readStatus, readStatusAt } from "./status.ts";

/** The paths to protect; paths are absolute paths of the host. */
export interface ProtectedPaths {
  /**
   * Names of entries that cannot be created, changed or removed, in any directory. The same holds for the files that
   * programs rename to such an entry: the temporary files `.NAME.*.tmp` and the locks `NAME.lock` and `NAME.lock.*`.
   */
  readonly names?: readonly string[];
  /** Files that keep their contents under every name, and whose parent directories cannot be moved. */
  readonly files?: readonly string[];
  /** Directories in which, and below which, no entry can be created, changed or removed; they cannot be moved. */
  readonly directories?: readonly string[];
}

/** The maximum number of symbolic links followed from a protected file to its contents. */
const MAX_LINKS = 40;

/** The maximum length of the paths to ancestors, below the 4096 bytes that the kernel accepts. */
const MAX_PATH_BYTES = 4000;

/** The price of a byte of a path to an ancestor, which the kernel follows, as that of so many bytes moved. */
const PARENT_COST = 8;

/** Checks the changes that a guest requests. */
export class PathGuard {
  readonly #system: PathSystem;
  readonly #names: ReadonlySet<string>;
  readonly #shortNames: readonly RegExp[];
  readonly #files: readonly string[];
  readonly #directories: readonly string[];
  /** Whether there is anything to protect. */
  readonly isActive: boolean;

  constructor(system: PathSystem, { names = [], files = [], directories = [] }: ProtectedPaths = {}) {
    this.#system = system;
    this.#names = new Set(names.map(foldName));
    this.#shortNames = [...this.#names].map(shortNamesOf);
    this.#files = files.map(withSlashes);
    this.#directories = directories.map(withSlashes);
    this.isActive = names.length + files.length + directories.length > 0;
  }

  /** Refuses to create, change, replace, link or remove a protected entry. */
  checkEntry(place: Place): void {
    if (!this.isActive) return;
    if (this.#isProtectedName(foldName(place.name))) throw new WasiError(ERRNO.perm);
    if (this.#directories.length > 0 && this.#isWithin(place.parent, this.#identities(this.#directories))) {
      throw new WasiError(ERRNO.perm);
    }
    const status = this.#entryStatus(place);
    if (status !== undefined && this.#identities(this.#files).has(this.#identityOf(status))) {
      throw new WasiError(ERRNO.perm);
    }
  }

  /** Refuses to rename an entry that is protected or that a protected path leads through. */
  checkMove(place: Place): void {
    if (!this.isActive) return;
    this.checkEntry(place);
    const status = this.#entryStatus(place);
    if (status === undefined || filetypeOf(status) === FILETYPE.regular_file) return;
    if (this.#waysToProtected().has(this.#identityOf(status))) throw new WasiError(ERRNO.perm);
  }

  /**
   * Refuses to move or link an entry to a name on the way to a protected path, whether or not the name exists. Making
   * an empty directory there does not change protected content, so mkdir needs only checkEntry.
   */
  checkTarget(place: Place): void {
    if (!this.isActive) return;
    this.checkMove(place);
    if (this.#files.length + this.#directories.length === 0) return;
    const parent = this.#identityOf(readStatus(this.#system, place.parent));
    if (this.#namesToProtected().has(`${parent}/${foldName(place.name)}`)) throw new WasiError(ERRNO.perm);
  }

  /** Refuses to write to an open descriptor of a protected file. */
  checkContents(fd: number): void {
    if (this.#files.length === 0) return;
    const status = readStatus(this.#system, fd);
    if (this.#identities(this.#files).has(this.#identityOf(status))) throw new WasiError(ERRNO.perm);
  }

  #isProtectedName(name: string): boolean {
    if (this.#names.has(name) || this.#shortNames.some((short) => short.test(name))) return true;
    const [, temporary, locked] = /^(?:\.(.+)\.[^.]*\.tmp|(.+)\.lock(?:\.[^.]*)?)$/.exec(name) ?? [];
    return this.#names.has(temporary ?? locked ?? "");
  }

  #entryStatus(place: Place): FileStatus | undefined {
    try {
      return readStatus(this.#system, place.parent, place.name);
    } catch (error) {
      if (error instanceof WasiError) return undefined;
      throw error;
    }
  }

  /** Whether the open directory, or one of its ancestors, is in this set. */
  #isWithin(fd: number, identities: ReadonlySet<string>): boolean {
    const { waits } = this.#system;
    let path = "";
    for (let last = ""; path.length < MAX_PATH_BYTES; path += "../") {
      waits.step();
      waits.charge(path.length * PARENT_COST);
      const identity = this.#identityOf(readStatusAt(this.#system, `${path}.`, true, fd));
      if (identities.has(identity)) return true;
      if (identity === last) return false;
      last = identity;
    }
    return true;
  }

  #identityOf(status: FileStatus | undefined): string {
    return status === undefined ? "" : `${status.device}:${status.inode}`;
  }

  /** Device and inode of paths, through symbolic links and of the links themselves. */
  #identities(paths: readonly string[]): Set<string> {
    const found = new Set<string>();
    for (const path of paths) {
      for (const follow of [true, false]) {
        const status = readStatusAt(this.#system, path, follow);
        if (status !== undefined) found.add(this.#identityOf(status));
      }
    }
    return found;
  }

  /** Every name between the root and a protected path, after the identity of the directory that it is in. */
  #namesToProtected(): Set<string> {
    const names = new Set<string>();
    for (const path of this.#spellings()) {
      for (let end = path.length; end > 0; end = path.lastIndexOf("/", end - 1)) {
        const at = path.lastIndexOf("/", end - 1);
        const parent = readStatusAt(this.#system, path.slice(0, at) || "/", true);
        if (parent !== undefined) names.add(`${this.#identityOf(parent)}/${foldName(path.slice(at + 1, end))}`);
      }
    }
    return names;
  }

  /** The protected paths, and the targets of those that are symbolic links. */
  *#spellings(): Generator<string> {
    for (const start of [...this.#files, ...this.#directories]) {
      let path: string | undefined = start;
      for (let links = 0; path !== undefined && links < MAX_LINKS; links++) {
        yield path;
        path = this.#linkTarget(path);
      }
    }
  }

  /** Every directory and symbolic link between the root and a protected path, by its spelling and as it is on disk. */
  #waysToProtected(): Set<string> {
    const ways = new Set<string>();
    for (const path of this.#spellings()) this.#addParents(path, ways);
    for (const identity of this.#identities(this.#directories)) ways.add(identity);
    return ways;
  }

  #addParents(path: string, ways: Set<string>): void {
    for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) {
      for (const identity of this.#identities([path.slice(0, at)])) ways.add(identity);
    }
    // The kernel's own parent chain, across symbolic links and mounts.
    let up = `${path.slice(0, path.lastIndexOf("/"))}/.`;
    for (let last = ""; up.length < MAX_PATH_BYTES; up += "/..") {
      const identity = this.#identityOf(readStatusAt(this.#system, up, true));
      if (identity === last) return;
      ways.add(identity);
      last = identity;
    }
  }

  #linkTarget(path: string): string | undefined {
    const { sys, scratch } = this.#system;
    const { address, size } = scratch.out;
    const length = sys("readlinkat", -100, scratch.path(path), address, size);
    if (length < 0) return undefined;
    const target = scratch.text(length);
    return target.startsWith("/") ? target : `${path.slice(0, path.lastIndexOf("/"))}/${target}`;
  }
}

/** A path of the host with slashes, which Windows takes as well as its own separators. */
function withSlashes(path: string): string {
  return systemName() === "win32" ? path.replaceAll("\\", "/") : path;
}

/**
 * Matches the 8.3 names that a FAT file system could give to an entry of this folded name, and to the temporary files
 * and locks of it: at most six characters of the name or two and a checksum, a number, three characters of the
 * extension. Linux opens entries of FAT by them.
 */
function shortNamesOf(name: string): RegExp {
  const escaped = (text: string): string => text.replace(/[^a-z0-9]/g, "\\$&");
  const extension = escaped(name.slice(name.lastIndexOf(".") + 1).slice(0, 3));
  return new RegExp(`^${escaped(name.slice(0, 2))}[^~.]{0,4}~[0-9]{1,6}\\.(?:${extension}|tmp|loc)$`);
}

/**
 * Canonicalizes names that a file system may treat as equal: letter case, Unicode composition, zero-width characters,
 * trailing dots and spaces (dropped by FAT), and the stream name after a colon (NTFS).
 */
export function foldName(name: string): string {
  const plain = name.replace(/:.*$/s, "").normalize("NFKC").replace(/\p{Default_Ignorable_Code_Point}/gu, "");
  return plain.toLowerCase().toUpperCase().toLowerCase().replace(/[. ]+$/, "");
}
