/** The list of tests that Windows does not run agrees with the sources, and is read from the output of a run. */
import { deepEqual, ok } from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./host_project.ts";
import { ignoredTests, LEFT_OUT_FILES, LEFT_OUT_TESTS } from "./windows_left_out.ts";

/** Conditions under which a test is ignored on Windows. */
const CONDITION =
  /ignore: (?:!\w+ && )?(?:LACKS_|process\.platform (?:!== "linux"|=== "win32")|process\.getuid\?\.\(\) !== 0|!hasPty\(\))/g;
const FOLDERS = ["project/base", "project/plugins", "tests/project", "tests/cli_project", "tests/embedding"]
  .concat(["tests/engine", "tests/plugins", "tests/threads", "tests/vector", "tests/wasi"]);

Deno.test("each condition that ignores a test on Windows has a row with the reason", () => {
  const conditions: Record<string, number> = {};
  for (const folder of FOLDERS) {
    for (const name of readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })) {
      const file = `${folder}/${name}`;
      if (!name.endsWith("_test.ts") || file in LEFT_OUT_FILES) {
        continue;
      }
      const count = readFileSync(join(ROOT, file), "utf8").match(CONDITION)?.length ?? 0;
      if (count > 0) conditions[file] = count;
    }
  }
  const rows: Record<string, number> = {};
  for (const [file] of LEFT_OUT_TESTS) rows[file] = (rows[file] ?? 0) + 1;
  deepEqual(rows, conditions);
});

Deno.test("each row names a test of its file", () => {
  for (const [file, name] of LEFT_OUT_TESTS) {
    ok(readFileSync(join(ROOT, file), "utf8").includes(name), `${file}: ${name}`);
  }
  for (const file of Object.keys(LEFT_OUT_FILES)) ok(existsSync(join(ROOT, file)), file);
});

Deno.test("ignored tests are read from the output, and those without a row are reported", () => {
  const { rows, unlisted } = ignoredTests(
    [
      "running 2 tests from ./tests/wasi/escape_test.ts",
      "opening a FIFO does not block ... ignored (0ms)",
      "`..` and absolute paths do not lead out ... ok (260ms)",
      "running 1 test from ./tests/wasi/files_test.ts",
      "a new test ... ignored (0ms)",
    ].join("\n"),
  );
  deepEqual(rows.map(([, name]) => name), ["opening a FIFO does not block"]);
  deepEqual(unlisted, ["tests/wasi/files_test.ts: a new test"]);
});
