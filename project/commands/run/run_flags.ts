/**
 * The options of `waft run` as rows, and the interpretation of their values. quick_run.ts reads them too, so this file
 * loads nothing heavy.
 */
import type { Context } from "@waft/engine";
import { environment } from "@waft/engine/internal/host/process";
import { CONTROL_OPTION_ROWS, type ControlFlags, runContext } from "./control_flags.ts";
import { ENGINE_OPTION_ROWS, type EngineFlags } from "../settings/engine_options.ts";
import { UsageError } from "../../base/failure.ts";
import type { OptionRow } from "../option_rows.ts";

/** The values of the options. */
export interface RunFlags extends EngineFlags, ControlFlags {
  invoke?: string;
  dir: string[];
  env: string[];
  inheritEnv?: boolean;
  argv0?: string;
  watch?: boolean;
  signedBy?: string;
  preload: string[];
  configVar: string[];
  keyvalue?: boolean;
  keyvalueRedis?: string;
  logging?: boolean;
  tlsClient?: boolean;
  net: string[];
  listen: string[];
  project?: string;
  bare?: boolean;
  locked?: boolean;
  trust?: string;
  offline?: boolean;
  allowPathPlugins?: boolean;
  parallel?: string;
  cache: boolean;
  perfMap?: boolean;
  explainCompile?: boolean;
  unknownImports?: string;
  allowPrecompiled?: boolean;
  coredump?: string;
  record?: string;
}

/** The options that grant the network to components, and sockets to modules. */
export const NETWORK_OPTION_ROWS: readonly [OptionRow, OptionRow] = [
  {
    flags: "--net <host:port>",
    description: "Let a component connect to a host; without a port, to all ports (repeatable)",
    repeatable: true,
  },
  {
    flags: "--listen <address:port>",
    description: "Let a component listen on an address, port 0: any free; a module gets a socket (repeatable)",
    repeatable: true,
  },
];

/** The option that demands a signature. */
export const SIGNED_BY_ROW: OptionRow = {
  flags: "--signed-by <file>",
  description: "Public key (PEM) that must have signed a program from a registry",
};

/** The options that choose the project. */
export const PROJECT_OPTION_ROWS: readonly OptionRow[] = [
  { flags: "--project <dir>", description: "The project's directory (default: the nearest one with waft.json)" },
  { flags: "--bare", description: "Ignore the project: no settings, no plugins" },
];

/** The option that gives a guest the environment of the command. */
export const INHERIT_ENV_OPTION_ROW: OptionRow = {
  flags: "--inherit-env",
  description: "Give the guest all variables of this process; --env replaces some",
};

/** The options that grant draft interfaces of WASI to components. */
export const DRAFT_OPTION_ROWS: readonly OptionRow[] = [
  {
    flags: "--config-var <name=value>",
    description: "Give a component a value of wasi:config (repeatable)",
    repeatable: true,
  },
  { flags: "--keyvalue", description: "Give a component a store in memory (wasi:keyvalue)" },
  {
    flags: "--keyvalue-redis <url>",
    description: "Give a component a store in Redis (wasi:keyvalue)",
  },
  { flags: "--logging", description: "Log a component to standard error (wasi:logging)" },
  { flags: "--tls-client", description: "Let a component use TLS over its own connections (wasi:tls)" },
];

/** The options. */
export const RUN_OPTION_ROWS: readonly OptionRow[] = [
  { flags: "--invoke <name>", description: "Exported function to call; of a component a call: 'greet(\"you\")'" },
  { flags: "--dir <host::guest>", description: "Give the guest a directory (repeatable)", repeatable: true },
  {
    flags: "--env <name=value>",
    description: "Set an environment variable of the guest (repeatable)",
    repeatable: true,
  },
  INHERIT_ENV_OPTION_ROW,
  { flags: "--argv0 <name>", description: "The program's name that the guest sees (default: the file's)" },
  { flags: "--watch", description: "Run the file again when it changes" },
  {
    flags: "--preload <name=file>",
    description: "Module whose exports the program imports from NAME (repeatable)",
    repeatable: true,
  },
  SIGNED_BY_ROW,
  ...NETWORK_OPTION_ROWS,
  ...DRAFT_OPTION_ROWS,
  ...PROJECT_OPTION_ROWS,
  { flags: "--no-cache", description: "Recompile; neither read nor write the cache of compiled modules" },
  { flags: "--unknown-imports <what>", description: "trap: calls of unknown imported functions trap" },
  { flags: "--allow-precompiled", description: "Run artifacts of `waft compile`; their machine code is not sandboxed" },
  { flags: "--perf-map", description: "Write the guest's symbols for perf to /tmp/perf-PID.map" },
  { flags: "--coredump <file>", description: "If the guest traps, write its stack, memory and globals to a file" },
  { flags: "--record <file>", description: "Record everything that enters the guest, for `waft replay`" },
  { flags: "--explain-compile", description: "Print each compilation: compiler, time and size of every function" },
  { flags: "--parallel <n>", description: "Compiler threads: auto, or a number" },
  { flags: "--locked", description: "Refuse plugins from paths, whose sources can change" },
  { flags: "--trust <digest>", description: "Accept the grants with this digest, which `waft trust` shows (for CI)" },
  { flags: "--allow-path-plugins", description: "Accept plugins from paths even with --locked" },
  { flags: "--offline", description: "Do not use the network; plugins must be in the cache" },
  ...ENGINE_OPTION_ROWS,
  ...CONTROL_OPTION_ROWS,
];

/** The guest inputs that the flags specify. The context's timeout starts now. */
export function guestInputs(flags: RunFlags): {
  context: Context;
  preopens: { host: string; guest: string }[];
  env: [string, string][];
  argv0?: string;
} {
  const { argv0 } = flags;
  return { context: runContext(flags), ...guestGrants(flags), ...(argv0 === undefined ? {} : { argv0 }) };
}

/** The directories and variables that the flags give. */
export function guestGrants(flags: { dir: string[]; env: string[]; inheritEnv?: boolean }): {
  preopens: { host: string; guest: string }[];
  env: [string, string][];
} {
  const given = flags.env.map((text) => parseVariable("--env", text));
  const env = flags.inheritEnv === true ? [...new Map([...Object.entries(environment()), ...given])] : given;
  return { preopens: flags.dir.map(parseDir), env };
}

/** The grants of the network. Their user parses them and reports mistakes. */
export function networkOptions({ net, listen }: { net: string[]; listen: string[] }): {
  connect: string[];
  listen: string[];
} {
  return { connect: net, listen };
}

function parseDir(text: string): { host: string; guest: string } {
  const at = text.indexOf("::");
  const host = at < 0 ? text : text.slice(0, at);
  const guest = at < 0 ? text : text.slice(at + 2);
  if (host === "" || guest === "") throw new UsageError(`--dir takes HOST::GUEST, not "${text}"`);
  return { host, guest };
}

/** Parses `NAME=VALUE`, or another `form` like it. Throws UsageError. */
export function parseVariable(flag: string, text: string, form = "NAME=VALUE"): [string, string] {
  const at = text.indexOf("=");
  if (at < 1) throw new UsageError(`${flag} takes ${form}, not "${text}"`);
  return [text.slice(0, at), text.slice(at + 1)];
}
