/**
 * Runs the commands of a documentation page. In: the page's name in docs/, and the file name for each `wat` block in
 * order. Out: a comparison of each `text` block with the output of the `sh` block before it. Tests only.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Follows a page; commands that no `text` block follows are not run. Returns the number of comparisons. */
export function followPage(name: string, modules: readonly string[]): number {
  const page = readFileSync(`${ROOT}docs/${name}`, "utf8");
  const folder = mkdtempSync(join(tmpdir(), "waft-page-"));
  const waft = [process.execPath, ...hostArguments(`${ROOT}cli.ts`)].map((word) => `"${word}"`).join(" ");
  const env = { ...process.env, WAFT_HOME: join(folder, "home") };
  const files = [...modules];
  try {
    symlinkSync(join(ROOT, "examples"), join(folder, "examples"));
    let [commands, compared] = ["", 0];
    for (const [, language, text = ""] of page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)) {
      if (language === "wat") {
        writeFileSync(join(folder, files.shift() ?? assert.fail("a module without a name")), text);
      } else if (language === "sh") commands = text;
      else if (language === "text") {
        const script = `waft() { ${waft} "$@"; }; ${commands}`;
        const { stdout } = spawnSync("sh", ["-c", script], { cwd: folder, encoding: "utf8", env });
        // The formatter of the pages removes empty lines at the beginning of a block.
        assert.equal(stdout.replace(/^\n+/, ""), text);
        compared++;
      }
    }
    return compared;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
