/**
 * Paths of plugins that are directories of the project: inside of it, and on Windows by plain names only.
 */
import assert from "node:assert/strict";
import { join, resolve } from "node:path";
import { ProjectError } from "../../project/base/diagnostic.ts";
import { projectPath } from "../../project/packages/source_path.ts";
import { LACKS_POSIX_FILES } from "../support/posix_files.ts";

const ROOT = resolve("/projects/mine");

/** The stored path of a directory that a user names in the project, or the code of the error. */
function stored(spec: string): string {
  try {
    return projectPath(ROOT, resolve(ROOT, spec));
  } catch (error) {
    assert.ok(error instanceof ProjectError, String(error));
    return error.diagnostics[0].code;
  }
}

Deno.test("a path plugin is inside the project, under a path with slashes", () => {
  for (
    const [spec, expected] of [
      [".", "."],
      ["a", "./a"],
      [join("a", "b", ""), "./a/b"],
      [join(ROOT, "a"), "./a"],
      ["..a", "./..a"],
      ["..", "usage.path"],
      [join("..", "other"), "usage.path"],
      [join("..", "mine2"), "usage.path"],
      [resolve("/"), "usage.path"],
    ] as const
  ) assert.equal(stored(spec), expected, spec);
});

Deno.test({ name: "Windows: no path plugin is elsewhere or a device", ignore: !LACKS_POSIX_FILES }, () => {
  for (
    const spec of [
      "..\\other",
      "a\\..\\..\\other",
      "C:\\elsewhere",
      "q:elsewhere",
      "\\\\server\\share\\mine",
      "\\\\?\\C:\\mine",
      "con",
      "a\\nul",
      "com1\\a",
      "a:stream",
      "a.\\b",
      "a \\b",
    ]
  ) assert.equal(stored(spec), "usage.path", spec);
  assert.equal(stored("A\\b"), "./A/b");
  assert.equal(stored(`${ROOT.toUpperCase()}\\a`), "./a");
});
