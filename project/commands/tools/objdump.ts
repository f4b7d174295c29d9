/**
 * `waft objdump FILE`: sections, entries, instructions and bytes of a module or component, in the form of
 * `wasm-objdump`, or with `--json` as one document in the envelope of output_schemas.ts. In: a file that may be
 * damaged. Out: all that precedes its first fault, and then the fault as the error.
 */
import type { Command } from "commander";
import process from "node:process";
import { writeText } from "@waft/engine/internal/host/process";
import { EXIT } from "../../base/diagnostic.ts";
import { FileFailure } from "../../base/failure.ts";
import { programFile } from "../run/program_file.ts";
import { finding, withEnvelope } from "./file_envelope.ts";

interface ObjdumpFlags {
  readonly headers?: boolean;
  readonly details?: boolean;
  readonly disassemble?: boolean;
  readonly fullContents?: boolean;
  readonly section: readonly string[];
  readonly json?: boolean;
}

/** Characters that are written at once. */
const BATCH = 1 << 16;

/** Adds `objdump`. */
export function addCommand(program: Command): void {
  program.command("objdump")
    .description(
      "List the sections of a module or component with their offsets and sizes, their entries and bytes, and the " +
        "instructions of functions. Without options, list the sections. A damaged file is shown up to its fault.",
    )
    // The short form of all objdumps for headers.
    .helpOption("--help", "Show this help")
    .argument("<file>", "Module or component in either form, or oci://HOST/NAME:TAG; - is standard input")
    .option("-h, --headers", "List the sections")
    .option("-x, --details", "List the entries of sections")
    .option("-d, --disassemble", "Disassemble the functions, with the offset and the bytes of each instruction")
    .option("-s, --full-contents", "Print the bytes of sections")
    .option(
      "-j, --section <name>",
      "Show only this section, such as code, or the name of a custom one; repeatable",
      collect,
      [],
    )
    .option("--json", "Print the result as JSON")
    .action(async (file: string, flags: ObjdumpFlags) => {
      const [{ objectBytes }, { dumpObject }, { objdumpLines, objdumpData }] = await Promise.all([
        import("../../ops/inspection/object_bytes.ts"),
        import("../../ops/inspection/object_dump.ts"),
        import("./objdump_text.ts"),
      ]);
      const { details = false, disassemble = false, fullContents: contents = false, section: sections } = flags;
      const headers = flags.headers === true || !(details || disassemble || contents);
      const views = { headers, details, disassemble, contents, sections };
      await withEnvelope("objdump", file, flags.json === true, async () => {
        const dump = dumpObject(await objectBytes((await programFile(file)).file));
        return { dump, listed: flags.json === true ? objdumpData(dump, views) : undefined };
      }, {
        data: ({ listed }) => listed?.data ?? {},
        print: ({ dump }) => printLines(objdumpLines(file, dump, views), file),
        diagnostics: ({ listed }) => {
          const fault = listed?.fault;
          if (fault === undefined) return [];
          process.exitCode = EXIT.failure;
          return [finding("objdump", fault, { ...fault.place, file })];
        },
      });
    });
}

function collect(value: string, list: string[]): string[] {
  return [...list, value];
}

/** Writes the lines, also those before a fault, which is then thrown. */
function printLines(lines: Iterable<string>, file: string): void {
  let text = "";
  try {
    for (const line of lines) {
      text += `${line}\n`;
      if (text.length < BATCH) continue;
      writeText(1, text);
      text = "";
    }
  } catch (error) {
    throw new FileFailure(file, error);
  } finally {
    writeText(1, text);
  }
}
