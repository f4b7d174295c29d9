/**
 * `waft wast FILE|DIR…`: runs test scripts, of modules or of components, and ends with the line
 * `N passed, M failed, K skipped`. The status is 1 if an assertion failed or was skipped, since it was not checked.
 */
import type { Command } from "commander";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import type { EngineOptions } from "@waft/engine";
import { ALL_FEATURE_ROWS } from "@waft/engine/internal/features";
import { optionsOfScript, runScript } from "@waft/engine/internal/script/run_script";
import { ENGINE_OPTION_ROWS, type EngineFlags, engineOptions } from "../settings/engine_options.ts";
import { addOptions } from "../option_rows.ts";
import { FileFailure, oneLine } from "../../base/failure.ts";

/** Adds `wast`. */
export function addCommand(program: Command): void {
  const command = program.command("wast")
    .description("Run WebAssembly test scripts (.wast), or all scripts in directories.")
    .argument("<paths...>", "Scripts and directories")
    .option("-v, --verbose", "Print a line per script")
    .option("--deterministic", "Run deterministic code: NaNs and relaxed instructions of the deterministic profile");
  addOptions(command, ENGINE_OPTION_ROWS).action(
    async (paths: string[], flags: EngineFlags & { verbose?: boolean; deterministic?: boolean }) => {
      const options = { ...engineOptions(flags), ...(flags.deterministic ? { deterministic: true } : {}) };
      const sum = { passed: 0, failed: 0, skipped: 0 };
      for (const file of (await Promise.all(paths.map(scriptsOf))).flat()) {
        try {
          const { passed, failures, skipped, needsDeterministic } = await runFile(file, options);
          for (const { line, message } of failures) process.stdout.write(`${file}:${line}: ${oneLine(message)}\n`);
          const left = [...skipped.values()].reduce((sum, n) => sum + n, 0);
          if (flags.verbose) {
            process.stdout.write(`${file}: ${passed} passed, ${failures.length} failed, ${left} skipped\n`);
          }
          for (const [reason, count] of skipped) {
            process.stdout.write(`${file}: ${count} skipped: ${remedyFor(reason)}\n`);
          }
          if (needsDeterministic) {
            process.stdout.write(`${file}: expects NaNs of deterministic code: --deterministic\n`);
          }
          sum.passed += passed;
          sum.failed += failures.length;
          sum.skipped += left;
        } catch (error) {
          throw new FileFailure(file, error);
        }
      }
      process.stdout.write(`${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped\n`);
      if (sum.failed > 0 || sum.skipped > 0) process.exitCode = 1;
    },
  );
}

/** A reason for which assertions were skipped; the name of a feature, with the option that switches it on. */
function remedyFor(reason: string): string {
  const name = /[^ ]*$/.exec(reason)![0];
  return ALL_FEATURE_ROWS.some((row) => row.name === name && row.compiled) ? `${reason}: --feature ${name}=on` : reason;
}

/** The result of a script: of modules, whose assertions count, or of components, all of whose commands count. */
interface FileResult {
  readonly passed: number;
  readonly failures: readonly { readonly line: number; readonly message: string }[];
  readonly skipped: ReadonlyMap<string, number>;
  readonly needsDeterministic: boolean;
}

async function runFile(file: string, options: EngineOptions): Promise<FileResult> {
  const text = await readFile(file);
  // Every script of components contains this word; other scripts do not load the code that runs components.
  if (!text.includes("component")) return await runScript(text, optionsOfScript(file, options));
  const { isComponentScript, parseComponentScript } = await import("@waft/component/internal/script/commands");
  if (!isComponentScript(text)) return await runScript(text, optionsOfScript(file, options));
  const { runComponentScript } = await import("@waft/component/internal/script/run");
  const { kinds, failures, left } = await runComponentScript(parseComponentScript(text), options);
  const passed = [...kinds.values()].reduce((sum, counts) => sum + counts.passed, 0);
  return { passed, failures, skipped: left, needsDeterministic: false };
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
