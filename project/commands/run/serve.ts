/**
 * `waft serve FILE`: answers HTTP requests with a component that exports wasi:http/incoming-handler, until SIGINT or
 * SIGTERM; a second signal ends at once. With `--workers`, this process starts others with its own command line, which
 * share the address. The forms of the log are in serve_log.ts.
 */
import type { Command } from "commander";
import process from "node:process";
import { environmentVariable, exitProcess } from "@waft/engine/internal/host/process";
import { codeCacheOptions } from "../../base/paths.ts";
import { absolutePath } from "../../base/system_path.ts";
import { FileFailure, GuestExit, UsageError } from "../../base/failure.ts";
import { lateImports } from "../../base/late_import.ts";
import type { RequestReport } from "@waft/component/internal/http/server";
import type { AdminListener, AdminSource } from "../../ops/run/serve_admin.ts";
import type { Serving } from "../../ops/run/serve_component.ts";
import type { WorkerListener, Workers } from "../../ops/run/serve_workers.ts";
import { CONTROL_OPTION_ROWS, type ControlFlags, controlledEngine, milliseconds, runContext } from "./control_flags.ts";
import { ENGINE_OPTION_ROWS, type EngineFlags } from "../settings/engine_options.ts";
import { addOptions, type OptionRow } from "../option_rows.ts";
import { isReference, programFile } from "./program_file.ts";
import { draftOptions } from "./draft_flags.ts";
import { projectGuest } from "./project_guest.ts";
import {
  DRAFT_OPTION_ROWS,
  INHERIT_ENV_OPTION_ROW,
  NETWORK_OPTION_ROWS,
  networkOptions,
  PROJECT_OPTION_ROWS,
} from "./run_flags.ts";
import { commonLog, jsonLog, type ServeLog, textLog } from "./serve_log.ts";

const late = lateImports(import.meta.url);
const serveWorkers = late<typeof import("../../ops/run/serve_workers.ts")>("../../ops/run/serve_workers.ts");
const serveWorker = late<typeof import("../../ops/run/serve_worker.ts")>("../../ops/run/serve_worker.ts");
const serveAdmin = late<typeof import("../../ops/run/serve_admin.ts")>("../../ops/run/serve_admin.ts");
const serveMetrics = late<typeof import("../../ops/run/serve_metrics.ts")>("../../ops/run/serve_metrics.ts");
const serveComponent = late<typeof import("../../ops/run/serve_component.ts")>("../../ops/run/serve_component.ts");
const systemd = late<typeof import("../../ops/run/systemd.ts")>("../../ops/run/systemd.ts");
const fileWatch = late<typeof import("../../ops/run/file_watch.ts")>("../../ops/run/file_watch.ts");

