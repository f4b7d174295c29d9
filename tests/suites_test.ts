/**
 * The pinned suites: a folder is accepted only if it contains the pinned commit, and a failed fetch leaves no files.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { digestOf, fetchedFolder, hasSuite, suiteFolder, suiteHint, SUITES } from "./support/suites.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

function task(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["run", "-A", "--no-check", "--quiet", "scripts/testsuite.ts", ...args],
    { cwd: ROOT, encoding: "utf8" },
  );
  return { status, stdout, stderr };
}

for (const suite of SUITES) {
  Deno.test({
    name: `the suite ${suite.name} on this machine is the pinned one${hasSuite(suite) ? "" : ` (${suiteHint(suite)})`}`,
    ignore: !hasSuite(suite),
    fn: () => assert.equal(digestOf(suite, suiteFolder(suite)), suite.digest),
  });
}

Deno.test("a folder with other scripts is not accepted as the suite", () => {
  const folder = mkdtempSync(join(tmpdir(), "suite-"));
  try {
    writeFileSync(join(folder, "i32.wast"), "(module)");
    const { status, stdout } = task("wasm", "--check", folder);
    assert.equal(status, 1);
    assert.match(stdout, /is not commit [0-9a-f]{40}: its digest is [0-9a-f]{64}, not /);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

Deno.test("a failed fetch reports the reason and leaves no files", () => {
  const { status, stderr } = task("wasm", "--from", join(tmpdir(), "no-such-repository"));
  if (existsSync(fetchedFolder(SUITES[0]))) return assert.equal(status, 0); // fetched before: nothing to do
  assert.equal(status, 1);
  assert.match(stderr, /^wasm: git fetch: /m);
  assert.ok(!existsSync(`${fetchedFolder(SUITES[0])}.new`));
});
