/**
 * `waft print FILE`: binary (or text) to text on stdout, or to a file with `-o`.
 */
import { NewEngine } from "@waft/engine";
import type { Command } from "commander";
import { readFile, writeFile } from "node:fs/promises";
import { writeText } from "@waft/engine/internal/host/process";
import { printModule } from "@waft/engine/internal/text/print";
import { FileFailure } from "../base/failure.ts";
import { inputPath } from "../ops/input_path.ts";

/** Adds `print`. */
export function addCommand(program: Command): void {
  program.command("print")
    .description("Print a module as text.")
    .argument("<file>", "Module, in binary or text form; - is standard input")
    .option("-o, --output <file>", "Write to a file instead of stdout")
    .action(async (file: string, flags: { output?: string }) => {
      let text: string;
      try {
        text = printModule(NewEngine().parse(await readFile(inputPath(file))));
      } catch (error) {
        throw new FileFailure(file, error);
      }
      if (flags.output === undefined || flags.output === "-") {
        writeText(1, text);
        return;
      }
      try {
        await writeFile(flags.output, text);
      } catch (error) {
        throw new FileFailure(flags.output, error);
      }
    });
}
