/** docs/serve.md: its options are those of the command, its configuration file is valid. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readServeConfig } from "../../project/ops/run/serve_config.ts";
import { waft } from "../cli_project/waft.ts";

const PAGE = readFileSync(new URL("../../docs/serve.md", import.meta.url), "utf8");

Deno.test("the configuration file in docs/serve.md is valid, and its paths begin at its folder", () => {
  const home = mkdtempSync(join(tmpdir(), "waft-serve-"));
  try {
    const file = join(home, "serve.json");
    writeFileSync(file, /^```json\n([\s\S]*?)^```$/m.exec(PAGE)?.[1] ?? "");
    const { workers, routes: [site, users, tenants] } = readServeConfig(file);
    assert.deepEqual([workers, site.component, site.name], ["auto", join(home, "site.wasm"), "site.wasm"]);
    assert.match(users.component, /^oci:/);
    assert.deepEqual([users.name, users.dirs], ["users", { "/data": join(home, "users-data") }]);
    assert.deepEqual([tenants.host, tenants.maxReuse], ["*.example.org", 100]);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});

Deno.test("docs/serve.md lists options that waft serve has, with their defaults", async () => {
  const rows = [...PAGE.matchAll(/^\| `(--[a-z0-9-]+)[^|]*\|[^|]*\| `?([^|`]*?)`? *\|$/gm)];
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
