/** Paths: against node:path, except closing separators, which node:path keeps. */
import assert from "node:assert/strict";
import { posix, win32 } from "node:path";
import { LACKS_POSIX_FILES } from "../../tests/support/posix_files.ts";
import {
  absolutePath,
  isAbsolutePath,
  isWithinBy,
  joinBy,
  joinPaths,
  parentOf,
  POSIX_PATHS,
  WINDOWS_PATHS,
} from "./system_path.ts";

const PARTS = [
  "",
  "/",
  ".",
  "..",
  "a",
  "/a",
  "a/",
  "a//b",
  "../b",
  "..",
  "/../x",
  "a/./b/../../..",
  "a b",
  "...",
  "/a/b/",
];
const bare = (path: string): string => path.length > 1 ? path.replace(/\/+$/, "") : path;

Deno.test({ name: "paths are joined, resolved and left as node:path does", ignore: LACKS_POSIX_FILES }, () => {
  for (const a of PARTS) {
    assert.equal(isAbsolutePath(a), posix.isAbsolute(a), a);
    assert.equal(absolutePath(a), posix.resolve(a), a);
    if (posix.isAbsolute(a)) assert.equal(parentOf(a), posix.dirname(posix.resolve(a)), a);
    for (const b of PARTS) {
      assert.equal(joinPaths(a, b), bare(posix.join(a, b)), `${a} + ${b}`);
      assert.equal(absolutePath(b, a), posix.resolve(a, b), `${b} from ${a}`);
    }
  }
});

Deno.test("POSIX: paths are joined as node:path does", () => {
  for (const a of PARTS) {
    for (const b of PARTS) assert.equal(joinBy(POSIX_PATHS, [a, b]), bare(posix.join(a, b)), `${a} + ${b}`);
  }
});

Deno.test("Windows: paths are joined as node:path does, and have the roots that it finds", () => {
  const parts = [
    "",
    "a",
    "a\\b",
    "a/b",
    "..\\b",
    ".",
    "...",
    "a b\\",
    "C:\\x",
    "c:/x/../..",
    "\\\\server\\share\\a\\..",
    "//server/share/x",
  ];
  const plain = (path: string): string =>
    /^(?:[A-Za-z]:|\\\\[^\\]+\\[^\\]+)\\$/.test(path) ? path : path.replace(/\\+$/, "");
  for (const a of parts) {
    assert.equal(WINDOWS_PATHS.rootOf(a).root !== "", win32.isAbsolute(a), a);
    for (const b of parts.filter((part) => !win32.isAbsolute(part))) {
      assert.equal(joinBy(WINDOWS_PATHS, [a, b]), plain(win32.join(a, b)), `${a} + ${b}`);
    }
  }
});

Deno.test("a path is within a directory only by whole names", () => {
  for (
    const [path, directory, expected] of [
      ["/a/b", "/a", true],
      ["/a", "/a", true],
      ["/", "/", true],
      ["/a", "/", true],
      ["/ab", "/a", false],
      ["/a", "/a/b", false],
      ["/A/b", "/a", false],
    ] as const
  ) assert.equal(isWithinBy(POSIX_PATHS, path, directory), expected, `${path} in ${directory}`);
  for (
    const [path, directory, expected] of [
      ["C:\\a\\b", "C:\\a", true],
      ["c:\\A\\b", "C:\\a", true],
      ["C:\\a", "C:\\", true],
      ["C:\\ab", "C:\\a", false],
      ["D:\\a\\b", "C:\\a", false],
      ["\\\\server\\share\\a", "\\\\server\\share\\", true],
    ] as const
  ) assert.equal(isWithinBy(WINDOWS_PATHS, path, directory), expected, `${path} in ${directory}`);
});
