/**
 * WASI's functions on paths: their effects, and the paths that they refuse.
 */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, readlinkSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { ERRNO, FILETYPE, OFLAG } from "../../engine/wasi/abi.ts";
import { BUFFER, type RawGuest } from "./raw_guest.ts";
import { ROOT, withSandbox } from "./sandbox.ts";
import { LACKS_LINKS, LACKS_POSIX_FILES } from "../support/posix_files.ts";

const { creat, directory, excl, trunc } = OFLAG;

function rename(guest: RawGuest, from: string, to: string): number {
  return guest.call("path_rename", ROOT, ...guest.string(from), ROOT, ...guest.string(to));
}

function link(guest: RawGuest, from: string, to: string, follow = false): number {
  return guest.call("path_link", ROOT, follow ? 1 : 0, ...guest.string(from), ROOT, ...guest.string(to));
}

function symlink(guest: RawGuest, target: string, path: string): number {
  return guest.call("path_symlink", ...guest.string(target), ROOT, ...guest.string(path));
}

Deno.test("path_open obeys its flags", () => {
  withSandbox(({ guest, root }) => {
    assert.equal(guest.open(ROOT, "none").errno, ERRNO.noent);
    assert.equal(guest.open(ROOT, "").errno, ERRNO.noent);
    assert.equal(guest.open(ROOT, "made", { oflags: creat | excl }).errno, 0);
    assert.equal(guest.open(ROOT, "made", { oflags: creat | excl }).errno, ERRNO.exist);
    assert.equal(guest.open(ROOT, "made", { oflags: creat }).errno, 0);
    assert.equal(guest.open(ROOT, "a.txt", { oflags: trunc }).errno, 0);
    assert.equal(readFileSync(join(root, "a.txt"), "utf8"), "");
    assert.equal(guest.open(ROOT, "a.txt", { oflags: directory }).errno, ERRNO.notdir);
    assert.equal(guest.open(ROOT, "a.txt/").errno, ERRNO.notdir);
    assert.equal(guest.open(ROOT, "a.txt/b").errno, ERRNO.notdir);
    assert.equal(guest.open(ROOT, "new/", { oflags: creat }).errno, ERRNO.isdir);
    assert.equal(existsSync(join(root, "new")), false);
    assert.equal(guest.open(ROOT, "dir", { oflags: creat | directory }).errno, ERRNO.inval);
    assert.equal(guest.open(ROOT, "dir//./b.txt").errno, 0);
    assert.equal(guest.open(ROOT, "dir/../a.txt").errno, 0);
    assert.equal(guest.open(ROOT, "./", { rights: 2n }).errno, 0);
    assert.equal(guest.open(ROOT, "./").errno, ERRNO.isdir); // all rights: writing too
    assert.equal(guest.open(ROOT, "x".repeat(256)).errno, ERRNO.nametoolong);
    assert.equal(guest.open(ROOT, "x/".repeat(3000)).errno, ERRNO.nametoolong);
    const bad = guest.string(Uint8Array.of(0x61, 0xff));
    assert.equal(guest.call("path_unlink_file", ROOT, ...bad), ERRNO.ilseq);
    assert.equal(guest.open(ROOT, "a\0b").errno, ERRNO.ilseq);
    assert.equal(guest.call("path_unlink_file", ROOT, -1, 2), ERRNO.fault);
    const file = guest.open(ROOT, "a.txt").fd;
    assert.equal(guest.open(file, "x").errno, ERRNO.notdir);
  });
});

Deno.test("a pointer out of memory fails before a file is made", () => {
  withSandbox(({ guest, root }) => {
    const path = guest.string("made");
    assert.equal(guest.call("path_open", ROOT, 0, ...path, creat, 64n, 0n, 0, 4 * 65536 - 2), ERRNO.fault);
    assert.equal(existsSync(join(root, "made")), false);
  });
});

Deno.test({ name: "exclusive creation does not look behind a link", ignore: LACKS_LINKS }, () => {
  withSandbox(({ guest, root }) => {
    symlinkSync("target", join(root, "dangling"));
    assert.equal(guest.open(ROOT, "dangling", { oflags: creat | excl }).errno, ERRNO.exist);
    assert.equal(existsSync(join(root, "target")), false);
    assert.equal(guest.open(ROOT, "dangling", { oflags: creat }).errno, 0);
    assert.equal(existsSync(join(root, "target")), true);
    assert.equal(guest.open(ROOT, "dangling", { follow: false }).errno, ERRNO.loop);
  });
});

Deno.test("directories are made and removed", () => {
  withSandbox(({ guest, root }) => {
    assert.equal(guest.onPath("path_create_directory", ROOT, "dir/inner/"), 0);
    assert.equal(guest.onPath("path_create_directory", ROOT, "dir/inner"), ERRNO.exist);
    assert.equal(guest.onPath("path_create_directory", ROOT, "none/inner"), ERRNO.noent);
    assert.equal(guest.stat(ROOT, "dir/inner").type, FILETYPE.directory);
    assert.equal(guest.onPath("path_remove_directory", ROOT, "dir"), ERRNO.notempty);
    assert.equal(guest.onPath("path_remove_directory", ROOT, "a.txt"), ERRNO.notdir);
    assert.equal(guest.onPath("path_unlink_file", ROOT, "dir"), ERRNO.isdir);
    assert.equal(guest.onPath("path_unlink_file", ROOT, "dir/"), ERRNO.isdir);
    assert.equal(guest.onPath("path_unlink_file", ROOT, "a.txt/"), ERRNO.notdir);
    assert.equal(guest.onPath("path_remove_directory", ROOT, "dir/inner"), 0);
    assert.equal(guest.onPath("path_remove_directory", ROOT, "."), ERRNO.inval);
    assert.equal(guest.onPath("path_unlink_file", ROOT, "dir/b.txt"), 0);
    assert.equal(existsSync(join(root, "dir", "b.txt")), false);
    assert.equal(guest.onPath("path_unlink_file", ROOT, "dir/b.txt"), ERRNO.noent);
  });
});

