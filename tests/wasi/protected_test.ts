/**
 * Protected paths: no WASI call changes them, under any name, link or directory.
 */
import assert from "node:assert/strict";
import { linkSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ERRNO, OFLAG } from "../../engine/wasi/abi.ts";
import type { WasiOptions } from "../../engine/wasi/mod.ts";
import type { RawGuest } from "./raw_guest.ts";
import { ROOT, withSandbox } from "./sandbox.ts";
import { LACKS_LINKS, LACKS_POSIX_FILES } from "../support/posix_files.ts";

const { creat, excl, trunc } = OFLAG;
const WRITES = 1n << 6n;
const READS = 2n;

/** The project `proj` and the state directory `state` of the guest's directory. */
const options = (root: string): WasiOptions => ({
  protect: {
    names: ["waft.json", "waft-lock.json"],
    files: [join(root, "proj", "waft.json"), join(root, "proj", "waft-lock.json"), join(root, "linked", "policy")],
    directories: [join(root, "state", "trust")],
  },
});

function layOut(root: string): void {
  mkdirSync(join(root, "proj", "sub"), { recursive: true });
  mkdirSync(join(root, "state", "trust"), { recursive: true });
  mkdirSync(join(root, "real"));
  writeFileSync(join(root, "proj", "waft.json"), "{}");
  writeFileSync(join(root, "proj", "waft-lock.json"), "lock");
  writeFileSync(join(root, "state", "trust", "a.json"), "record");
  writeFileSync(join(root, "real", "policy"), "policy");
  linkSync(join(root, "proj", "waft-lock.json"), join(root, "hard"));
  if (LACKS_LINKS) return;
  symlinkSync("real", join(root, "linked"));
  symlinkSync("proj/waft-lock.json", join(root, "soft"));
  symlinkSync("proj", join(root, "other"));
}

/** Everything below a directory: names, and contents of files. */
function snapshot(root: string): string {
  return JSON.stringify(
    readdirSync(root, { withFileTypes: true, recursive: true }).map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [path.slice(root.length), entry.isFile() ? readFileSync(path, "utf8") : entry.isSymbolicLink()];
    }).sort(),
  );
}

type Attempt = readonly [string, (guest: RawGuest) => number];

const open = (path: string, oflags: number, rights: bigint): Attempt => [
  `open ${path} ${oflags} ${rights}`,
  (guest) => guest.open(ROOT, path, { oflags, rights, follow: true }).errno,
];
const rename = (from: string, to: string): Attempt => [
  `rename ${from} ${to}`,
  (guest) => guest.call("path_rename", ROOT, ...guest.string(from), ROOT, ...guest.string(to)),
];
const link = (from: string, to: string): Attempt => [
  `link ${from} ${to}`,
  (guest) => guest.call("path_link", ROOT, 1, ...guest.string(from), ROOT, ...guest.string(to)),
];
const symlink = (to: string): Attempt => [
  `symlink ${to}`,
  (guest) => guest.call("path_symlink", ...guest.string("a.txt"), ROOT, ...guest.string(to)),
];
const onPath = (
  name: "path_unlink_file" | "path_create_directory" | "path_remove_directory",
  path: string,
): Attempt => [
  `${name} ${path}`,
  (guest) => guest.onPath(name, ROOT, path),
];
const times = (path: string): Attempt => [
  `times ${path}`,
  (guest) => guest.call("path_filestat_set_times", ROOT, 1, ...guest.string(path), 0n, 0n, 8),
];

