/**
 * Nothing outside the preopened directory is reachable: by `..`, absolute paths, links of every kind, moved
 * directories, or a tree that changes during path resolution.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { linkSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ERRNO, FILETYPE, OFLAG } from "../../engine/wasi/abi.ts";
import type { RawGuest } from "./raw_guest.ts";
import { ROOT, type Sandbox, withSandbox } from "./sandbox.ts";
import { makeFifo } from "./system_call.ts";
import { LACKS_POSIX_FILES } from "../support/posix_files.ts";
import { HANG_MS } from "../support/hang.ts";

/** The rights fd_read and fd_readdir. */
const READS = 2n | 1n << 14n;

/** Uses one path in every possible way; returns the error numbers. */
function attempts(guest: RawGuest, path: string): Record<string, number> {
  const text = () => guest.string(path);
  return {
    open: guest.open(ROOT, path).errno,
    create: guest.open(ROOT, path, { oflags: OFLAG.creat }).errno,
    list: guest.open(ROOT, path, { oflags: OFLAG.directory }).errno,
    stat: guest.stat(ROOT, path).errno,
    mkdir: guest.onPath("path_create_directory", ROOT, path + "/new"),
    rmdir: guest.onPath("path_remove_directory", ROOT, path + "/x"),
    unlink: guest.onPath("path_unlink_file", ROOT, path + "/x"),
    times: guest.call("path_filestat_set_times", ROOT, 1, ...text(), 0n, 0n, 8),
    linkFrom: guest.call("path_link", ROOT, 1, ...text(), ROOT, ...guest.string("stolen")),
    linkTo: guest.call("path_link", ROOT, 0, ...guest.string("a.txt"), ROOT, ...guest.string(path + "/x")),
    renameTo: guest.call("path_rename", ROOT, ...guest.string("a.txt"), ROOT, ...guest.string(path + "/x")),
    symlinkIn: guest.call("path_symlink", ...guest.string("a"), ROOT, ...guest.string(path + "/x")),
    readlink: guest.call("path_readlink", ROOT, ...guest.string(path + "/x"), 65536, 10, 0),
  };
}

function refused({ guest, outside }: Sandbox, ...paths: string[]): void {
  for (const path of paths.flatMap((p) => [p, `dir/../${p}`])) {
    for (const [what, errno] of Object.entries(attempts(guest, path))) {
      assert.equal(errno, ERRNO.perm, `${what} of ${path.replace(outside, "…")}`);
    }
  }
}

Deno.test("`..` and absolute paths do not lead out", () => {
  withSandbox((sandbox) => {
    refused(sandbox, "..", "../secret", "dir/../../secret", "./.././secret", "dir/../../open/a.txt");
    const { guest, outside } = sandbox;
    for (const path of ["/", "/etc/passwd", join(outside, "secret"), "//"]) {
      // On Windows a colon is not part of any name.
      const expected = LACKS_POSIX_FILES && path.includes(":") ? ERRNO.inval : ERRNO.perm;
      for (const [what, errno] of Object.entries(attempts(guest, path))) {
        assert.equal(errno, expected, `${what} of ${path.replace(outside, "…")}`);
      }
    }
  });
});

Deno.test({ name: "symbolic links do not lead out, in any position", ignore: LACKS_POSIX_FILES }, () => {
  withSandbox((sandbox) => {
    const { guest, root, outside } = sandbox;
    symlinkSync("..", join(root, "up"));
    symlinkSync(outside, join(root, "absolute"));
    symlinkSync("up", join(root, "chain"));
    symlinkSync("dir/../../", join(root, "winding"));
    symlinkSync("/", join(root, "slash"));
    refused(
      sandbox,
      "up/secret",
      "absolute/secret",
      "chain/secret",
      "winding/secret",
      "slash/etc",
      "up",
      "chain",
      "absolute",
    );
    symlinkSync("../secret", join(root, "to file"));
    assert.equal(guest.open(ROOT, "to file").errno, ERRNO.perm);
    assert.equal(guest.open(ROOT, "to file", { oflags: OFLAG.trunc | OFLAG.creat }).errno, ERRNO.perm);
    assert.equal(guest.stat(ROOT, "to file").errno, ERRNO.perm);
    assert.equal(guest.stat(ROOT, "to file", false).type, FILETYPE.symbolic_link);
    assert.equal(guest.call("path_symlink", ...guest.string("/etc"), ROOT, ...guest.string("mine")), ERRNO.perm);
    // A guest may make a link that points out, but not go through it.
    assert.equal(guest.call("path_symlink", ...guest.string("../secret"), ROOT, ...guest.string("own")), 0);
    assert.equal(guest.open(ROOT, "own").errno, ERRNO.perm);
    // Removing or renaming a link acts on the link.
    assert.equal(guest.onPath("path_unlink_file", ROOT, "to file"), 0);
    assert.equal(guest.call("path_rename", ROOT, ...guest.string("up"), ROOT, ...guest.string("dir/up")), 0);
    assert.equal(guest.open(ROOT, "dir/up", { rights: READS }).errno, 0, "dir/.. is the root itself");
    assert.equal(guest.open(ROOT, "dir/up/../secret").errno, ERRNO.perm);
  });
});

