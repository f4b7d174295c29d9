/**
 * `waft parse FILE -o OUT`: text to binary.
 */
import { NewEngine } from "@waft/engine";
import { writeBytes } from "@waft/engine/internal/host/process";
import type { Command } from "commander";
import { FileFailure } from "../../base/failure.ts";
import { writeOutput } from "../../base/replace_file.ts";
import { readInput } from "../../ops/tools/read_input.ts";

/** The binary form of a module or component. */
async function parse(source: Uint8Array): Promise<Uint8Array> {
  const { componentBytes } = await import("../../ops/tools/component_bytes.ts");
  return await componentBytes(source) ?? NewEngine().parse(source).bytes;
}

/** Adds `parse`. */
export function addCommand(program: Command): void {
  program.command("parse")
    .description("Translate the text of a module or component to its binary form.")
    .argument("<file>", "Module or component in text form; - is standard input")
    .requiredOption("-o, --output <file>", "Output file; - is standard output")
    .action(async (file: string, flags: { output: string }) => {
      let binary: Uint8Array;
      try {
        binary = await parse(readInput(file));
      } catch (error) {
        throw new FileFailure(file, error);
      }
      try {
        if (flags.output === "-") writeBytes(1, binary);
        else writeOutput(flags.output, binary);
      } catch (error) {
        throw new FileFailure(flags.output, error);
      }
    });
}
