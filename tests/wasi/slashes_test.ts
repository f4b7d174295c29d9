/**
 * Paths that end in a slash or a dot, and links as last components: the errors match Linux and Wasmtime 50 (and
 * node:wasi, except where it drops the slash). One row each: the operation, its path, the error.
 */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { ERRNO, type ErrnoName, OFLAG, RIGHT } from "../../engine/wasi/abi.ts";
import { BUFFER, type RawGuest } from "./raw_guest.ts";
import { ROOT, withSandbox } from "./sandbox.ts";
import { LACKS_LINKS, LACKS_POSIX_FILES } from "../support/posix_files.ts";

const READ_WRITE = BigInt(RIGHT.fd_read | RIGHT.fd_write);

const OPERATIONS = {
  unlink: (guest, path) => guest.onPath("path_unlink_file", ROOT, path),
  mkdir: (guest, path) => guest.onPath("path_create_directory", ROOT, path),
  symlink: (guest, path) => guest.call("path_symlink", ...guest.string("x"), ROOT, ...guest.string(path)),
  "link to": (guest, path) => guest.call("path_link", ROOT, 0, ...guest.string("a.txt"), ROOT, ...guest.string(path)),
  "link from": (guest, path) => guest.call("path_link", ROOT, 0, ...guest.string(path), ROOT, ...guest.string("new")),
  "move a directory to": (guest, path) =>
    guest.call("path_rename", ROOT, ...guest.string("empty"), ROOT, ...guest.string(path)),
  readlink: (guest, path) => guest.call("path_readlink", ROOT, ...guest.string(path), BUFFER, 100, 0),
  "open a directory to write": (guest, path) =>
    guest.open(ROOT, path, { oflags: OFLAG.directory, rights: READ_WRITE }).errno,
  "open a directory to read": (guest, path) =>
    guest.open(ROOT, path, { oflags: OFLAG.directory, rights: BigInt(RIGHT.fd_read | RIGHT.fd_readdir) }).errno,
  "make a new file": (guest, path) => guest.open(ROOT, path, { oflags: OFLAG.creat | OFLAG.excl }).errno,
} satisfies Record<string, (guest: RawGuest, path: string) => number>;

const ROWS: readonly (readonly [operation: keyof typeof OPERATIONS, path: string, error: ErrnoName])[] = [
  ["unlink", "a.txt/", "notdir"],
  ["unlink", "a.txt/.", "notdir"],
  ["unlink", "file_link/", "notdir"],
  ["unlink", "dir/", "isdir"],
  ["unlink", ".", "isdir"],
  ["unlink", "none/", "noent"],
  ["mkdir", "dead_link/", "exist"],
  ["mkdir", "dir_link/", "exist"],
  ["mkdir", "new/", "success"],
  ["symlink", "dir/", "exist"],
  ["symlink", ".", "exist"],
  ["symlink", "none/", "noent"],
  ["link to", "dir/", "exist"],
  ["link to", "none/", "noent"],
  ["link from", "dir", "perm"],
  ["link from", "dir/", "perm"],
  ["link from", "a.txt/", "notdir"],
  ["move a directory to", "dead_link/", "notdir"],
  ["move a directory to", "none/", "success"],
  ["readlink", "file_link/", "notdir"],
  ["readlink", "dir_link/", "inval"],
  ["open a directory to write", ".", "isdir"],
  ["open a directory to write", "dir", "isdir"],
  ["open a directory to write", "a.txt", "notdir"],
  ["open a directory to read", ".", "success"],
  ["make a new file", ".", "exist"],
  ["make a new file", "dir/", "isdir"],
];

/** Whether this system supports the row: a guest makes no links on Windows. */
function isPossible([operation, path]: (typeof ROWS)[number]): boolean {
  return !(LACKS_LINKS && path.includes("_link")) && !(LACKS_POSIX_FILES && operation === "symlink");
}

Deno.test("trailing slashes and links have the errors of Linux", () => {
  for (const [operation, path, error] of ROWS.filter(isPossible)) {
    withSandbox(({ guest, root }) => {
      mkdirSync(join(root, "empty"));
      for (const [target, name] of [["dir", "dir_link"], ["a.txt", "file_link"], ["nothing", "dead_link"]]) {
        if (!LACKS_LINKS) symlinkSync(target, join(root, name));
      }
      assert.equal(OPERATIONS[operation](guest, path), ERRNO[error], `${operation} ${path}`);
      assert.equal(existsSync(join(root, "nothing")), false, `${operation} ${path} goes through no link`);
    });
  }
});

Deno.test("a path beneath a file is not a directory's", () => {
  withSandbox(({ guest }) => {
    const { fd } = guest.open(ROOT, "a.txt");
    assert.equal(guest.open(fd, "b").errno, ERRNO.notdir);
    assert.equal(guest.stat(fd, "b").errno, ERRNO.notdir);
  });
});
