/** docs/serve.md: its options are those of the command. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waft } from "../cli_project/waft.ts";

Deno.test("docs/serve.md lists options that waft serve has, with their defaults", async () => {
  const page = readFileSync(new URL("../../docs/serve.md", import.meta.url), "utf8");
  const rows = [...page.matchAll(/^\| `(--[a-z-]+)[^|]*\|[^|]*\| `?([^|`]*?)`? *\|$/gm)];
  assert.ok(rows.length >= 9);
  const home = mkdtempSync(join(tmpdir(), "waft-serve-"));
  try {
    const { out } = await waft(["serve", "--help"], home, home);
    const help = out.replace(/\s+/g, " ");
    for (const [, option, value] of rows) {
      assert.ok(help.includes(` ${option} `), option);
      if (option === "--addr" || option === "--concurrent" || option === "--max-memory") {
        assert.ok(help.includes(`default: ${value}`), `${option} ${value}`);
      }
    }
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});
