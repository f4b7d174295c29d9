/**
 * `waft run [options] FILE [ARG…]`: everything after FILE belongs to the guest. In a project the guest gets its settings and plugins,
 * which are loaded strictly: what differs from the lockfile is refused before anything runs. `--bare` ignores the project.
 */
import type { Command } from "commander";
import process from "node:process";
import { runFile } from "../ops/run.ts";
import { addControlOptions, type ControlFlags, controlledEngine, runContext } from "./control_flags.ts";
import { codeCacheOptions } from "../paths.ts";
import { addEngineOptions } from "./engine_options.ts";
import { UsageError } from "./failure.ts";
import { projectEngineOptions, type SettingsFlags } from "./project_defaults.ts";
import { projectPlugins } from "./project_plugins.ts";

interface RunFlags extends SettingsFlags, ControlFlags {
  invoke?: string;
  dir: string[];
  env: string[];
  project?: string;
  bare?: boolean;
  locked?: boolean;
  offline?: boolean;
  allowPathPlugins?: boolean;
  cache: boolean;
  perfMap?: boolean;
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
    .option("--project <dir>", "The project's directory (default: the nearest one with waft.json)")
    .option("--bare", "Ignore the project: no settings, no plugins")
    .option("--no-cache", "Compile anew: neither use nor fill the cache of compiled modules")
    .option("--perf-map", "Name the guest's functions for perf, in /tmp/perf-PID.map")
    .option("--parallel <n>", "Compiler threads: auto, or a number")
    .option("--locked", "Refuse plugins from paths, which have no fixed source")
    .option("--allow-path-plugins", "Accept plugins from paths in spite of --locked")
    .option("--offline", "Use no network: plugins must be in the cache")
    .passThroughOptions()
    .allowUnknownOption(false);
  addControlOptions(addEngineOptions(command)).action(async (file: string, args: string[], flags: RunFlags) => {
    const project = flags.bare === true ? undefined : await projectPlugins(flags);
    const engine = await projectEngineOptions(flags, flags.project, flags.bare === true);
    const lines = await runFile(file, args, {
      engine: {
        ...controlledEngine(engine, flags),
        ...(flags.cache ? { cache: codeCacheOptions() } : {}),
        perfMap: flags.perfMap === true,
      },
      context: runContext(flags),
      ...(project === undefined ? {} : { project }),
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
