/**
 * WASI's functions on descriptors: reading, writing, positions, status, directories, rights.
 */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ERRNO, FDFLAG, FILETYPE, FSTFLAG, OFLAG, RIGHT, type RightName } from "../../engine/wasi/abi.ts";
import { ALL, BUFFER, type RawGuest, type WasiName } from "./raw_guest.ts";
import { ROOT, withSandbox } from "./sandbox.ts";
import { closeDescriptor, makePipe, readText, writeText } from "./system_call.ts";
import { LACKS_LINKS, LACKS_POSIX_FILES } from "../support/posix_files.ts";
import { HANG_MS } from "../support/hang.ts";

const right = (...names: RightName[]) => BigInt(names.reduce((bits, name) => bits | RIGHT[name], 0));

/** Calls with a descriptor that does not exist; the other arguments are harmless. */
const ON_DESCRIPTOR: [WasiName, ...(number | bigint)[]][] = [
  ["fd_advise", 0n, 0n, 0],
  ["fd_allocate", 0n, 1n],
  ["fd_close"],
  ["fd_datasync"],
  ["fd_fdstat_get", 0],
  ["fd_fdstat_set_flags", 0],
  ["fd_fdstat_set_rights", 0n, 0n],
  ["fd_filestat_get", 0],
  ["fd_filestat_set_size", 0n],
  ["fd_filestat_set_times", 0n, 0n, 0],
  ["fd_pread", 256, 0, 0n, 0],
  ["fd_prestat_get", 0],
  ["fd_prestat_dir_name", 0, 0],
  ["fd_pwrite", 256, 0, 0n, 0],
  ["fd_read", 256, 0, 0],
  ["fd_readdir", BUFFER, 100, 0n, 0],
  ["fd_renumber", 0],
  ["fd_seek", 0n, 0, 0],
  ["fd_sync"],
  ["fd_tell", 0],
  ["fd_write", 256, 0, 0],
  ["path_create_directory", 1024, 1],
  ["path_filestat_get", 0, 1024, 1, 0],
  ["path_filestat_set_times", 0, 1024, 1, 0n, 0n, 0],
  ["path_link", 0, 1024, 1, ROOT, 1024, 1],
  ["path_open", 0, 1024, 1, 0, ALL, ALL, 0, 0],
  ["path_readlink", 1024, 1, BUFFER, 10, 0],
  ["path_remove_directory", 1024, 1],
  ["path_rename", 1024, 1, ROOT, 1024, 1],
  ["path_unlink_file", 1024, 1],
  ["sock_accept", 0, 0],
  ["sock_recv", 256, 1, 0, 0, 4],
  ["sock_send", 256, 1, 0, 0],
  ["sock_shutdown", 1],
];

Deno.test("a descriptor that is not open is EBADF for every function", () => {
  withSandbox(({ guest }) => {
    guest.bytes(1024, 1)[0] = 0x78;
    for (const [name, ...rest] of ON_DESCRIPTOR) {
      for (const fd of [77, -1, 0x7fffffff]) assert.equal(guest.call(name, fd, ...rest), ERRNO.badf, `${name}(${fd})`);
    }
    assert.equal(guest.call("path_symlink", 1024, 1, 77, 1024, 1), ERRNO.badf);
    assert.equal(guest.call("path_link", ROOT, 0, 1024, 1, 77, 1024, 1), ERRNO.badf);
    assert.equal(guest.call("fd_renumber", ROOT, 77), ERRNO.badf);
  });
});

Deno.test("preopened directories have the names of the command line", () => {
  withSandbox(({ guest }) => {
    assert.equal(guest.call("fd_prestat_get", ROOT, 0), 0);
    assert.deepEqual([guest.u32(0), guest.u32(4)], [0, 8]);
    assert.equal(guest.call("fd_prestat_dir_name", ROOT, BUFFER, 8), 0);
    assert.equal(guest.text(BUFFER, 8), "/sandbox");
    assert.equal(guest.call("fd_prestat_dir_name", ROOT, BUFFER, 7), ERRNO.nametoolong);
    for (const fd of [0, ROOT + 1]) assert.equal(guest.call("fd_prestat_get", fd, 0), ERRNO.badf);
    const { fd } = guest.open(ROOT, "dir", { oflags: OFLAG.directory });
    assert.equal(guest.call("fd_prestat_get", fd, 0), ERRNO.badf);
  });
});

