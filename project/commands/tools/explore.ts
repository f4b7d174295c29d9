/**
 * `waft explore FILE`: writes a page that shows how functions are compiled. In: a module or a component. Out: an HTML
 * file, written completely or not at all.
 */
import type { Command } from "commander";
import { basename } from "node:path";
import { writeText } from "@waft/engine/internal/host/process";
import { FileFailure, oneLine, UsageError } from "../../base/failure.ts";

interface ExploreFlags {
  readonly output?: string;
  readonly function: string[];
  readonly module?: string;
  readonly sources?: string;
}

/** Adds `explore`. */
export function addCommand(program: Command): void {
  program.command("explore")
    .description(
      "Write a page that shows how each function is compiled: its text, the IR after each pass, and the machine code " +
        "of each processor and tier, line by line beside each other and beside the source.",
    )
    .argument("<file>", "Module or component in either form; - is standard input")
    .option("-o, --output <page>", "Output file (default: the name of the file with .html); - is standard output")
    .option("--function <name>", "Show only this function, by index or part of its name; repeatable", collect, [])
    .option("--module <number>", "Core module of a component")
    .option("--sources <directory>", "Directory of the source files, which the page then contains")
    .action(async (file: string, flags: ExploreFlags) => {
      const [{ explorePage }, { replaceFile }, { compileProgress }] = await Promise.all([
        import("../../ops/tools/explore.ts"),
        import("../../base/replace_file.ts"),
        import("./compile_progress.ts"),
      ]);
      const module = flags.module === undefined ? undefined : moduleNumber(flags.module);
      const done = (await compileProgress()).start(`compiling ${file}`);
      const page = await explorePage(file, { functions: flags.function, module, sources: flags.sources })
        .catch((error: unknown) => {
          throw error instanceof UsageError ? error : new FileFailure(file, error);
        }).finally(done);
      const output = flags.output ?? `${basename(file).replace(/\.\w+$/, "")}.html`;
      if (output === "-") return writeText(1, page.html);
      replaceFile(output, page.html);
      const part = page.included === page.functions ? "" : `${page.included} of `;
      writeText(1, `${oneLine(output)}: ${part}${page.functions} functions\n`);
    });
}

function collect(value: string, list: string[]): string[] {
  return [...list, value];
}

function moduleNumber(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new UsageError(`--module ${JSON.stringify(text)} is not a number`);
}
