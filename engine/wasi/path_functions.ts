/**
 * Functions on paths beneath open directories: path_*. Every path goes through the resolver; the last step uses NOFOLLOW.
 */
import { DIRECTORY_RIGHTS, ERRNO, FILE_RIGHTS, FILETYPE, OFLAG, RIGHT, STREAM_RIGHTS } from "./abi.ts";
import { clipRights, linuxFdFlags, writeTimes } from "./files.ts";
import type { WasiFunction, WasiState } from "./mod.ts";
import { checked, type Place, WasiError } from "./paths.ts";
import { filetypeOf, readStatus, writeStatus } from "./status.ts";

const SYMLINK_FOLLOW = 1;
const AT_REMOVEDIR = 0x200;
const AT_SYMLINK_NOFOLLOW = 0x100;

export function pathFunctions(state: WasiState): Record<string, WasiFunction> {
  const { sys, scratch, memory, descriptors, resolver, guard, open } = state;

  /** Resolves a path of the guest and runs `action` on the place. */
  function at<T>(
    dir: number,
    right: number,
    pointer: number,
    length: number,
    follow: boolean,
    action: (place: Place) => T,
  ): T {
    const { fd, filetype } = descriptors.get(dir, right);
    if (filetype !== FILETYPE.directory) throw new WasiError(ERRNO.notdir);
    const place = resolver.resolve(fd, memory.text(pointer >>> 0, length >>> 0), follow);
    try {
      return action(place);
    } finally {
      place.close();
    }
  }

  function openPlace(place: Place, flags: number): number {
    const directory = place.mustBeDirectory ? open.DIRECTORY : 0;
    return checked(
      sys("openat", place.parent, scratch.path(place.name), flags | directory | open.NOFOLLOW | open.CLOEXEC, 0o666),
    );
  }

  return {
    path_create_directory: (dir: number, path: number, length: number) =>
      at(dir, RIGHT.path_create_directory, path, length, false, (place) => {
        // A trailing slash is fine here: the directory need not exist yet.
        guard.checkEntry(place);
        checked(sys("mkdirat", place.parent, scratch.path(place.name), 0o777));
        return 0;
      }),
    path_filestat_get: (dir: number, flags: number, path: number, length: number, out: number) =>
      at(dir, RIGHT.path_filestat_get, path, length, (flags & SYMLINK_FOLLOW) !== 0, (place) => {
        const status = readStatus(state, place.parent, place.name)!;
        if (place.mustBeDirectory && filetypeOf(status) !== FILETYPE.directory) throw new WasiError(ERRNO.notdir);
        writeStatus(memory, out >>> 0, status);
        return 0;
      }),
    path_filestat_set_times: (
      dir: number,
      flags: number,
      path: number,
      length: number,
      accessed: bigint,
      modified: bigint,
      fstflags: number,
    ) =>
      at(dir, RIGHT.path_filestat_set_times, path, length, (flags & SYMLINK_FOLLOW) !== 0, (place) => {
        guard.checkEntry(place);
        const times = writeTimes(state, accessed, modified, fstflags);
        checked(sys("utimensat", place.parent, scratch.path(place.name), times, AT_SYMLINK_NOFOLLOW));
        return 0;
      }),
    path_link: (
      oldDir: number,
      flags: number,
      oldPath: number,
      oldLength: number,
      newDir: number,
      newPath: number,
      newLength: number,
    ) =>
      at(
        oldDir,
        RIGHT.path_link_source,
        oldPath,
        oldLength,
        (flags & SYMLINK_FOLLOW) !== 0,
        (from) =>
          at(newDir, RIGHT.path_link_target, newPath, newLength, false, (to) => {
            if (from.mustBeDirectory || to.mustBeDirectory) throw new WasiError(ERRNO.noent);
            guard.checkEntry(from);
            guard.checkEntry(to);
            const [a, b] = [scratch.path(from.name), scratch.path(to.name, true)];
            checked(sys("linkat", from.parent, a, to.parent, b, 0));
            return 0;
          }),
      ),
    path_open: (
      dir: number,
      dirflags: number,
      path: number,
      length: number,
      oflags: number,
      rights: bigint,
      inheriting: bigint,
      fdflags: number,
      out: number,
    ) => {
      const needs = RIGHT.path_open | ((oflags & OFLAG.creat) !== 0 ? RIGHT.path_create_file : 0) |
        ((oflags & OFLAG.trunc) !== 0 ? RIGHT.path_filestat_set_size : 0);
      const parent = descriptors.get(dir, needs);
      memory.setU32(out >>> 0, 0); // a bad pointer must fail before anything is opened
      const wanted = BigInt.asUintN(64, rights);
      const reads = (wanted & BigInt(RIGHT.fd_read | RIGHT.fd_readdir)) !== 0n;
      const writes = (wanted & BigInt(RIGHT.fd_write | RIGHT.fd_allocate | RIGHT.fd_filestat_set_size)) !== 0n;
      const isDirectory = (oflags & OFLAG.directory) !== 0;
      if (isDirectory && (oflags & OFLAG.creat) !== 0) throw new WasiError(ERRNO.inval);
      // Creating something that must not exist does not look behind a link (POSIX, open).
      const isNew = (oflags & OFLAG.creat) !== 0 && (oflags & OFLAG.excl) !== 0;
      return at(dir, needs, path, length, (dirflags & SYMLINK_FOLLOW) !== 0 && !isNew, (place) => {
        if (place.mustBeDirectory && (oflags & OFLAG.creat) !== 0) throw new WasiError(ERRNO.isdir);
        let flags = isDirectory || !writes ? open.RDONLY : reads ? open.RDWR : open.WRONLY;
        if ((oflags & OFLAG.creat) !== 0) flags |= open.CREAT;
        if ((oflags & OFLAG.excl) !== 0) flags |= open.EXCL;
        const changes = writes || (oflags & (OFLAG.creat | OFLAG.trunc)) !== 0;
        if (changes) guard.checkEntry(place);
        // The name may get another file between check and opening, so a guarded file is truncated when it is known.
        const truncatesLate = (oflags & OFLAG.trunc) !== 0 && writes && guard.isActive;
        if ((oflags & OFLAG.trunc) !== 0 && !truncatesLate) flags |= open.TRUNC;
        if (isDirectory) flags |= open.DIRECTORY;
        // Never block on opening a FIFO: nonblocking first, then as asked.
        const fd = openPlace(place, flags | linuxFdFlags(state, fdflags) | open.NONBLOCK);
        try {
          if (changes) guard.checkContents(fd);
          if (truncatesLate) checked(sys("ftruncate", fd, 0));
          const status = readStatus(state, fd);
          const filetype = status === undefined ? FILETYPE.unknown : filetypeOf(status);
          checked(sys("fcntl", fd, 4, linuxFdFlags(state, fdflags)));
          const possible = filetype === FILETYPE.directory
            ? DIRECTORY_RIGHTS
            : filetype === FILETYPE.regular_file
            ? FILE_RIGHTS
            : STREAM_RIGHTS;
          const number = descriptors.add({
            fd,
            filetype,
            flags: fdflags,
            rights: clipRights(wanted, possible & parent.inheriting),
            inheriting: clipRights(BigInt.asUintN(64, inheriting), parent.inheriting),
            borrowed: false,
          });
          memory.setU32(out >>> 0, number);
          return 0;
        } catch (error) {
          sys("close", fd);
          throw error;
        }
      });
    },
    path_readlink: (dir: number, path: number, length: number, buffer: number, size: number, usedAt: number) =>
      at(dir, RIGHT.path_readlink, path, length, false, (place) => {
        const { address, size: most, u8 } = scratch.out;
        const got = checked(sys("readlinkat", place.parent, scratch.path(place.name), address, most));
        const used = Math.min(got, size >>> 0);
        memory.bytes(buffer >>> 0, used).set(u8.subarray(0, used));
        memory.setU32(usedAt >>> 0, used);
        return 0;
      }),
    path_remove_directory: (dir: number, path: number, length: number) =>
      at(dir, RIGHT.path_remove_directory, path, length, false, (place) => {
        guard.checkMove(place);
        checked(sys("unlinkat", place.parent, scratch.path(place.name), AT_REMOVEDIR));
        return 0;
      }),
    path_rename: (
      oldDir: number,
      oldPath: number,
      oldLength: number,
      newDir: number,
      newPath: number,
      newLength: number,
    ) =>
      at(
        oldDir,
        RIGHT.path_rename_source,
        oldPath,
        oldLength,
        false,
        (from) =>
          at(newDir, RIGHT.path_rename_target, newPath, newLength, false, (to) => {
            guard.checkMove(from);
            guard.checkMove(to);
            const slashA = from.mustBeDirectory && from.name !== "." ? "/" : "";
            const slashB = to.mustBeDirectory && to.name !== "." ? "/" : "";
            const [a, b] = [scratch.path(from.name + slashA), scratch.path(to.name + slashB, true)];
            checked(sys("renameat2", from.parent, a, to.parent, b, 0));
            return 0;
          }),
      ),
    path_symlink: (target: number, targetLength: number, dir: number, path: number, length: number) => {
      const text = memory.text(target >>> 0, targetLength >>> 0);
      if (text.startsWith("/")) throw new WasiError(ERRNO.notcapable);
      if (text === "" || text.includes("\0")) throw new WasiError(ERRNO.inval);
      return at(dir, RIGHT.path_symlink, path, length, false, (place) => {
        if (place.mustBeDirectory) throw new WasiError(ERRNO.noent);
        guard.checkEntry(place);
        const to = scratch.path(place.name, true);
        checked(sys("symlinkat", scratch.path(text), place.parent, to));
        return 0;
      });
    },
    path_unlink_file: (dir: number, path: number, length: number) =>
      at(dir, RIGHT.path_unlink_file, path, length, false, (place) => {
        if (place.mustBeDirectory) throw new WasiError(ERRNO.isdir);
        guard.checkMove(place);
        checked(sys("unlinkat", place.parent, scratch.path(place.name), 0));
        return 0;
      }),
  };
}
