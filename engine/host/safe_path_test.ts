/**
 * The way to a file: directories and symbolic links of other users are found, sticky directories and the user's own
 * are not. Owners are judged only where the tests run as root, who alone can give files away.
 */
import assert from "node:assert/strict";
import { chmodSync, chownSync, lchownSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { LACKS_POSIX_FILES } from "../../tests/support/posix_files.ts";
import { memberBesides, replaceableBy, writableBy } from "./safe_path.ts";

const OTHER = 65534;

/** Makes `root/a/b/c`, changes it and judges the way to `c`, or to the path that `change` returns. */
function judged(change: (root: string) => string | void): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "waft-way-")));
  try {
    mkdirSync(join(root, "a/b/c"), { recursive: true });
    for (const path of ["", "a", "a/b", "a/b/c"]) chmodSync(join(root, path), 0o755);
    const danger = replaceableBy(change(root) ?? join(root, "a/b/c"));
    return danger === undefined ? "" : `${danger.path.slice(root.length)} ${danger.reason}`;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

Deno.test({
  name: "directories that others can write are found above a file, sticky ones are not",
  ignore: LACKS_POSIX_FILES, // permissions of Windows are not judged
}, () => {
  assert.equal(judged(() => {}), "");
  assert.equal(judged((root) => chmodSync(join(root, "a/b/c"), 0o777)), "", "the caller judges the file itself");
  assert.equal(judged((root) => chmodSync(join(root, "a"), 0o777)), "/a can be written by every user");
  assert.equal(judged((root) => chmodSync(join(root, "a"), 0o1777)), "");
  assert.equal(judged((root) => chmodSync(root, 0o777)), " can be written by every user");
  // Each symbolic link on the path adds directories that have to be checked.
  assert.equal(
    judged((root) => {
      mkdirSync(join(root, "open"), { mode: 0o777 });
      chmodSync(join(root, "open"), 0o777);
      symlinkSync("../a", join(root, "open/second"));
      symlinkSync("open/second", join(root, "first"));
      return join(root, "first/b/c");
    }),
    "/open can be written by every user",
  );
  const looped = judged((root) => {
    symlinkSync("loop", join(root, "loop"));
    return join(root, "loop/c");
  });
  assert.match(looped, /^\/loop is one of too many symbolic links$/);
  assert.equal(judged((root) => join(root, "a/../a/./b//c")), "");
  assert.equal(judged((root) => join(root, "none/at/all")), "", "nothing to replace");
});

Deno.test({
  name: `directories and links of another user are found${process.getuid?.() === 0 ? "" : " (ignored: needs root)"}`,
  ignore: process.getuid?.() !== 0,
}, () => {
  for (const mode of [0o700, 0o755, 0o1777]) {
    const found = judged((root) => (chmodSync(join(root, "a"), mode), chownSync(join(root, "a"), OTHER, OTHER)));
    assert.equal(found, `/a belongs to another user (${OTHER})`);
  }
  const ofLink = judged((root) => {
    chmodSync(root, 0o1777);
    symlinkSync("a", join(root, "link"));
    lchownSync(join(root, "link"), OTHER, OTHER);
    return join(root, "link/b/c");
  });
  assert.equal(ofLink, `/link belongs to another user (${OTHER})`);
  const ofGroup = judged((root) => (chownSync(join(root, "a"), 0, 12), chmodSync(join(root, "a"), 0o775)));
  assert.equal(ofGroup, "/a can be written by the group 12");
  assert.equal(writableBy({ uid: OTHER, gid: OTHER, mode: 0o600 }), `belongs to another user (${OTHER})`);
  assert.equal(writableBy({ uid: 0, gid: 0, mode: 0o775 }), undefined);
});

Deno.test("a group is its user's own only if it has no other members", () => {
  const users =
    "root:x:0:0::/root:/bin/sh\nana:x:1000:1000::/:\nben:x:1001:1001::/:\ncy:x:1002:1000::/:\nhalt:x:7:0::/:\n";
  const rows: [own: number, group: number, groups: string, expected: string | undefined][] = [
    [1001, 1001, "ben:x:1001:", undefined],
    [1001, 1001, "ben:x:1001:ben,root", undefined],
    [1001, 1001, "ben:x:1001:root,ana", "ana"],
    [1001, 1001, "ben:x:1001:ben,remote", "remote"],
    [1001, 1001, "ben:x:1001:\nsecond:x:1001:ana", "ana"],
    [1001, 1001, "ben:x:10010:ana", undefined],
    [1000, 1000, "ana:x:1000:", "cy"],
    [1001, 1001, "", undefined],
    [1001, 0, "root:x:0:", undefined],
    [1001, 0, "root:x:0:ana", "ana"],
    [0, 0, "root:x:0:root", undefined],
  ];
  for (const [own, group, groups, expected] of rows) {
    assert.equal(memberBesides(own, group, groups, users), expected, `user ${own}, ${groups}`);
  }
});
