/** `deno task interpret`: a line per pass, and status 1 for an assertion that fails. */
import { equal, match } from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("interpret.ts", import.meta.url));

function interpret(expected: number): { status: number | null; stdout: string } {
  const folder = mkdtempSync(join(tmpdir(), "waft-interpret-"));
  try {
    const file = join(folder, "sum.wast");
    writeFileSync(
      file,
      `(module (func (export "f") (param i32) (result i32) (i32.add (local.get 0) (i32.const 1))))
       (assert_return (invoke "f" (i32.const 2)) (i32.const ${expected}))`,
    );
    return spawnSync(process.execPath, ["run", "-A", "--no-check", SCRIPT, file], { encoding: "utf8" });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

Deno.test("interpret runs the script as translated and after each pass", () => {
  const { status, stdout } = interpret(3);
  match(stdout, /^as translated: \d+ passed, 0 failed, 0 skipped\nafter gvn: \d+ passed, 0 failed, /);
  equal(status, 0);
});

Deno.test("interpret reports failed assertions with status 1", () => {
  const { status, stdout } = interpret(4);
  match(stdout, /^as translated: \d+ passed, 1 failed/);
  equal(status, 1);
});