interface ServeFlags extends EngineFlags, ControlFlags {
  addr?: string;
  json?: boolean;
  accessLog?: boolean;
  concurrent?: string;
  workers?: string;
  watch?: boolean;
  admin?: string;
  tlsCert?: string;
  tlsKey?: string;
  gracefulTimeout?: string;
  dir: string[];
  env: string[];
  inheritEnv?: boolean;
  configVar: string[];
  keyvalue?: boolean;
  logging?: boolean;
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
const MAX_WORKERS = 1024;

const OPTION_ROWS: readonly OptionRow[] = [
  {
    flags: "--addr <address:port>",
    description: `Address to listen on (default: ${DEFAULT_ADDRESS}; port 0: any free)`,
  },
  { flags: "--workers <n>", description: "Worker processes that share the address: auto, or a number" },
  { flags: "--watch", description: "Replace the workers when the file changes (with --workers 1, if not given)" },
  { flags: "--admin <address:port>", description: "Address for /healthz, /readyz and /metrics (Prometheus text)" },
  {
    flags: "--tls-cert <file>",
    description: "Answer HTTPS with this certificate (PEM); it is read again when it changes",
  },
  {
    flags: "--tls-key <file>",
    description: "The private key of the certificate (PEM; default: the file of --tls-cert)",
  },
  {
    flags: "--graceful-timeout <time>",
    description: "Time for requests in progress when the server stops (default: that of --timeout)",
  },
  { flags: "--json", description: "Write a line of JSON to standard output for every event" },
  { flags: "--access-log", description: "Write a line in the Common Log Format to standard output for every request" },
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
  INHERIT_ENV_OPTION_ROW,
  NETWORK_OPTION_ROWS[0],
  ...DRAFT_OPTION_ROWS,
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

/** The values of the options that are parsed before anything is loaded. */
interface ServeSettings {
  readonly file: string;
  readonly flags: ServeFlags;
  readonly address: Address;
  /** The descriptor of a socket that listens, in place of the address. */
  readonly fd: number | undefined;
  readonly admin: Address | undefined;
  readonly concurrent: number;
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  readonly gracefulMs: number;
  readonly log: ServeLog;
}

interface Address {
  readonly host: string;
  readonly port: number;
}

async function serve(file: string, given: ServeFlags): Promise<void> {
  // Installed before anything slow, so that no signal arrives without a handler.
  const signals = watchSignals();
  const workers = await workerCount(given);
  const isWorker = workers !== undefined && !(await import("node:cluster")).default.isPrimary;
  const flags = { ...given, timeout: given.timeout ?? DEFAULT_TIMEOUT_MS };
  // Mistakes in the limits are reported now, not with the first request.
  runContext(flags);
  if (flags.watch === true && isReference(file)) throw new UsageError("--watch needs a file, not a reference");
  const settings: ServeSettings = {
    file,
    flags,
    fd: await inheritedSocket(isWorker),
    address: addressOf("--addr", flags.addr ?? DEFAULT_ADDRESS),
    admin: flags.admin === undefined ? undefined : addressOf("--admin", flags.admin),
    concurrent: wholeNumber("--concurrent", flags.concurrent, 99_999) ?? DEFAULT_CONCURRENT,
    gracefulMs: milliseconds("--graceful-timeout", flags.gracefulTimeout ?? flags.timeout),
    tls: tlsOf(flags),
    log: logOf(flags),
  };
  if (isWorker) await serveAsWorker(settings);
  else if (workers === undefined) await serveAlone(settings, signals);
  else await superviseWorkers(settings, workers, signals);
}

/** The state of the service, for systemd. */
async function notify(state: "ready" | "stopping"): Promise<void> {
  if (environmentVariable("NOTIFY_SOCKET") !== undefined) await (await systemd()).notifySystemd(state);
}

/** The socket that systemd has passed to this process, or to the primary of a worker. */
async function inheritedSocket(isWorker: boolean): Promise<number | undefined> {
  if (environmentVariable("LISTEN_FDS") === undefined) return undefined;
  return (await systemd()).passedSocket(isWorker ? process.ppid : process.pid);
}

/** Serves in this process. */
async function serveAlone(settings: ServeSettings, signals: Signals): Promise<void> {
  const { admin, log, gracefulMs } = settings;
  const metrics = admin === undefined ? undefined : new (await serveMetrics()).ServeMetrics();
  const serving = await startServing(settings, (report) => {
    metrics?.record(report);
    log("request", report);
  });
  let isReady = true;
  const operators = metrics === undefined ? undefined : await listenForOperators(settings, {
    isReady: () => isReady,
    samples: async () => ({
      ...metrics.samples(serving.load, serving.instances),
      ...(await serveMetrics()).buildSamples(),
    }),
  });
  log("listening", { url: serving.url, ...(operators === undefined ? {} : { admin: operators.url }) });
  await notify("ready");
  await signals.first;
  isReady = false;
  const ended = signals.second.then(() => exitProcess(EXIT_SIGNAL));
  log("stopping", { active: serving.load.handling + serving.load.queued });
  const told = notify("stopping");
  await Promise.race([serving.stop(), after(gracefulMs), ended]);
  operators?.close();
  await told;
  log("stopped", {});
  exitProcess(0);
}

/** Starts worker processes, and replaces and stops them on signals. */
async function superviseWorkers(settings: ServeSettings, count: number, signals: Signals): Promise<void> {
  const { file, flags, address, fd, gracefulMs, log } = settings;
  const { Workers, WorkerStartError } = await serveWorkers();
  const listener: WorkerListener = {
    started: (pid) => log("worker-started", { pid }),
    ended: (end) => log("worker-ended", end),
    reloaded: (ok) => log("reloaded", { ok }),
  };
  const addressArguments = (host: string, port: number) => ["--addr", addressText({ host, port })];
  const options = { count, address: fd === undefined ? address : undefined, addressArguments, gracefulMs, listener };
  const workers = await atAddress(address, () => Workers.start(options)).catch((error: unknown) => {
    // The worker has reported the reason.
    throw error instanceof WorkerStartError ? new GuestExit(error.status) : error;
  });
  const operators = await operatorsOf(settings, workers);
  log("listening", { url: workers.url, ...(operators === undefined ? {} : { admin: operators.url }) });
  await notify("ready");
  const reload = (reason: "SIGHUP" | "file") => {
    log("reloading", { reason });
    void workers.reload();
  };
  process.on("SIGHUP", () => reload("SIGHUP"));
  if (flags.watch === true) (await fileWatch()).watchFile(file, () => reload("file"));
  await signals.first;
  log("stopping", { active: workers.active });
  const told = notify("stopping");
  void signals.second.then(() => {
    workers.kill();
    exitProcess(EXIT_SIGNAL);
  });
  await workers.stop();
  operators?.close();
  await told;
  log("stopped", {});
  exitProcess(0);
}

async function operatorsOf(settings: ServeSettings, workers: Workers): Promise<AdminListener | undefined> {
  if (settings.admin === undefined) return undefined;
  try {
    return await listenForOperators(settings, { isReady: () => workers.isReady, samples: () => workers.samples() });
  } catch (error) {
    workers.kill();
    throw error;
  }
}

/** Serves in a worker process; signals of the terminal are the primary's. */
async function serveAsWorker(settings: ServeSettings): Promise<void> {
  const { log } = settings;
  process.on("SIGHUP", () => {});
  // Threads of Deno would take themselves for workers.
  delete process.env["NODE_UNIQUE_ID"];
  const metrics = new (await serveMetrics()).ServeMetrics();
  const serving = await startServing(settings, (report) => {
    metrics.record(report);
    log("request", report);
  });
  await (await serveWorker()).runWorker(serving, () => metrics.samples(serving.load, serving.instances));
  exitProcess(0);
}

/** Compiles the component, and listens. */
async function startServing(
  { file: word, flags, address, fd, concurrent, tls, log }: ServeSettings,
  onRequest: (report: RequestReport) => void,
): Promise<Serving> {
  const { engine, ...guest } = await projectGuest(flags);
  const { serveComponent: start } = await serveComponent();
  const { file, name } = await programFile(word);
  const drafts = draftOptions(flags);
  return await atAddress(address, () =>
    start(file, {
      engine: {
        ...controlledEngine(engine, flags),
        ...(flags.cache ? { cache: { ...codeCacheOptions(), label: absolutePath(file) } } : {}),
      },
      place: fd === undefined ? address : { fd },
      limits: { concurrent, waiting: concurrent * WAITING_FACTOR },
      context: () => runContext(flags),
      network: networkOptions({ net: flags.net, listen: [] }),
      ...guest,
      ...(name === undefined ? {} : { argv0: name }),
      ...(drafts === undefined ? {} : { drafts }),
      ...(tls === undefined ? {} : { tls }),
      onRequest,
      onCertificate: (error) => log("certificate", { ok: error === undefined, error }),
    }));
}

async function listenForOperators({ admin }: ServeSettings, source: AdminSource): Promise<AdminListener | undefined> {
  if (admin === undefined) return undefined;
  const { listenForOperators: start } = await serveAdmin();
  return await atAddress(admin, () => start(admin.host, admin.port, source));
}

/** The status of a process that SIGINT ends. */
const EXIT_SIGNAL = 130;

interface Signals {
  readonly first: Promise<void>;
  readonly second: Promise<void>;
}

/** The first and the second signal that ask the process to end. The handlers stay, so that no signal is lost. */
function watchSignals(): Signals {
  const arrivals: (() => void)[] = [];
  const [first, second] = [0, 1].map(() => new Promise<void>((resolve) => arrivals.push(resolve)));
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => arrivals.shift()?.());
  return { first, second };
}

function after(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function addressText({ host, port }: Address): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Names the address in the error of an action that cannot listen on it. */
async function atAddress<T>(address: Address, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    if (isAddressError(error)) throw new FileFailure(addressText(address), error);
    throw error;
  }
}

function isAddressError(error: unknown): error is Error {
  return error instanceof Error && "code" in error && /^EA|^ENOTFOUND/.test(String(error.code));
}

/** The number of workers; undefined: requests are answered by this process. */
async function workerCount({ workers, watch }: ServeFlags): Promise<number | undefined> {
  if (workers === "auto") return (await import("node:os")).availableParallelism();
  return wholeNumber("--workers", workers, MAX_WORKERS, "auto or ") ?? (watch === true ? 1 : undefined);
}

/** Parses a number from 1 to `most`. Throws UsageError. */
function wholeNumber(flag: string, text: string | undefined, most: number, otherwise = ""): number | undefined {
  if (text === undefined) return undefined;
  const value = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (value < 1 || value > most) {
    throw new UsageError(`${flag} takes ${otherwise}a number from 1 to ${most}, not "${text}"`);
  }
  return value;
}

function addressOf(flag: string, text: string): Address {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) throw new UsageError(`${flag} takes ADDRESS:PORT, not "${text}"`);
  return { host: match[1] ?? match[2], port };
}

function tlsOf({ tlsCert: cert, tlsKey }: ServeFlags): ServeSettings["tls"] {
  if (cert === undefined && tlsKey !== undefined) throw new UsageError("--tls-key needs --tls-cert");
  return cert === undefined ? undefined : { cert, key: tlsKey ?? cert };
}

function logOf({ json, accessLog }: ServeFlags): ServeLog {
  if (json === true && accessLog === true) throw new UsageError("--json and --access-log exclude each other");
  if (json === true) return jsonLog;
  return accessLog === true ? commonLog : textLog;
}
