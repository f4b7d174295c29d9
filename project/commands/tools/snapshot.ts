/**
 * `waft snapshot MODULE -o OUT`: runs the initialization of a module, and writes a module that begins where it ended.
 * Prints a line about the result to stderr.
 */
import type { Command } from "commander";
import { NewEngine } from "@waft/engine";
import { writeText } from "@waft/engine/internal/host/process";
import { FileFailure } from "../../base/failure.ts";
import { writeOutput } from "../../base/replace_file.ts";
import {
  CONTROL_OPTION_ROWS,
  type ControlFlags,
  controlledEngine,
  runContext,
  withLimitNames,
} from "../run/control_flags.ts";
import { ENGINE_OPTION_ROWS, type EngineFlags } from "../settings/engine_options.ts";
import { addOptions, type OptionRow } from "../option_rows.ts";
import { projectGuest } from "../run/project_guest.ts";
import { PROJECT_OPTION_ROWS, RUN_OPTION_ROWS } from "../run/run_flags.ts";

interface SnapshotFlags extends EngineFlags, ControlFlags {
  readonly output: string;
  readonly init?: string;
  readonly dir: string[];
  readonly env: string[];
  readonly project?: string;
  readonly bare?: boolean;
}

const ROWS: readonly OptionRow[] = [
  {
    flags: "--init <name>",
    description: "Exported function to run (default: wizer.initialize, or only _initialize)",
  },
  ...RUN_OPTION_ROWS.filter(({ flags }) => /^--(dir|env) /.test(flags)),
  ...PROJECT_OPTION_ROWS,
  ...ENGINE_OPTION_ROWS,
  ...CONTROL_OPTION_ROWS,
];

/** Adds `snapshot`. */
export function addCommand(program: Command): void {
  const command = program.command("snapshot")
    .description("Run a module's initialization, and write a module that begins where it has ended.")
    .argument("<file>", "Module, in binary or text form; - is standard input")
    .argument("[args...]", "Arguments of the program, for WASI")
    .requiredOption("-o, --output <file>", "Output file; - is standard output");
  addOptions(command, ROWS).action(async (file: string, args: string[], flags: SnapshotFlags) => {
    const { snapshotModule } = await import("../../ops/tools/snapshot_module.ts");
    const { engine: options, ...guest } = await projectGuest(flags);
    const engine = NewEngine(controlledEngine(options, flags));
    const inputs = { ...guest, context: runContext(flags) };
    let bytes: Uint8Array;
    try {
      bytes = snapshotModule(file, engine, inputs, { init: flags.init, args });
    } catch (error) {
      throw withLimitNames(error, flags);
    }
    try {
      writeOutput(flags.output, bytes);
    } catch (error) {
      throw new FileFailure(flags.output, error);
    }
    if (flags.output !== "-") writeText(2, `waft: ${flags.output}: ${bytes.length} bytes, initialized\n`);
  });
}
