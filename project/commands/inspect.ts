/**
 * `waft inspect FILE`: the world of a component as WIT, or with `--json` as data.
 */
import type { Command } from "commander";
import { writeText } from "@waft/engine/internal/host/process";
import { WaftError } from "@waft/engine/internal/errors";
import { FileFailure } from "../base/failure.ts";
import { inputPath } from "../ops/input_path.ts";

/** Adds `inspect`. */
export function addCommand(program: Command): void {
  program.command("inspect")
    .description("Print the world of a component as WIT.")
    .argument("<file>", "Component, core module with an embedded world, .wit file or directory; - is standard input")
    .option("--json", "Print the worlds as JSON")
    .action(async (file: string, flags: { json?: boolean }) => {
      const { inspectComponent, inspectionData, inspectionText } = await import("../ops/inspect_component.ts");
      try {
        const inspection = await inspectComponent(inputPath(file));
        writeText(
          1,
          flags.json ? `${JSON.stringify(inspectionData(inspection), null, 2)}\n` : inspectionText(inspection),
        );
      } catch (error) {
        throw new FileFailure(error instanceof WaftError ? error.place.file ?? file : file, error);
      }
    });
}
