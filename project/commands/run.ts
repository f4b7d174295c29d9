/**
 * `waft run [options] FILE [ARG…]`: everything after FILE belongs to the guest.
 */
import type { Command } from "commander";
import process from "node:process";
import { runFile } from "../ops/run.ts";
import { addEngineOptions, type EngineFlags } from "./engine_options.ts";
import { UsageError } from "./failure.ts";
import { projectEngineOptions } from "./project_defaults.ts";

interface RunFlags extends EngineFlags {
  invoke?: string;
  dir: string[];
  env: string[];
}

function collect(value: string, list: string[]): string[] {
  return [...list, value];
}

/** Adds `run`. */
export function addCommand(program: Command): void {
  const command = program.command("run")
    .description("Compile a module (binary or text) and call one of its functions.")
    .argument("<file>", "Module, in binary or text form")
    .argument("[args...]", "Arguments of the function, or of the program")
    .option("--invoke <name>", "Exported function to call (default: _start, else the only one)")
    .option("--dir <host::guest>", "Give the guest a directory (repeatable)", collect, [])
    .option("--env <name=value>", "Set an environment variable of the guest (repeatable)", collect, [])
    .passThroughOptions()
    .allowUnknownOption(false);
  addEngineOptions(command).action(async (file: string, args: string[], flags: RunFlags) => {
    const lines = await runFile(file, args, {
      engine: await projectEngineOptions(flags),
      ...(flags.invoke === undefined ? {} : { invoke: flags.invoke }),
      preopens: flags.dir.map(parseDir),
      env: flags.env.map(parseEnv),
    });
    if (lines.length > 0) process.stdout.write(lines.join("\n") + "\n");
  });
}

function parseDir(text: string): { host: string; guest: string } {
  const at = text.indexOf("::");
  const host = at < 0 ? text : text.slice(0, at);
  const guest = at < 0 ? text : text.slice(at + 2);
  if (host === "" || guest === "") throw new UsageError(`--dir takes HOST::GUEST, not "${text}"`);
  return { host, guest };
}

function parseEnv(text: string): [string, string] {
  const at = text.indexOf("=");
  if (at < 1) throw new UsageError(`--env takes NAME=VALUE, not "${text}"`);
  return [text.slice(0, at), text.slice(at + 1)];
}
