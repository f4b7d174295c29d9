/**
 * `waft parse FILE -o OUT`: text to binary.
 */
import { NewEngine } from "@waft/engine";
import type { Command } from "commander";
import { readFile, writeFile } from "node:fs/promises";
import { FileFailure } from "./failure.ts";

/** Adds `parse`. */
export function addCommand(program: Command): void {
  program.command("parse")
    .description("Translate a module's text to its binary form.")
    .argument("<file>", "Module in text form")
    .requiredOption("-o, --output <file>", "Where to write the binary")
    .action(async (file: string, flags: { output: string }) => {
      let binary: Uint8Array;
      try {
        binary = NewEngine().parse(await readFile(file)).bytes;
      } catch (error) {
        throw new FileFailure(file, error);
      }
      try {
        await writeFile(flags.output, binary);
      } catch (error) {
        throw new FileFailure(flags.output, error);
      }
    });
}