Deno.test("a preopen that is not a directory is refused with its path", () => {
  withSandbox(({ root }) => {
    assert.throws(
      () => withSandbox(() => {}, { preopens: [{ host: join(root, "nothing"), guest: "/" }] }),
      /nothing" does not exist/,
    );
    assert.throws(
      () => withSandbox(() => {}, { preopens: [{ host: join(root, "a.txt"), guest: "/" }] }),
      /a\.txt" is not a directory/,
    );
  });
});

Deno.test("files are read, written, sought, cut and extended", () => {
  withSandbox(({ guest, root }) => {
    const { errno, fd } = guest.open(ROOT, "new.txt", { oflags: OFLAG.creat });
    assert.equal(errno, 0);
    assert.equal(guest.write(fd, "hello, world"), 0);
    assert.equal(guest.u32(0), 12);
    assert.equal(guest.call("fd_tell", fd, 0), 0);
    assert.equal(guest.u64(0), 12n);
    assert.equal(guest.call("fd_seek", fd, -5n, 2, 0), 0);
    assert.equal(guest.u64(0), 7n);
    assert.deepEqual(guest.read(fd), { errno: 0, text: "world" });
    assert.deepEqual(guest.read(fd), { errno: 0, text: "" });
    assert.equal(guest.call("fd_seek", fd, -1n, 0, 0), ERRNO.inval);
    assert.equal(guest.call("fd_seek", fd, 0n, 3, 0), ERRNO.inval);
    assert.equal(guest.call("fd_pread", fd, guest.vector(BUFFER, 4), 1, 3n, 0), 0);
    assert.equal(guest.text(BUFFER, guest.u32(0)), "lo, ");
    guest.bytes(BUFFER, 2).fill(0x58);
    assert.equal(guest.call("fd_pwrite", fd, guest.vector(BUFFER, 2), 1, 0n, 0), 0);
    assert.equal(guest.call("fd_pwrite", fd, guest.vector(BUFFER, 2), 1, -1n, 0), ERRNO.inval);
    assert.equal(guest.call("fd_filestat_set_size", fd, 6n), 0);
    assert.equal(readFileSync(join(root, "new.txt"), "utf8"), "XXllo,");
    assert.equal(guest.call("fd_filestat_set_size", fd, -1n), ERRNO.inval);
    assert.equal(guest.call("fd_allocate", fd, 0n, 100n), 0);
    assert.equal(guest.call("fd_filestat_get", fd, 0), 0);
    assert.deepEqual([guest.bytes(16, 1)[0], guest.u64(24), guest.u64(32)], [FILETYPE.regular_file, 1n, 100n]);
    assert.equal(guest.u64(8), BigInt(statSync(join(root, "new.txt"), { bigint: true }).ino));
    for (const name of ["fd_sync", "fd_datasync"] as const) assert.equal(guest.call(name, fd), 0);
    for (const advice of [0, 1, 2, 3, 4, 5]) assert.equal(guest.call("fd_advise", fd, 0n, 0n, advice), 0);
    assert.equal(guest.call("fd_advise", fd, 0n, 0n, 6), ERRNO.inval);
    assert.equal(guest.call("fd_close", fd), 0);
    assert.equal(guest.call("fd_close", fd), ERRNO.badf);
  });
});

Deno.test("several vectors are read and written in order; bad ones are EFAULT and nothing happens", () => {
  withSandbox(({ guest, root }) => {
    const { fd } = guest.open(ROOT, "a.txt");
    const vectors = (...list: [number, number][]) =>
      list.forEach(([pointer, length], i) => {
        guest.view.setUint32(256 + i * 8, pointer, true);
        guest.view.setUint32(260 + i * 8, length, true);
      });
    vectors([BUFFER, 2], [BUFFER + 100, 0], [BUFFER + 200, 10]);
    assert.equal(guest.call("fd_read", fd, 256, 3, 0), 0);
    assert.equal(guest.text(BUFFER, 2) + guest.text(BUFFER + 200, 3), "alpha");
    vectors([BUFFER, 2], [4 * 65536 - 1, 2]);
    assert.equal(guest.call("fd_write", fd, 256, 2, 0), ERRNO.fault);
    assert.equal(guest.call("fd_read", fd, 256, -1, 0), ERRNO.inval);
    assert.equal(guest.call("fd_read", fd, 4 * 65536 - 4, 1, 0), ERRNO.fault);
    vectors([-1, 1]);
    assert.equal(guest.call("fd_write", fd, 256, 1, 0), ERRNO.fault);
    assert.equal(guest.call("fd_write", fd, 256, 0, 0), 0);
    assert.equal(readFileSync(join(root, "a.txt"), "utf8"), "alpha");
  });
});

