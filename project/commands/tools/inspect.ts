/**
 * `waft inspect FILE`: facts about a module, component, core dump, recording or artifact, as text, or with `--json` as
 * one document in the envelope of output_schemas.ts, which also holds the finding if the file cannot be read.
 */
import type { Command } from "commander";
import { writeText } from "@waft/engine/internal/host/process";
import { standardOutput } from "../../base/terminal.ts";
import { programFile } from "../run/program_file.ts";
import { withEnvelope } from "./file_envelope.ts";

/** Adds `inspect`. */
export function addCommand(program: Command): void {
  program.command("inspect")
    .description(
      "Show the content of a file: imports, exports, required features and size of a module, the world of a component " +
        "as WIT, the stack of a core dump, the events of a recording, the engine and machine of an artifact.",
    )
    .argument(
      "<file>",
      "Module or component in either form, oci://HOST/NAME:TAG, artifact, .wit file or directory; - is standard input",
    )
    .option("--signed-by <file>", "Public key (PEM) by which a program from a registry must be signed (cosign)")
    .option("--json", "Print the facts as JSON")
    .action(async (file: string, flags: { json?: boolean; signedBy?: string }) => {
      const [{ inspectFile }, { inspectionData, inspectionText }] = await Promise.all([
        import("../../ops/inspection/inspect_file.ts"),
        import("./inspection_text.ts"),
      ]);
      const inspect = async () => inspectFile((await programFile(file, flags.signedBy)).file);
      await withEnvelope("inspect", file, flags.json === true, inspect, {
        data: inspectionData,
        print: (inspection) => {
          writeText(1, inspectionText(inspection, standardOutput()));
        },
      });
    });
}
