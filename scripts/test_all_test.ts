/** Tests that fail once pass when their file is repeated; those that fail twice, and many at once, do not. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("test_all.ts", import.meta.url));

/** A test that fails until the file `mark` exists. */
const failsOnce = (name: string, mark: string): string =>
  `test("${name}", () => { try { Deno.statSync("${mark}"); } catch { Deno.writeTextFileSync("${mark}", ""); throw "first"; } });`;

function testAll(files: Record<string, string>): { status: number | null; err: string } {
  const folder = mkdtempSync(join(tmpdir(), "waft-test-all-"));
  mkdirSync(join(folder, "more"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const run = spawnSync(process.execPath, ["run", "-A", SCRIPT], { cwd: folder, encoding: "utf8" });
  return { status: run.status, err: run.stderr };
}

const HELPER = "export function test(name: string, fn: () => void) { Deno.test({ name, fn }); }";

Deno.test("a test that a helper registers, and that fails once, is repeated with its file alone", () => {
  const { status, err } = testAll({
    "helper.ts": HELPER,
    "more/a_test.ts": `import { test } from "../helper.ts";\n${failsOnce("once", "mark")}`,
    "b_test.ts": `Deno.test("good", () => {});`,
  });
  assert.match(err, /Once more, with nothing beside them: more.a_test\.ts\n/);
  assert.match(err, /Passed the second time alone, which is a fault to mend: \.\/helper\.ts/);
  assert.equal(status, 0);
});

Deno.test("a test that fails twice, a file that does not load, and many failures are failures", () => {
  const bad = `Deno.test("bad", () => { throw "always"; });`;
  const twice = testAll({ "a_test.ts": bad });
  assert.match(twice.err, /Once more/);
  assert.equal(twice.status, 1);
  assert.equal(testAll({ "a_test.ts": "throw 1;" }).status, 1);
  const marks = Array.from(
    { length: 6 },
    (_, k) => [`t${k}_test.ts`, failsOnce("once", `mark${k}`).replace("test(", "Deno.test(")],
  );
  const many = testAll(Object.fromEntries(marks));
  assert.match(many.err, /6 files failed: none is repeated/);
  assert.equal(many.status, 1);
});