Deno.test("append, times and flags", () => {
  withSandbox(({ guest, root }) => {
    const { fd } = guest.open(ROOT, "a.txt", { fdflags: FDFLAG.append });
    assert.equal(guest.write(fd, "!"), 0);
    assert.equal(guest.call("fd_fdstat_get", fd, 0), 0);
    assert.deepEqual([guest.bytes(0, 1)[0], guest.view.getUint16(2, true)], [FILETYPE.regular_file, FDFLAG.append]);
    assert.equal(guest.call("fd_fdstat_set_flags", fd, 0), 0);
    assert.equal(guest.call("fd_seek", fd, 0n, 0, 0), 0);
    assert.equal(guest.write(fd, "A"), 0);
    assert.equal(readFileSync(join(root, "a.txt"), "utf8"), "Alpha!");
    const { atim, mtim, mtim_now } = FSTFLAG;
    assert.equal(guest.call("fd_filestat_set_times", fd, 5_000_000_100n, 7_000_000_200n, atim | mtim), 0);
    assert.equal(guest.call("fd_filestat_get", fd, 0), 0);
    // Wine does not keep times of access.
    if (!LACKS_POSIX_FILES) assert.equal(guest.u64(40), 5_000_000_100n);
    assert.equal(guest.u64(48), 7_000_000_200n);
    assert.equal(guest.call("fd_filestat_set_times", fd, 0n, 0n, mtim | mtim_now), ERRNO.inval);
    assert.equal(
      guest.call("path_filestat_set_times", ROOT, 1, ...guest.string("dir/b.txt"), 1n, 9_000_000_000n, mtim),
      0,
    );
    assert.equal(statSync(join(root, "dir", "b.txt")).mtimeMs, 9000);
    assert.equal(guest.call("path_filestat_set_times", ROOT, 1, ...guest.string("dir/b.txt"), 0n, 0n, mtim_now), 0);
    assert.ok(Math.abs(statSync(join(root, "dir", "b.txt")).mtimeMs - Date.now()) < HANG_MS);
  });
});

Deno.test("rights only shrink, and are needed", () => {
  withSandbox(({ guest }) => {
    const { fd } = guest.open(ROOT, "a.txt", { rights: right("fd_read", "fd_seek") });
    assert.equal(guest.write(fd, "x"), ERRNO.notcapable);
    assert.equal(guest.call("fd_filestat_set_size", fd, 0n), ERRNO.notcapable);
    assert.equal(guest.call("fd_fdstat_set_rights", fd, right("fd_read", "fd_write"), 0n), ERRNO.notcapable);
    assert.equal(guest.call("fd_fdstat_set_rights", fd, right("fd_seek"), 0n), 0);
    assert.equal(guest.read(fd).errno, ERRNO.notcapable);
    const directory = guest.open(ROOT, "dir", { oflags: OFLAG.directory, inheriting: right("fd_read") }).fd;
    assert.equal(guest.open(directory, "b.txt").errno, 0);
    assert.equal(guest.write(guest.open(directory, "b.txt").fd, "x"), ERRNO.notcapable);
    const closed = guest.open(ROOT, "dir", { oflags: OFLAG.directory, rights: right("fd_readdir") }).fd;
    assert.equal(guest.open(closed, "b.txt").errno, ERRNO.notcapable);
    assert.equal(guest.stat(closed, "b.txt").errno, ERRNO.notcapable);
    assert.equal(guest.onPath("path_unlink_file", closed, "b.txt"), ERRNO.notcapable);
    assert.equal(guest.entries(closed).errno, 0);
  });
});

