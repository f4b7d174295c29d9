/**
 * `waft inspect FILE`: facts about a module, component, core dump or artifact, as text, or with `--json` as one
 * document in the envelope of output_schemas.ts, which also holds the finding if the file cannot be read.
 */
import type { Command } from "commander";
import process from "node:process";
import { writeText } from "@waft/engine/internal/host/process";
import { WaftError } from "@waft/engine/internal/errors";
import { type Diagnostic, EXIT, jsonLine } from "../base/diagnostic.ts";
import { FileFailure, oneLine } from "../base/failure.ts";
import { palette, wantsColor } from "../base/terminal.ts";
import { inputPath } from "../ops/input_path.ts";

/** Adds `inspect`. */
export function addCommand(program: Command): void {
  program.command("inspect")
    .description(
      "Show the content of a file: imports, exports, required features and size of a module, the world of a component " +
        "as WIT, the stack of a core dump, the engine and machine of an artifact.",
    )
    .argument("<file>", "Module or component in either form, artifact, .wit file or directory; - is standard input")
    .option("--json", "Print the facts as JSON")
    .action(async (file: string, flags: { json?: boolean }) => {
      const [{ inspectFile }, { inspectionData, inspectionText }] = await Promise.all([
        import("../ops/inspect_file.ts"),
        import("./inspection_text.ts"),
      ]);
      try {
        const inspection = await inspectFile(inputPath(file));
        const colors = palette(wantsColor(undefined, process.stdout.isTTY, process.env));
        if (flags.json === true) writeEnvelope(inspectionData(inspection), []);
        else writeText(1, inspectionText(inspection, colors));
      } catch (error) {
        const place = error instanceof WaftError ? error.place : {};
        if (flags.json !== true) throw new FileFailure(place.file ?? file, error);
        if (!(error instanceof WaftError) && !isSystemError(error)) throw error;
        writeEnvelope(null, [finding(error, { ...place, file: place.file ?? file })]);
        process.exitCode = EXIT.failure;
      }
    });
}

function writeEnvelope(data: object | null, diagnostics: readonly Diagnostic[]): void {
  const ok = diagnostics.length === 0;
  writeText(1, `${jsonLine({ schemaVersion: 1, command: "inspect", ok, data, diagnostics })}\n`);
}

/** True for a failure of the operating system, such as a missing file. */
function isSystemError(error: unknown): error is Error {
  return error instanceof Error && "code" in error && typeof error.code === "string";
}

/** The finding for a file that cannot be inspected. */
function finding(error: Error, { file, line, column }: { file: string; line?: number; column?: number }): Diagnostic {
  return {
    code: error instanceof WaftError ? "inspect.rejected" : "inspect.unreadable",
    severity: "error",
    message: oneLine(error.message),
    file,
    ...(line === undefined ? {} : { line }),
    ...(column === undefined ? {} : { column }),
  };
}
