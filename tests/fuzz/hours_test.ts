/**
 * `deno task fuzz --hours`: every run does at least one turn and continues where the last one stopped.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DRAWN } from "./generate_module.ts";

const SCRIPT = fileURLToPath(new URL("../../scripts/fuzz/fuzz.ts", import.meta.url));

Deno.test("a run for hours resumes from its state file", () => {
  const folder = mkdtempSync(join(tmpdir(), "waft-hours-"));
  const file = join(folder, "state.json");
  try {
    for (let turns = 1; turns <= 2; turns++) {
      const args = ["run", "-A", "--no-check", SCRIPT, "--hours", "0.000001", "--turn", "168", "--jobs", "2"];
      args.push("--state", file, "--out", folder);
      const { status, stdout, stderr } = spawnSync(Deno.execPath(), args, { encoding: "utf8" });
      assert.equal(status, 0, stdout + stderr);
      const state = JSON.parse(readFileSync(file, "utf8"));
      assert.deepEqual([state.turns, state.seed, state.totals.own], [turns, 1, turns * 168]);
      assert.ok(state.totals.modules > state.totals.own, "some cases have two modules");
      // Three of nine features each, in turn.
      assert.deepEqual(state.totals.forced, Object.fromEntries(DRAWN.map((name) => [name, turns * 56])));
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

Deno.test("a number of hours must be positive", () => {
  const { status, stderr } = spawnSync(Deno.execPath(), ["run", "-A", "--no-check", SCRIPT, "--hours", "0"], {
    encoding: "utf8",
  });
  assert.deepEqual([status, stderr], [2, "deno task fuzz: --hours takes a positive number, not '0'; see --help\n"]);
});