/** Spellings of the lockfile, and other names for it. */
const SPELLINGS = [
  "proj/waft-lock.json",
  "proj/./waft-lock.json",
  "proj/sub/../waft-lock.json",
  "other/waft-lock.json",
  "soft",
  "hard",
];
/** Names that some file system treats as the lockfile's. */
const ALIASES = [
  "WAFT-LOCK.JSON",
  "Waft-Lock.json",
  "waft-lock.json.",
  "waft\u200b-lock.json",
  "ｗaft-lock.json",
  "waft.json:x",
  "WAFT~1.JSO",
  "waft-l~1.jso",
  "WA0F3C~12.JSO",
  "WAFTJS~1.TMP",
  "waft-l~2.loc",
  // Files that a writer of the manifest and the lockfile makes on the way.
  ".waft.json.0123456789ab.tmp",
  ".waft-lock.json.0123456789ab.tmp",
  ".WAFT-lock.json.0123456789AB.TMP",
  "waft-lock.json.lock",
  "waft-lock.json.lock.0123456789ab",
];

/** Attempts that need symbolic links. */
const NEEDS_LINKS = /soft|linked|other\/|real/;
const MAKES_LINK = /symlink/;

const canMake = ([what]: Attempt): boolean =>
  !(LACKS_LINKS && NEEDS_LINKS.test(what)) && !(LACKS_POSIX_FILES && MAKES_LINK.test(what));

const ATTEMPTS: readonly Attempt[] = [
  ...SPELLINGS.flatMap((path) => [
    open(path, 0, WRITES),
    open(path, 0, WRITES | READS),
    open(path, trunc, WRITES),
    open(path, trunc, READS),
    open(path, creat, WRITES),
    link(path, "stolen"),
    times(path),
  ]),
  ...SPELLINGS.filter((path) => path !== "soft").flatMap((path) => [
    rename(path, "moved"),
    rename("a.txt", path),
    onPath("path_unlink_file", path),
  ]),
  ...ALIASES.flatMap((name) => [
    open(`proj/${name}`, creat, WRITES),
    open(`dir/${name}`, creat | excl, WRITES),
    rename("a.txt", `proj/${name}`),
    link("a.txt", `proj/${name}`),
    symlink(`proj/${name}`),
    onPath("path_create_directory", `proj/${name}`),
  ]),
  open("waft.json", creat, WRITES),
  open("dir/waft.json", creat, READS),
  // The directories on the way.
  rename("proj", "gone"),
  rename("dir", "proj"),
  rename("state", "gone"),
  rename("state/trust", "gone"),
  onPath("path_remove_directory", "proj"),
  // A protected file behind a symbolic link.
  open("real/policy", 0, WRITES),
  rename("real/policy", "gone"),
  rename("real", "gone"),
  rename("linked", "gone"),
  onPath("path_unlink_file", "linked"),
  onPath("path_unlink_file", "real/policy"),
  // A protected directory.
  open("state/trust/b.json", creat, WRITES),
  open("state/trust/a.json", 0, WRITES),
  onPath("path_unlink_file", "state/trust/a.json"),
  onPath("path_create_directory", "state/trust/new"),
  rename("a.txt", "state/trust/b.json"),
  link("a.txt", "state/trust/b.json"),
  symlink("state/trust/b.json"),
];

Deno.test("protected paths: every attempt to change them is EPERM and changes nothing", () => {
  withSandbox(({ guest, root }) => {
    layOut(root);
    const before = snapshot(root);
    for (const [what, attempt] of ATTEMPTS.filter(canMake)) {
      const errno = attempt(guest);
      assert.equal(errno, ERRNO.perm, what);
      assert.equal(snapshot(root), before, what);
    }
  }, options);
});

Deno.test(
  "protected paths: reading them, and changing everything else, goes on",
  () => {
    withSandbox(({ guest, root }) => {
      layOut(root);
      assert.equal(guest.open(ROOT, "proj/waft-lock.json", { rights: READS }).errno, 0);
      assert.equal(guest.stat(ROOT, "proj/waft.json").errno, 0);
      for (
        const [what, attempt] of [
          open("proj/data", creat | trunc, WRITES),
          open("proj/data", trunc, WRITES),
          rename("proj/data", "proj/data2"),
          link("proj/data2", "proj/data3"),
          symlink("proj/data4"),
          onPath("path_unlink_file", "proj/data3"),
          onPath("path_unlink_file", "soft"),
          onPath("path_create_directory", "proj/new"),
          rename("proj/new", "proj/newer"),
          onPath("path_remove_directory", "proj/newer"),
          open("state/other", creat, WRITES),
        ].filter(canMake)
      ) {
        assert.equal(attempt(guest), 0, what);
      }
    }, options);
  },
);

