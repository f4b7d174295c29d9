/**
 * `waft wast FILE|DIR…`: runs test scripts and ends with the line `N passed, M failed, K skipped`.
 */
import type { Command } from "commander";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { optionsOfScript, runScript } from "@waft/engine/internal/script/run_script";
import { ENGINE_OPTION_ROWS, type EngineFlags, engineOptions } from "./engine_options.ts";
import { addOptions } from "./option_rows.ts";
import { FileFailure, oneLine } from "../base/failure.ts";

/** Adds `wast`. */
export function addCommand(program: Command): void {
  const command = program.command("wast")
    .description("Run WebAssembly test scripts (.wast), or all scripts in directories.")
    .argument("<paths...>", "Scripts and directories")
    .option("-v, --verbose", "Print a line per script, and the reasons for skipped assertions");
  addOptions(command, ENGINE_OPTION_ROWS).action(
    async (paths: string[], flags: EngineFlags & { verbose?: boolean }) => {
      const options = engineOptions(flags);
      let passed = 0;
      let failed = 0;
      let skipped = 0;
      for (const file of (await Promise.all(paths.map(scriptsOf))).flat()) {
        try {
          const result = await runScript(await readFile(file), optionsOfScript(file, options));
          for (const { line, message } of result.failures) {
            process.stdout.write(`${file}:${line}: ${oneLine(message)}\n`);
          }
          const left = [...result.skipped.values()].reduce((sum, n) => sum + n, 0);
          if (flags.verbose) {
            process.stdout.write(
              `${file}: ${result.passed} passed, ${result.failures.length} failed, ${left} skipped\n`,
            );
            for (const [reason, count] of result.skipped) process.stdout.write(`    ${count} skipped: ${reason}\n`);
          }
          passed += result.passed;
          failed += result.failures.length;
          skipped += left;
        } catch (error) {
          throw new FileFailure(file, error);
        }
      }
      process.stdout.write(`${passed} passed, ${failed} failed, ${skipped} skipped\n`);
      if (failed > 0) process.exitCode = 1;
    },
  );
}

/** A script, or the scripts below a directory, sorted. */
async function scriptsOf(path: string): Promise<string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    const names = (await readdir(path, { recursive: true })).filter((name) => name.endsWith(".wast"));
    if (names.length === 0) throw new Error("no test scripts (.wast) are below this directory");
    return names.sort().map((name) => join(path, name));
  } catch (error) {
    throw new FileFailure(path, error);
  }
}