Deno.test("a directory that was moved away is its own root", () => {
  withSandbox(({ guest, root, outside }) => {
    mkdirSync(join(root, "dir", "inner"));
    const { fd } = guest.open(ROOT, "dir/inner", { oflags: OFLAG.directory });
    renameSync(join(root, "dir", "inner"), join(outside, "inner"));
    writeFileSync(join(outside, "inner", "own"), "own");
    assert.equal(guest.read(guest.open(fd, "own").fd).text, "own");
    assert.equal(guest.open(fd, "../secret").errno, ERRNO.perm);
    assert.equal(guest.open(fd, "..").errno, ERRNO.perm);
  });
});

Deno.test("hard links inside are files like others", () => {
  withSandbox(({ guest, root }) => {
    linkSync(join(root, "a.txt"), join(root, "dir", "same"));
    assert.equal(guest.read(guest.open(ROOT, "dir/same").fd).text, "alpha");
  });
});

Deno.test({ name: "opening a FIFO does not block", ignore: LACKS_POSIX_FILES }, () => {
  withSandbox(({ guest, root }) => {
    makeFifo(join(root, "fifo"));
    assert.equal(guest.open(ROOT, "fifo", { rights: 2n }).errno, 0); // reads
    assert.equal(guest.open(ROOT, "fifo", { rights: 66n }).errno, 0); // reads and writes
  });
});

Deno.test({ name: "links below /proc do not lead out", ignore: LACKS_POSIX_FILES }, () => {
  withSandbox(({ guest }) => {
    for (
      const path of ["self/root/etc", "self/cwd", "self/cwd/deno.json", "self/fd/0", "self/exe", "thread-self/root"]
    ) {
      const { errno } = guest.open(ROOT, path);
      assert.ok(errno === ERRNO.perm || errno === ERRNO.noent, `${path}: ${errno}`);
    }
    assert.equal(guest.open(ROOT, "self/status").errno, 0);
  }, { preopens: [{ host: "/proc", guest: "/proc" }] });
});

Deno.test(
  { name: "a tree that changes during the walk does not let the guest out", ignore: LACKS_POSIX_FILES },
  async () => {
    let finished: Promise<unknown> = Promise.resolve();
    withSandbox(({ guest, root, outside }) => {
      // `swap` alternates between a directory with a harmless file and a link to the outside.
      mkdirSync(join(root, "real"));
      writeFileSync(join(root, "real", "secret"), "harmless");
      symlinkSync(outside, join(root, "way out"));
      const script =
        'while mv -T real swap 2>/dev/null && mv -T swap real && mv -T "way out" swap && mv -T swap "way out"; do :; done';
      const child = spawn("sh", ["-c", script], { cwd: root, stdio: "ignore" });
      finished = new Promise((resolve) => child.on("exit", resolve));
      let harmless = 0;
      try {
        const start = performance.now();
        const elapsed = () => performance.now() - start;
        while (elapsed() < 400 || (harmless === 0 && elapsed() < HANG_MS)) {
          const { errno, fd } = guest.open(ROOT, "swap/secret");
          if (errno !== 0) continue;
          assert.equal(guest.read(fd).text, "harmless");
          harmless++;
          assert.equal(guest.call("fd_close", fd), 0);
        }
      } finally {
        child.kill("SIGKILL");
      }
      assert.ok(harmless > 0, "the directory was never there");
    });
    await finished;
  },
);
