/**
 * `waft parse FILE -o OUT`: text to binary.
 */
import { NewEngine } from "@waft/engine";
import type { Command } from "commander";
import { readFile, writeFile } from "node:fs/promises";
import { FileFailure } from "../base/failure.ts";
import { inputPath } from "../ops/input_path.ts";

/** Adds `parse`. */
export function addCommand(program: Command): void {
  program.command("parse")
    .description("Translate a module's text to its binary form.")
    .argument("<file>", "Module in text form; - is standard input")
    .requiredOption("-o, --output <file>", "Output file; - is standard output")
    .action(async (file: string, flags: { output: string }) => {
      let binary: Uint8Array;
      try {
        binary = NewEngine().parse(await readFile(inputPath(file))).bytes;
      } catch (error) {
        throw new FileFailure(file, error);
      }
      try {
        await writeFile(flags.output === "-" ? "/dev/stdout" : flags.output, binary);
      } catch (error) {
        throw new FileFailure(flags.output, error);
      }
    });
}
