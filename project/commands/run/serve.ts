/**
 * `waft serve FILE`: answers HTTP requests with a component that exports wasi:http/incoming-handler, until SIGINT or
 * SIGTERM; a second signal ends at once. With `--json` every event is a line of JSON on standard output.
 */
import type { Command } from "commander";
import process from "node:process";
import { exitProcess, writeText } from "@waft/engine/internal/host/process";
import { codeCacheOptions } from "../../base/paths.ts";
import { absolutePath } from "../../base/system_path.ts";
import { jsonLine } from "../../base/diagnostic.ts";
import { FileFailure, oneLine, UsageError } from "../../base/failure.ts";
import type { RequestReport } from "@waft/component/internal/http/server";
import { CONTROL_OPTION_ROWS, type ControlFlags, controlledEngine, runContext } from "./control_flags.ts";
import { ENGINE_OPTION_ROWS, type EngineFlags } from "../settings/engine_options.ts";
import { addOptions, type OptionRow } from "../option_rows.ts";
import { projectGuest } from "./project_guest.ts";
import { NETWORK_OPTION_ROWS, networkOptions, PROJECT_OPTION_ROWS } from "./run_flags.ts";

interface ServeFlags extends EngineFlags, ControlFlags {
  addr?: string;
  json?: boolean;
  concurrent?: string;
  dir: string[];
  env: string[];
  net: string[];
  project?: string;
  bare?: boolean;
  cache: boolean;
}

const DEFAULT_ADDRESS = "127.0.0.1:8080";
const DEFAULT_TIMEOUT_MS = "30000";
const DEFAULT_CONCURRENT = 64;
/** Requests that wait, for each that is handled. */
const WAITING_FACTOR = 16;

const OPTION_ROWS: readonly OptionRow[] = [
  {
    flags: "--addr <address:port>",
    description: `Address to listen on (default: ${DEFAULT_ADDRESS}; port 0: any free)`,
  },
  { flags: "--json", description: "Write a line of JSON to standard output for every event" },
  {
    flags: "--concurrent <n>",
    description: `Requests handled at once, each by its own instance (default: ${DEFAULT_CONCURRENT})`,
  },
  { flags: "--dir <host::guest>", description: "Give the guest a directory (repeatable)", repeatable: true },
  {
    flags: "--env <name=value>",
    description: "Set an environment variable of the guest (repeatable)",
    repeatable: true,
  },
  NETWORK_OPTION_ROWS[0],
  ...PROJECT_OPTION_ROWS,
  { flags: "--no-cache", description: "Recompile; neither read nor write the cache of compiled modules" },
  ...ENGINE_OPTION_ROWS,
  ...CONTROL_OPTION_ROWS,
];

/** Adds `serve`. */
export function addCommand(program: Command): void {
  const command = program.command("serve")
    .description("Answer HTTP requests with a component (wasi:http). Limits apply to each request.")
    .argument("<file>", "Component, in binary or text form");
  addOptions(command, OPTION_ROWS).action(async (file: string, flags: ServeFlags) => await serve(file, flags));
}

async function serve(file: string, flags: ServeFlags): Promise<void> {
  // Installed before anything slow, so that no signal arrives without a handler.
  const signals = watchSignals();
  const limited = { ...flags, timeout: flags.timeout ?? DEFAULT_TIMEOUT_MS };
  const concurrent = concurrency(flags.concurrent);
  // Mistakes in the limits are reported now, not with the first request.
  runContext(limited);
  const { host, port } = addressOf(flags.addr ?? DEFAULT_ADDRESS);
  const log = flags.json === true ? jsonLog : textLog;
  const { engine, ...guest } = await projectGuest(flags);
  const { serveComponent } = await import("../../ops/run/serve_component.ts");
  const serving = await serveComponent(file, {
    engine: {
      ...controlledEngine(engine, limited),
      ...(flags.cache ? { cache: { ...codeCacheOptions(), label: absolutePath(file) } } : {}),
    },
    host,
    port,
    limits: { concurrent, waiting: concurrent * WAITING_FACTOR },
    context: () => runContext(limited),
    network: networkOptions({ net: flags.net, listen: [] }),
    ...guest,
    onRequest: (report) => log("request", report),
  }).catch((error: unknown) => {
    if (isAddressError(error)) throw new FileFailure(`${host}:${port}`, error);
    throw error;
  });
  log("listening", { url: serving.url });
  await signals.first;
  const ended = signals.second.then(() => exitProcess(EXIT_SIGNAL));
  log("stopping", { active: serving.active });
  await Promise.race([serving.stop(), ended]);
  log("stopped", {});
}

/** The status of a process that SIGINT ends. */
const EXIT_SIGNAL = 130;

/** The first and the second signal that ask the process to end. The handlers stay, so that no signal is lost. */
function watchSignals(): { readonly first: Promise<void>; readonly second: Promise<void> } {
  const arrivals: (() => void)[] = [];
  const [first, second] = [0, 1].map(() => new Promise<void>((resolve) => arrivals.push(resolve)));
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => arrivals.shift()?.());
  return { first, second };
}

function isAddressError(error: unknown): error is Error {
  return error instanceof Error && "code" in error && /^EA|^ENOTFOUND/.test(String(error.code));
}

function concurrency(text: string | undefined): number {
  if (text === undefined) return DEFAULT_CONCURRENT;
  const value = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (value < 1) throw new UsageError(`--concurrent takes a number from 1 to 99999, not "${text}"`);
  return value;
}

function addressOf(text: string): { host: string; port: number } {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) throw new UsageError(`--addr takes ADDRESS:PORT, not "${text}"`);
  return { host: match[1] ?? match[2], port };
}

type Events = {
  listening: { url: string };
  request: RequestReport;
  stopping: { active: number };
  stopped: Record<never, never>;
};

type Log = <Name extends keyof Events>(event: Name, data: Events[Name]) => void;

/** The text of an error, on one line. */
function errorText(error: unknown): string {
  const { message, detail } = error as { message?: unknown; detail?: unknown };
  const text = error instanceof Error ? String(message) : String(error);
  return oneLine(typeof detail === "string" && !text.includes(detail) ? `${text}: ${detail}` : text);
}

const jsonLog: Log = (event, data) => {
  const error = "error" in data && data.error !== undefined ? { error: errorText(data.error) } : {};
  const milliseconds = "milliseconds" in data ? { milliseconds: Math.round(data.milliseconds * 1000) / 1000 } : {};
  writeText(1, `${jsonLine({ time: new Date().toISOString(), event, ...data, ...milliseconds, ...error })}\n`);
};

const textLog: Log = (event, data) => {
  if ("url" in data) writeText(2, `Listening on ${data.url}\n`);
  if ("active" in data) writeText(2, `Stopping; requests in progress: ${data.active}\n`);
  if ("error" in data && data.error !== undefined) {
    const { method, path, status, error } = data;
    writeText(2, `waft: ${event} ${oneLine(`${method} ${path}`)}: status ${status}: ${errorText(error)}\n`);
  }
};
