/**
 * WASI functions on paths beneath open directories: path_*. In: a directory of the guest and a path in its memory. Out:
 * the effect of an *at system call on the last component of the path. Invariant: every path goes through the resolver
 * (paths.ts), and no system call here follows a link.
 */
import { DIRECTORY_RIGHTS, ERRNO, FILE_RIGHTS, FILETYPE, OFLAG, RIGHT, rightsFor, STREAM_RIGHTS } from "./abi.ts";
import { F_SETFL, linuxFdFlags, writeTimes } from "./descriptor_functions.ts";
import type { Descriptor } from "./descriptors.ts";
import type { WasiState } from "./functions.ts";
import type { Place } from "./paths.ts";
import { filetypeOf, readStatus, writeStatus } from "./status.ts";
import { checked, WasiError } from "./wasi_error.ts";

const SYMLINK_FOLLOW = 1;
const AT_REMOVEDIR = 0x200;
const AT_SYMLINK_NOFOLLOW = 0x100;
const FILE_MODE = 0o666;
const DIRECTORY_MODE = 0o777;

/** Rights that need a descriptor open for reading, or for writing. */
const READING_RIGHTS = BigInt(RIGHT.fd_read | RIGHT.fd_readdir);
const WRITING_RIGHTS = BigInt(RIGHT.fd_write | RIGHT.fd_allocate | RIGHT.fd_filestat_set_size);

/**
 * A path of the guest: the location of its text in guest memory, and whether to follow a link in the last component.
 */
interface GuestPath {
  readonly dir: number;
  readonly pointer: number;
  readonly length: number;
  readonly follow?: boolean;
  /** The name is about to be made: not even a slash after it follows a link. */
  readonly isNew?: boolean;
}

/** The parameters of path_open. */
interface OpenRequest {
  readonly oflags: number;
  readonly fdflags: number;
  /** Rights for the new descriptor, as unsigned bits. */
  readonly rights: bigint;
  readonly inheriting: bigint;
}

/** The rights that a descriptor of `filetype` can have. */
function possibleRights(filetype: number): number {
  if (filetype === FILETYPE.directory) return DIRECTORY_RIGHTS;
  return filetype === FILETYPE.regular_file ? FILE_RIGHTS : STREAM_RIGHTS;
}

/** The rights of `requested` that are `allowed`. */
function clipRights(requested: bigint, allowed: number): number {
  return Number(requested & BigInt(allowed));
}

/** Whether opening the file, or using the new descriptor, may change it. */
function mayChange({ oflags, rights }: OpenRequest): boolean {
  return (rights & WRITING_RIGHTS) !== 0n || (oflags & (OFLAG.creat | OFLAG.trunc)) !== 0;
}

/** A name for calls that take a directory or a file: with the slash that its path ended in. */
function nameWithSlash({ name, mustBeDirectory }: Place): string {
  return mustBeDirectory && name !== "." ? `${name}/` : name;
}

/** The functions path_*. */
export class PathFunctions {
  readonly #state: WasiState;

  constructor(state: WasiState) {
    this.#state = state;
  }

