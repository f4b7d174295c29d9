/**
 * `waft types FILE -o DIR`: TypeScript declarations of the imports and exports of a component or of WIT, or of the
 * exports of a module. Prints the paths of the files.
 */
import type { Command } from "commander";
import { WaftError } from "@waft/engine/internal/errors";
import { writeText } from "@waft/engine/internal/host/process";
import { FileFailure, UsageError } from "../../base/failure.ts";

/** Adds `types`. */
export function addCommand(program: Command): void {
  program.command("types")
    .description(
      "Write TypeScript declarations of the imports and exports of a component, or of the exports of a module.",
    )
    .argument("<file>", "Component, core module, .wit file or directory; - is standard input")
    .requiredOption("-o, --output <dir>", "Output folder, which is created if it does not exist")
    .option("--world <name>", "Only this world of the file (default: all)")
    .action(async (file: string, flags: { output: string; world?: string }) => {
      const { declareTypes } = await import("../../ops/tools/declare_types.ts");
      try {
        const paths = await declareTypes(file, flags.output, flags.world);
        writeText(1, `${paths.join("\n")}\n`);
      } catch (error) {
        if (error instanceof UsageError) throw error;
        throw new FileFailure(error instanceof WaftError ? error.place.file ?? file : file, error);
      }
    });
}