Deno.test("names are moved", () => {
  withSandbox(({ guest, root }) => {
    assert.equal(rename(guest, "a.txt", "dir/moved"), 0);
    assert.equal(readFileSync(join(root, "dir", "moved"), "utf8"), "alpha");
    assert.equal(rename(guest, "dir/moved", "dir/b.txt"), 0);
    assert.equal(readFileSync(join(root, "dir", "b.txt"), "utf8"), "alpha");
    assert.equal(rename(guest, "none", "x"), ERRNO.noent);
    assert.equal(rename(guest, "dir", "dir/inside"), ERRNO.inval);
    assert.equal(rename(guest, "dir", "renamed/"), 0);
    assert.equal(rename(guest, "renamed/b.txt/", "x"), ERRNO.notdir);
    mkdirSync(join(root, "full"));
    mkdirSync(join(root, "full", "x"));
    assert.equal(rename(guest, "renamed", "full"), ERRNO.notempty);
  });
});

Deno.test("hard links share the file", () => {
  withSandbox(({ guest, root }) => {
    assert.equal(link(guest, "a.txt", "dir/again"), 0);
    assert.equal(guest.stat(ROOT, "dir/again").links, 2n);
    assert.equal(guest.write(guest.open(ROOT, "dir/again").fd, "ALPHA"), 0);
    assert.equal(readFileSync(join(root, "a.txt"), "utf8"), "ALPHA");
    assert.equal(link(guest, "a.txt", "dir/again"), ERRNO.exist);
    assert.equal(link(guest, "none", "x"), ERRNO.noent);
    assert.equal(link(guest, "dir", "x"), ERRNO.perm);
    assert.equal(link(guest, "a.txt", "x/"), ERRNO.noent);
  });
});

Deno.test({ name: "hard links to symbolic links, and to their targets", ignore: LACKS_POSIX_FILES }, () => {
  withSandbox(({ guest, root }) => {
    symlinkSync("a.txt", join(root, "soft"));
    assert.equal(link(guest, "soft", "hard to soft"), 0);
    assert.equal(readlinkSync(join(root, "hard to soft")), "a.txt");
    assert.equal(link(guest, "soft", "hard to file", true), 0);
    assert.equal(guest.stat(ROOT, "hard to file", false).type, FILETYPE.regular_file);
  });
});

Deno.test({ name: "symbolic links are made, read and followed", ignore: LACKS_POSIX_FILES }, () => {
  withSandbox(({ guest, root }) => {
    assert.equal(symlink(guest, "dir/b.txt", "link"), 0);
    assert.equal(guest.read(guest.open(ROOT, "link").fd).text, "beta");
    assert.deepEqual([guest.stat(ROOT, "link").size, guest.stat(ROOT, "link", false).type], [
      4n,
      FILETYPE.symbolic_link,
    ]);
    assert.equal(guest.call("path_readlink", ROOT, ...guest.string("link"), BUFFER, 100, 0), 0);
    assert.equal(guest.text(BUFFER, guest.u32(0)), "dir/b.txt");
    assert.equal(guest.call("path_readlink", ROOT, ...guest.string("link"), BUFFER, 4, 0), 0);
    assert.equal(guest.text(BUFFER, guest.u32(0)), "dir/");
    assert.equal(guest.call("path_readlink", ROOT, ...guest.string("a.txt"), BUFFER, 100, 0), ERRNO.inval);
    assert.equal(guest.call("path_readlink", ROOT, ...guest.string("link"), 4 * 65536 - 2, 100, 0), ERRNO.fault);
    assert.equal(symlink(guest, "x", "link"), ERRNO.exist);
    assert.equal(symlink(guest, "", "empty"), ERRNO.noent);
    assert.equal(symlink(guest, "../a.txt", "dir/up"), 0);
    assert.equal(guest.read(guest.open(ROOT, "dir/up").fd).text, "alpha");
    assert.equal(symlink(guest, "dir", "d"), 0);
    assert.equal(guest.read(guest.open(ROOT, "d/../d/b.txt").fd).text, "beta");
    assert.equal(guest.onPath("path_unlink_file", ROOT, "link"), 0);
    assert.equal(readFileSync(join(root, "dir", "b.txt"), "utf8"), "beta");
    for (const [from, to] of [["one", "two"], ["two", "one"]] as const) symlinkSync(to, join(root, from));
    assert.equal(guest.open(ROOT, "one").errno, ERRNO.loop);
    assert.equal(guest.open(ROOT, "one/x").errno, ERRNO.loop);
  });
});

Deno.test("descriptors are limited and a long walk keeps none open", () => {
  withSandbox(({ guest }) => {
    for (let i = 0; i < 20; i++) assert.equal(guest.open(ROOT, "dir/../".repeat(500) + "a.txt").errno, 0);
    let errno = 0;
    for (let i = 0; i < 5000 && errno === 0; i++) errno = guest.open(ROOT, "a.txt").errno;
    assert.equal(errno, ERRNO.mfile);
  });
});
