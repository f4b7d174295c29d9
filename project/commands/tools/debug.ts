/**
 * `waft debug [options] FILE [ARG…]`: runs a module or component under the debugger, with a prompt in the terminal;
 * `waft debug --dap` serves an editor by the Debug Adapter Protocol on standard input and output, and takes the file,
 * its arguments and options from the editor's launch request, which complete those of the command line.
 */
import { writeText } from "@waft/engine/internal/host/process";
import type { Command } from "commander";
import process from "node:process";
import { UsageError } from "../../base/failure.ts";
import type { Launched } from "../../debug/adapter.ts";
import type { LaunchRequest } from "../../debug/launch_arguments.ts";
import { isRecord } from "../../debug/protocol.ts";
import type { Print } from "../../ops/run/captured_output.ts";
import { addOptions, type OptionRow } from "../option_rows.ts";
import { projectGuest } from "../run/project_guest.ts";
import { PROJECT_OPTION_ROWS } from "../run/run_flags.ts";

interface DebugFlags {
  invoke?: string;
  dir: string[];
  env: string[];
  project?: string;
  bare?: boolean;
  unknownImports?: string;
  dap?: boolean;
}

const OPTION_ROWS: readonly OptionRow[] = [
  { flags: "--invoke <name>", description: "Exported function to call; of a component a call: 'greet(\"you\")'" },
  { flags: "--dir <host::guest>", description: "Give the guest a directory (repeatable)", repeatable: true },
  {
    flags: "--env <name=value>",
    description: "Set an environment variable of the guest (repeatable)",
    repeatable: true,
  },
  ...PROJECT_OPTION_ROWS,
  { flags: "--unknown-imports <what>", description: "trap: calls of unknown imported functions trap" },
  { flags: "--dap", description: "Serve an editor by the Debug Adapter Protocol on standard input and output" },
];

/** Adds `debug`. */
export function addCommand(program: Command): void {
  const command = program.command("debug")
    .description("Run a module or component under the debugger: breakpoints, steps, stacks, variables, memory.")
    .argument("[file]", "Module or component, in binary or text form; with --dap, the editor may name it")
    .argument("[args...]", "Arguments of the function, or of the program")
    .passThroughOptions()
    .allowUnknownOption(false);
  addOptions(command, OPTION_ROWS).action(async (file: string | undefined, args: string[], flags: DebugFlags) => {
    const given = { file, args, flags };
    if (flags.dap === true) {
      const { serveAdapter } = await import("../../debug/adapter.ts");
      process.exitCode = await serveAdapter(
        process.stdin,
        process.stdout,
        { launch: (request, print) => launch(given, request, print) },
      );
      return;
    }
    if (file === undefined) throw new UsageError("waft debug takes a FILE, or --dap to serve an editor");
    const { runTerminal } = await import("../../debug/terminal.ts");
    const launched = await launch(given, {}, (category, text) => writeText(category === "stdout" ? 1 : 2, text));
    process.exitCode = await runTerminal(launched, process.stdin, process.stdout);
  });
}

/** The part of a launch that the command line gives. */
interface Given {
  readonly file: string | undefined;
  readonly args: readonly string[];
  readonly flags: DebugFlags;
}

/** Prepares the program that the command line and a launch request name; the request's values come first. */
async function launch({ file, args, flags }: Given, request: LaunchRequest, print: Print): Promise<Launched> {
  const program = typeof request.program === "string" ? request.program : file;
  if (program === undefined) {
    throw new UsageError("the launch request needs the path of a module or component as its program");
  }
  const invoke = typeof request.invoke === "string" ? request.invoke : flags.invoke;
  const { unknownImports } = flags;
  if (unknownImports !== undefined && unknownImports !== "trap") {
    throw new UsageError(`--unknown-imports takes trap, not "${unknownImports}"`);
  }
  const { prepareProgram } = await import("../../ops/run/debug_program.ts");
  const guest = await projectGuest({
    ...flags,
    dir: [...flags.dir, ...texts(request.dir)],
    env: [...flags.env, ...variables(request.env)],
    feature: [],
    opt: [],
  });
  const { root } = guest;
  const { bare, project } = flags;
  const plugins = async () => {
    if (root === undefined || bare === true) return undefined;
    const { projectPlugins } = await import("../project/project_plugins.ts");
    return await projectPlugins(root, project === undefined ? {} : { project });
  };
  return prepareProgram(program, request.args === undefined ? args : texts(request.args), {
    context: {},
    ...guest,
    plugins,
    ...(invoke === undefined ? {} : { invoke }),
    ...(unknownImports === undefined ? {} : { unknownImports }),
  }, print);
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

/** Environment variables: an object of texts, or a list of `NAME=VALUE`. */
function variables(value: unknown): string[] {
  return isRecord(value) ? Object.entries(value).map(([name, text]) => `${name}=${String(text)}`) : texts(value);
}
