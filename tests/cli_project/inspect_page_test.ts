/** Follows docs/inspecting.md: runs its commands and compares their output with the next block. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

Deno.test("docs/inspecting.md shows the output of its commands", () => {
  const page = readFileSync(`${ROOT}docs/inspecting.md`, "utf8");
  const folder = mkdtempSync(join(tmpdir(), "waft-inspecting-"));
  const waft = [process.execPath, ...hostArguments(`${ROOT}cli.ts`)].map((word) => `"${word}"`).join(" ");
  const env = { ...process.env, WAFT_HOME: join(folder, "home") };
  try {
    symlinkSync(join(ROOT, "examples"), join(folder, "examples"));
    let [printed, compared] = ["", 0];
    for (const [, language, text] of page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)) {
      if (language === "wat") writeFileSync(join(folder, "divide.wat"), text);
      else if (language === "sh") {
        printed =
          spawnSync("sh", ["-c", `waft() { ${waft} "$@"; }; ${text}`], { cwd: folder, encoding: "utf8", env }).stdout;
      } else {
        assert.equal(printed, text);
        compared++;
      }
    }
    assert.equal(compared, 2);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
