/**
 * `waft replay FILE`: repeats the run in a recording of `waft run --record`, without the files, clocks and streams that
 * the program had. Prints the output of the run and ends with its exit status; with `--json` prints one document in the
 * envelope of output_schemas.ts, and the status says whether the run repeated.
 */
import type { Command } from "commander";
import process from "node:process";
import { writeBytes, writeText } from "@waft/engine/internal/host/process";
import { WaftError } from "@waft/engine/internal/errors";
import { type Diagnostic, EXIT } from "../../base/diagnostic.ts";
import { FileFailure, oneLine } from "../../base/failure.ts";
import { CONTROL_OPTION_ROWS, controlledEngine } from "./control_flags.ts";
import { ENGINE_OPTION_ROWS, type EngineFlags, engineOptions } from "../settings/engine_options.ts";
import { addOptions, type OptionRow } from "../option_rows.ts";

/** The options. A replay does not depend on those that it shares with `run`. */
const REPLAY_OPTION_ROWS: readonly OptionRow[] = [
  { flags: "--coredump <file>", description: "If the guest traps, write its stack, memory and globals to a file" },
  { flags: "--json", description: "Print the end of the run as JSON, without the output of the program" },
  ...CONTROL_OPTION_ROWS.filter(({ flags }) => flags.startsWith("--max-memory ")),
  ...ENGINE_OPTION_ROWS.filter(({ flags }) => !flags.startsWith("--feature ")),
];

interface ReplayFlags extends Omit<EngineFlags, "feature"> {
  coredump?: string;
  json?: boolean;
  maxMemory?: string;
}

/** Adds `replay`. */
export function addCommand(program: Command): void {
  const command = program.command("replay")
    .description("Repeat the run in a recording of `waft run --record`, without its files, clocks and streams.")
    .argument("<file>", "Recording; - is standard input");
  addOptions(command, REPLAY_OPTION_ROWS).action(async (file: string, flags: ReplayFlags) => {
    const [{ failureOf, replayFile }, { coredumpWriter }] = await Promise.all([
      import("../../ops/run/replay_file.ts"),
      import("../../ops/run/write_coredump.ts"),
    ]);
    const { bounds, tier, optimizations } = engineOptions({ ...flags, feature: [] });
    const { maxMemoryPages } = controlledEngine({}, { maxMemory: flags.maxMemory }).limits ?? {};
    const options = {
      ...(maxMemoryPages === undefined ? {} : { maxMemoryPages }),
      ...(bounds === undefined ? {} : { bounds }),
      ...(tier === undefined ? {} : { tier }),
      ...(optimizations === undefined ? {} : { optimizations }),
    };
    try {
      const output = flags.json === true ? () => {} : writeBytes;
      const { run, error } = replayFile(file, options, output);
      const note = (line: string): void => writeText(2, `waft: ${line}\n`);
      if (flags.coredump !== undefined) coredumpWriter(flags.coredump, file, note)(error);
      if (flags.json === true) return writeEnvelope(run, []);
      if (run.results.length > 0) writeText(1, `${run.results.join("\n")}\n`);
      note(
        `replayed ${counted(run.calls, "call")} and ${counted(run.hostCalls, "host call")}; the state is as recorded`,
      );
      const failure = failureOf(file, error);
      if (failure !== undefined) throw failure;
    } catch (failure) {
      const cause = failure instanceof FileFailure ? failure.cause : failure;
      if (flags.json !== true || !(cause instanceof WaftError)) throw failure;
      writeEnvelope(null, [finding(cause, file)]);
      process.exitCode = EXIT.failure;
    }
  });
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function writeEnvelope(data: object | null, diagnostics: readonly Diagnostic[]): void {
  const ok = diagnostics.length === 0;
  writeText(1, `${JSON.stringify({ schemaVersion: 1, command: "replay", ok, data, diagnostics })}\n`);
}

/** The finding for a recording that cannot be read or repeated. */
function finding(error: WaftError, file: string): Diagnostic {
  return {
    code: "replay.rejected",
    severity: "error",
    message: oneLine(`${error.message} ${error.where}`.trim()),
    file,
  };
}