Deno.test("protected paths: nothing is moved or linked to where a protected path will be", () => {
  withSandbox(({ guest, root }) => {
    mkdirSync(join(root, "home"));
    mkdirSync(join(root, "bait", "waft", "trust"), { recursive: true });
    writeFileSync(join(root, "bait", "waft", "trust", "a.json"), "forged");
    symlinkSync("bait", join(root, "soft"));
    const before = snapshot(root);
    for (
      const [what, attempt] of [
        rename("bait", "home/state"),
        rename("bait", "home/STATE"),
        rename("soft", "home/state"),
        link("a.txt", "home/state"),
        symlink("home/state"),
      ]
    ) {
      assert.equal(attempt(guest), ERRNO.perm, what);
      assert.equal(snapshot(root), before, what);
    }
    // Empty directories may be made on the way, and nothing is put into them.
    assert.equal(guest.onPath("path_create_directory", ROOT, "home/state"), 0);
    assert.equal(rename("bait/waft", "home/state/waft")[1](guest), ERRNO.perm);
    assert.equal(guest.onPath("path_create_directory", ROOT, "home/state/waft"), 0);
    assert.equal(rename("bait/waft/trust", "home/state/waft/trust")[1](guest), ERRNO.perm);
    assert.equal(guest.onPath("path_create_directory", ROOT, "home/state/waft/trust"), 0);
    assert.equal(rename("bait/waft/trust/a.json", "home/state/waft/trust/a.json")[1](guest), ERRNO.perm);
    assert.equal(rename("bait/waft", "home/other")[1](guest), 0);
  }, (root) => ({ protect: { directories: [join(root, "home", "state", "waft", "trust")] } }));
});

Deno.test("protected paths: a protected directory is protected with all below it", () => {
  withSandbox(({ guest, root }) => {
    mkdirSync(join(root, "state", "trust", "deep", "er"), { recursive: true });
    writeFileSync(join(root, "state", "trust", "deep", "er", "a.json"), "record");
    const before = snapshot(root);
    for (
      const [what, attempt] of [
        open("state/trust/deep/er/a.json", trunc, WRITES),
        open("state/trust/deep/er/b.json", creat, WRITES),
        rename("state/trust/deep/er", "gone"),
        rename("state/trust/deep/er/a.json", "gone"),
        link("state/trust/deep/er/a.json", "gone"),
        onPath("path_unlink_file", "state/trust/deep/er/a.json"),
      ]
    ) {
      assert.equal(attempt(guest), ERRNO.perm, what);
      assert.equal(snapshot(root), before, what);
    }
  }, options);
});

Deno.test("protected paths: a file that its owner replaces stays protected", () => {
  withSandbox(({ guest, root }) => {
    layOut(root);
    const next = join(root, "proj", "next");
    writeFileSync(next, "new lock");
    assert.equal(open("proj/next", 0, WRITES)[1](guest), 0);
    renameSync(next, join(root, "proj", "waft-lock.json"));
    linkSync(join(root, "proj", "waft-lock.json"), join(root, "hard2"));
    assert.equal(open("hard2", trunc, WRITES)[1](guest), ERRNO.perm);
    assert.equal(readFileSync(join(root, "hard2"), "utf8"), "new lock");
  }, options);
});

Deno.test("protected paths: without protection the same guest may", () => {
  withSandbox(({ guest, root }) => {
    layOut(root);
    assert.equal(open("proj/waft-lock.json", trunc, WRITES)[1](guest), 0);
    assert.equal(rename("proj", "gone")[1](guest), 0);
  });
});