Deno.test(
  "fd_readdir gives each entry once, whatever the size of the buffer",
  () => {
    withSandbox(({ guest, root }) => {
      mkdirSync(join(root, "many"));
      const names = Array.from({ length: 60 }, (_, i) => `file ${i}-${"x".repeat(i * 3)}`);
      for (const name of names) writeFileSync(join(root, "many", name), "");
      const { fd } = guest.open(ROOT, "many", { oflags: OFLAG.directory });
      for (const size of [250, 300, 1000, 65536]) {
        const found: string[] = [];
        for (let cookie = 0n, used = size; used === size;) {
          const part = guest.entries(fd, cookie, size);
          assert.equal(part.errno, 0);
          assert.ok(part.names.length > 0 || part.used < size);
          found.push(...part.names);
          cookie = part.cookies.at(-1) ?? cookie;
          used = part.used;
        }
        assert.deepEqual(found.sort(), [".", "..", ...names].sort());
      }
      for (const cookie of [62n, 1000n, 1n << 53n, -1n]) assert.equal(guest.entries(fd, cookie).used, 0);
      assert.equal(guest.entries(fd, 0n, 10).used, 10);
      assert.equal(guest.entries(fd, 0n, 0).used, 0);
      writeFileSync(join(root, "many", "later"), "");
      // Wine reads a directory once per handle.
      if (!LACKS_POSIX_FILES) assert.ok(guest.entries(fd, 0n, 65536).names.includes("later"));
      assert.equal(guest.call("fd_readdir", fd, 4 * 65536 - 10, 11, 0n, 0), ERRNO.fault);
      const file = guest.open(ROOT, "a.txt").fd;
      assert.equal(guest.entries(file).errno, ERRNO.notcapable);
    });
  },
);

Deno.test("fd_readdir reports the type of each entry", () => {
  withSandbox(({ guest, root }) => {
    if (!LACKS_LINKS) symlinkSync("a.txt", join(root, "link"));
    assert.equal(guest.entries(ROOT).errno, 0);
    const types = new Map<string, number>();
    for (let at = BUFFER; at < BUFFER + guest.u32(0); at += 24 + guest.u32(at + 16)) {
      types.set(guest.text(at + 24, guest.u32(at + 16)), guest.u32(at + 20));
    }
    assert.deepEqual(
      [types.get("a.txt"), types.get("dir"), types.get("link"), types.get(".")],
      [FILETYPE.regular_file, FILETYPE.directory, LACKS_LINKS ? undefined : FILETYPE.symbolic_link, FILETYPE.directory],
    );
  });
});

Deno.test("fd_renumber moves a descriptor over another", () => {
  withSandbox(({ guest }) => {
    const a = guest.open(ROOT, "a.txt").fd;
    const b = guest.open(ROOT, "dir/b.txt").fd;
    assert.equal(guest.call("fd_renumber", b, a), 0);
    assert.deepEqual(guest.read(a), { errno: 0, text: "beta" });
    assert.equal(guest.read(b).errno, ERRNO.badf);
    assert.equal(guest.call("fd_renumber", a, a), 0);
    assert.equal(guest.open(ROOT, "a.txt").fd, b);
  });
});

Deno.test("directories are not read or written as files", () => {
  withSandbox(({ guest }) => {
    const { fd } = guest.open(ROOT, "dir", { rights: right("fd_readdir", "fd_read") });
    assert.equal(guest.read(fd).errno, ERRNO.isdir);
    assert.equal(guest.call("fd_seek", fd, 0n, 0, 0), ERRNO.badf);
    assert.equal(guest.open(ROOT, "dir", { rights: right("fd_write") }).errno, ERRNO.isdir);
  });
});

Deno.test("standard streams: written bytes arrive, seeking is ESPIPE, nonblocking is EAGAIN", () => {
  const [inRead, inWrite] = makePipe();
  const [outRead, outWrite] = makePipe();
  try {
    withSandbox(({ guest }: { guest: RawGuest }) => {
      assert.equal(guest.write(1, "to stdout"), 0);
      assert.equal(readText(outRead), "to stdout");
      writeText(inWrite, "to stdin");
      assert.deepEqual(guest.read(0), { errno: 0, text: "to stdin" });
      assert.equal(guest.call("fd_seek", 0, 0n, 1, 0), ERRNO.spipe);
      assert.equal(guest.call("fd_tell", 1, 0), ERRNO.spipe);
      assert.equal(guest.call("fd_pread", 0, guest.vector(BUFFER, 1), 1, 0n, 0), ERRNO.spipe);
      assert.equal(guest.call("fd_fdstat_set_flags", 0, FDFLAG.nonblock), 0);
      assert.equal(guest.read(0).errno, ERRNO.again);
      writeText(inWrite, "more");
      assert.deepEqual(guest.read(0), { errno: 0, text: "more" });
      assert.equal(guest.call("fd_close", 1), 0);
      assert.equal(guest.write(1, "x"), ERRNO.badf);
      writeText(outWrite, "still open"); // the process keeps its own
    }, { stdio: [inRead, outWrite, outWrite] });
  } finally {
    for (const fd of [inRead, inWrite, outRead, outWrite]) closeDescriptor(fd);
  }
});
