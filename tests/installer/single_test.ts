/**
 * A single executable of this tree runs modules, threads, components and a project with plugins, and builds
 * applications. In: Bun from npm. The test runs only when WAFT_TEST_INSTALLER is `whole` (`deno task test:installer`).
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { platformName } from "../../project/base/paths.ts";
import { singleSteps } from "../support/single_steps.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const WHOLE = process.env["WAFT_TEST_INSTALLER"] === "whole";

Deno.test({
  name: WHOLE
    ? "a single executable runs and builds programs"
    : "a single executable runs and builds programs (ignored: fetches Bun; run `deno task test:installer`)",
  ignore: !WHOLE,
  fn: async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "waft-single-"));
    try {
      const task = ["run", "-A", "--quiet", join(ROOT, "scripts/package/single.ts"), "--out", folder];
      const { status, stderr } = spawnSync(process.execPath, task, { encoding: "utf8" });
      assert.equal(status, 0, stderr);
      const single = join(folder, `waft-${platformName().replace("/", "-")}`);
      // A read-only executable in a folder without anything beside it.
      const home = join(folder, "home"), work = join(folder, "work"), waft = join(home, "waft");
      for (const path of [home, work]) mkdirSync(path);
      copyFileSync(single, waft);
      chmodSync(waft, 0o555);
      for (const { label, program, args, directory, says, fails } of singleSteps(work, "")) {
        await t.step(label, () => {
          const file = program === "waft" ? waft : join(work, program.built);
          const { status, stdout, stderr } = spawnSync(file, args, {
            cwd: join(work, directory),
            encoding: "utf8",
            env: { PATH: "", HOME: home, WAFT_REGISTRY: "http://127.0.0.1:1", NO_COLOR: "1" },
          });
          assert.match(stdout + stderr, says);
          assert.equal(status, fails ? 2 : 0, stderr);
        });
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
});