  path_create_directory(dir: number, pointer: number, length: number): number {
    const { sys, scratch, guard } = this.#state;
    return this.#at({ dir, pointer, length, isNew: true }, rightsFor("path_create_directory"), (place) => {
      guard.checkEntry(place);
      return sys("mkdirat", place.parent, scratch.path(nameWithSlash(place)), DIRECTORY_MODE);
    });
  }

  path_filestat_get(dir: number, flags: number, pointer: number, length: number, out: number): number {
    const follow = (flags & SYMLINK_FOLLOW) !== 0;
    return this.#at({ dir, pointer, length, follow }, rightsFor("path_filestat_get"), (place) => {
      const status = readStatus(this.#state, place.parent, place.name)!;
      if (place.mustBeDirectory && filetypeOf(status) !== FILETYPE.directory) throw new WasiError(ERRNO.notdir);
      writeStatus(this.#state.memory, out >>> 0, status);
      return 0;
    });
  }

  path_filestat_set_times(
    dir: number,
    flags: number,
    pointer: number,
    length: number,
    accessed: bigint,
    modified: bigint,
    fstflags: number,
  ): number {
    const { sys, scratch, guard } = this.#state;
    const follow = (flags & SYMLINK_FOLLOW) !== 0;
    return this.#at({ dir, pointer, length, follow }, rightsFor("path_filestat_set_times"), (place) => {
      guard.checkEntry(place);
      const times = writeTimes(this.#state, accessed, modified, fstflags);
      return sys("utimensat", place.parent, scratch.path(nameWithSlash(place)), times, AT_SYMLINK_NOFOLLOW);
    });
  }

  path_link(
    oldDir: number,
    flags: number,
    oldPointer: number,
    oldLength: number,
    newDir: number,
    newPointer: number,
    newLength: number,
  ): number {
    const { sys, scratch, guard } = this.#state;
    const source = { dir: oldDir, pointer: oldPointer, length: oldLength, follow: (flags & SYMLINK_FOLLOW) !== 0 };
    const target = { dir: newDir, pointer: newPointer, length: newLength, isNew: true };
    return this.#at(source, rightsFor("path_link"), (from) =>
      this.#at(target, rightsFor("path_link", 1), (to) => {
        guard.checkEntry(from);
        guard.checkTarget(to);
        const [a, b] = [scratch.path(nameWithSlash(from)), scratch.path(nameWithSlash(to), true)];
        return sys("linkat", from.parent, a, to.parent, b, 0);
      }));
  }

  path_open(
    dir: number,
    dirflags: number,
    pointer: number,
    length: number,
    oflags: number,
    rights: bigint,
    inheriting: bigint,
    fdflags: number,
    out: number,
  ): number {
    const creates = (oflags & OFLAG.creat) !== 0;
    if ((oflags & OFLAG.directory) !== 0 && creates) throw new WasiError(ERRNO.inval);
    const needs = rightsFor("path_open") | (creates ? RIGHT.path_create_file : 0) |
      ((oflags & OFLAG.trunc) !== 0 ? RIGHT.path_filestat_set_size : 0);
    const parent = this.#directory(dir, needs);
    this.#state.memory.setU32(out >>> 0, 0); // a bad pointer must fail before anything is opened
    this.#state.descriptors.requireRoom();
    const request: OpenRequest = {
      oflags,
      fdflags,
      rights: BigInt.asUintN(64, rights),
      inheriting: BigInt.asUintN(64, inheriting),
    };
    // Creating something that must not exist does not look behind a link (POSIX, open).
    const isNew = creates && (oflags & OFLAG.excl) !== 0;
    const follow = (dirflags & SYMLINK_FOLLOW) !== 0 && !isNew;
    return this.#at({ dir, pointer, length, follow }, needs, (place) => {
      if (place.mustBeDirectory && creates) {
        throw new WasiError(isNew && place.name === "." ? ERRNO.exist : ERRNO.isdir);
      }
      const fd = this.#open(place, request);
      try {
        this.#state.memory.setU32(out >>> 0, this.#addOpened(fd, request, parent.inheriting));
        return 0;
      } catch (error) {
        this.#state.sys("close", fd);
        throw error;
      }
    });
  }

  /** Opens a place; a descriptor of the process. Never blocks on a FIFO: nonblocking first, then as asked. */
  #open(place: Place, request: OpenRequest): number {
    const { sys, scratch, open, guard } = this.#state;
    const changes = mayChange(request);
    if (changes) guard.checkEntry(place);
    // The name may get another file between check and opening, so a guarded file is truncated when it is known.
    const truncatesLate = guard.isActive && (request.oflags & OFLAG.trunc) !== 0 &&
      (request.rights & WRITING_RIGHTS) !== 0n;
    const flags = this.#openFlags(request, place.mustBeDirectory) | open.NONBLOCK | open.NOFOLLOW | open.CLOEXEC;
    const now = truncatesLate ? flags & ~open.TRUNC : flags;
    const fd = checked(sys("openat", place.parent, scratch.path(place.name), now, FILE_MODE));
    try {
      if (changes) guard.checkContents(fd);
      if (truncatesLate) checked(sys("ftruncate", fd, 0));
      return fd;
    } catch (error) {
      sys("close", fd);
      throw error;
    }
  }

  #openFlags({ oflags, fdflags, rights }: OpenRequest, mustBeDirectory: boolean): number {
    const { open } = this.#state;
    const isDirectory = (oflags & OFLAG.directory) !== 0;
    // A directory opened with O_DIRECTORY may be requested with every right but writing.
    const writes = (rights & (isDirectory ? BigInt(RIGHT.fd_write) : WRITING_RIGHTS)) !== 0n;
    return (!writes ? open.RDONLY : (rights & READING_RIGHTS) !== 0n ? open.RDWR : open.WRONLY) |
      ((oflags & OFLAG.creat) !== 0 ? open.CREAT : 0) |
      ((oflags & OFLAG.excl) !== 0 ? open.EXCL : 0) |
      ((oflags & OFLAG.trunc) !== 0 ? open.TRUNC : 0) |
      (isDirectory || mustBeDirectory ? open.DIRECTORY : 0) |
      linuxFdFlags(this.#state, fdflags);
  }

  /** Adds a newly opened descriptor to the guest's table. */
  #addOpened(fd: number, { fdflags, rights, inheriting }: OpenRequest, allowed: number): number {
    const { sys, descriptors } = this.#state;
    const status = readStatus(this.#state, fd);
    const filetype = status === undefined ? FILETYPE.unknown : filetypeOf(status);
    checked(sys("fcntl", fd, F_SETFL, linuxFdFlags(this.#state, fdflags)));
    return descriptors.add({
      fd,
      filetype,
      flags: fdflags,
      rights: clipRights(rights, possibleRights(filetype) & allowed),
      inheriting: clipRights(inheriting, allowed),
      borrowed: false,
    });
  }

  path_readlink(dir: number, pointer: number, length: number, buffer: number, size: number, usedAt: number): number {
    const { sys, scratch, memory } = this.#state;
    return this.#at({ dir, pointer, length }, rightsFor("path_readlink"), (place) => {
      const { address, size: most, u8 } = scratch.out;
      const got = checked(sys("readlinkat", place.parent, scratch.path(nameWithSlash(place)), address, most));
      const used = Math.min(got, size >>> 0);
      memory.bytes(buffer >>> 0, used).set(u8.subarray(0, used));
      memory.setU32(usedAt >>> 0, used);
      return 0;
    });
  }

  path_remove_directory(dir: number, pointer: number, length: number): number {
    const { sys, scratch, guard } = this.#state;
    return this.#at({ dir, pointer, length }, rightsFor("path_remove_directory"), (place) => {
      guard.checkMove(place);
      return sys("unlinkat", place.parent, scratch.path(place.name), AT_REMOVEDIR);
    });
  }

  path_rename(
    oldDir: number,
    oldPointer: number,
    oldLength: number,
    newDir: number,
    newPointer: number,
    newLength: number,
  ): number {
    const { sys, scratch, guard } = this.#state;
    const source = { dir: oldDir, pointer: oldPointer, length: oldLength };
    const target = { dir: newDir, pointer: newPointer, length: newLength, isNew: true };
    return this.#at(source, rightsFor("path_rename"), (from) =>
      this.#at(target, rightsFor("path_rename", 1), (to) => {
        guard.checkMove(from);
        guard.checkTarget(to);
        const [a, b] = [scratch.path(nameWithSlash(from)), scratch.path(nameWithSlash(to), true)];
        return sys("renameat2", from.parent, a, to.parent, b, 0);
      }));
  }

  path_symlink(target: number, targetLength: number, dir: number, pointer: number, length: number): number {
    const { sys, scratch, memory, guard } = this.#state;
    const text = memory.text(target >>> 0, targetLength >>> 0);
    if (text.startsWith("/")) throw new WasiError(ERRNO.perm);
    if (text === "") throw new WasiError(ERRNO.noent);
    if (text.includes("\0")) throw new WasiError(ERRNO.inval);
    return this.#at({ dir, pointer, length, isNew: true }, rightsFor("path_symlink"), (place) => {
      guard.checkTarget(place);
      const link = scratch.path(nameWithSlash(place), true);
      return sys("symlinkat", scratch.path(text), place.parent, link);
    });
  }

  path_unlink_file(dir: number, pointer: number, length: number): number {
    const { sys, scratch, guard } = this.#state;
    return this.#at({ dir, pointer, length }, rightsFor("path_unlink_file"), (place) => {
      guard.checkMove(place);
      return sys("unlinkat", place.parent, scratch.path(nameWithSlash(place)), 0);
    });
  }

  /** The open directory `index`, which must have the right. */
  #directory(index: number, right: number): Descriptor {
    const { descriptors } = this.#state;
    if (descriptors.get(index).filetype !== FILETYPE.directory) throw new WasiError(ERRNO.notdir);
    return descriptors.get(index, right);
  }

  /** Resolves a path of the guest and runs `action`, which returns the result of a system call. */
  #at(path: GuestPath, right: number, action: (place: Place) => number): number {
    const { resolver, memory } = this.#state;
    const { dir, pointer, length, follow = false, isNew = false } = path;
    const { fd } = this.#directory(dir, right);
    const place = resolver.resolve(fd, memory.text(pointer >>> 0, length >>> 0), follow, !isNew);
    try {
      checked(action(place));
      return 0;
    } finally {
      place.close();
    }
  }
}
