/** Paths: against node:path, but for closing slashes, which stay there. */
import assert from "node:assert/strict";
import { posix } from "node:path";
import { absolutePath, isAbsolutePath, joinPaths, parentOf } from "./posix_path.ts";

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

Deno.test("paths are joined, resolved and left as node:path does", () => {
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
