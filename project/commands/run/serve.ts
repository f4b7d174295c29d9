/**
 * `waft serve FILE`: answers HTTP requests with a component that exports wasi:http/incoming-handler, or with those of a
 * configuration file, until SIGINT or SIGTERM; a second signal ends at once. With `--workers`, this process starts
 * others with its own command line, which share the address. The forms of the log are in serve_log.ts.
 */
import type { Command } from "commander";
import process from "node:process";
import { environmentVariable, exitProcess, writeText } from "@waft/engine/internal/host/process";
import { codeCacheOptions } from "../../base/paths.ts";
import { absolutePath } from "../../base/system_path.ts";
import { FileFailure, GuestExit, oneLine, UsageError } from "../../base/failure.ts";
import { lateImports } from "../../base/late_import.ts";
import type { RequestReport } from "@waft/component/internal/http/server";
import type { FileState } from "../../ops/run/file_watch.ts";
import type { AdminListener, AdminSource } from "../../ops/run/serve_admin.ts";
import type { ServedComponent, Serving } from "../../ops/run/serve_component.ts";
import type { ConfiguredRoute, ServeConfig } from "../../ops/run/serve_config.ts";
import type { Telemetry } from "../../ops/run/telemetry.ts";
import type { TelemetrySettings } from "../../ops/run/telemetry_settings.ts";
import type { Samples } from "../../base/prometheus.ts";
import type { WorkerListener, Workers } from "../../ops/run/serve_workers.ts";
import {
  CONTROL_OPTION_ROWS,
  type ControlFlags,
  controlledEngine,
  milliseconds,
  runContexts,
} from "./control_flags.ts";
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
  SIGNED_BY_ROW,
} from "./run_flags.ts";
import { commonLog, jsonLog, type ServeLog, textLog } from "./serve_log.ts";

const late = lateImports(import.meta.url);
const serveWorkers = late<typeof import("../../ops/run/serve_workers.ts")>("../../ops/run/serve_workers.ts");
const serveWorker = late<typeof import("../../ops/run/serve_worker.ts")>("../../ops/run/serve_worker.ts");
const serveAdmin = late<typeof import("../../ops/run/serve_admin.ts")>("../../ops/run/serve_admin.ts");
const serveMetrics = late<typeof import("../../ops/run/serve_metrics.ts")>("../../ops/run/serve_metrics.ts");
const serveComponent = late<typeof import("../../ops/run/serve_component.ts")>("../../ops/run/serve_component.ts");
const serveConfig = late<typeof import("../../ops/run/serve_config.ts")>("../../ops/run/serve_config.ts");
const telemetrySettings = late<typeof import("../../ops/run/telemetry_settings.ts")>(
  "../../ops/run/telemetry_settings.ts",
);
const telemetry = late<typeof import("../../ops/run/telemetry.ts")>("../../ops/run/telemetry.ts");
const systemd = late<typeof import("../../ops/run/systemd.ts")>("../../ops/run/systemd.ts");
const fileWatch = late<typeof import("../../ops/run/file_watch.ts")>("../../ops/run/file_watch.ts");

interface ServeFlags extends EngineFlags, ControlFlags {
  addr?: string;
  config?: string;
  maxReuse?: string;
  signedBy?: string;
  json?: boolean;
  accessLog?: boolean;
  concurrent?: string;
  workers?: string;
  watch?: boolean;
  debug?: string;
  admin?: string;
  tlsCert?: string;
  tlsKey?: string;
  h2c?: boolean;
  gracefulTimeout?: string;
  dir: string[];
  env: string[];
  inheritEnv?: boolean;
  configVar: string[];
  keyvalue?: boolean;
  keyvalueRedis?: string;
  logging?: boolean;
  tlsClient?: boolean;
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
/** The time in which a collector must take the last traces and metrics of a process. */
const LAST_MESSAGES_MS = 5000;
/** The greatest number that options with a small number take. */
const MAX_COUNT = 99_999;

const OPTION_ROWS: readonly OptionRow[] = [
  {
    flags: "--addr <address:port>",
    description: `Address to listen on (default: ${DEFAULT_ADDRESS}; port 0: any free)`,
  },
  { flags: "--config <file>", description: "Several components by host and path, with limits and grants each (JSON)" },
  { flags: "--workers <n>", description: "Worker processes that share the address: auto, or a number" },
  { flags: "--watch", description: "Replace the workers when a file changes (with --workers 1, if not given)" },
  {
    flags: "--debug <port>",
    description: "Run under the debugger; editors attach to this port of this machine (0: any free)",
  },
  { flags: "--admin <address:port>", description: "Address for /healthz, /readyz and /metrics (Prometheus text)" },
  {
    flags: "--tls-cert <file>",
    description: "Answer HTTPS with this certificate (PEM); it is read again when it changes",
  },
  {
    flags: "--tls-key <file>",
    description: "The private key of the certificate (PEM; default: the file of --tls-cert)",
  },
  { flags: "--h2c", description: "Answer HTTP/2 without TLS, too, to clients that begin with it (prior knowledge)" },
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
  {
    flags: "--max-reuse <n>",
    description: "Requests that an instance of a WASI 0.3 component handles, one after the other (default: 1)",
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
  SIGNED_BY_ROW,
  ...PROJECT_OPTION_ROWS,
  { flags: "--no-cache", description: "Recompile; neither read nor write the cache of compiled modules" },
  ...ENGINE_OPTION_ROWS,
  ...CONTROL_OPTION_ROWS,
];

/** Adds `serve`. */
export function addCommand(program: Command): void {
  const command = program.command("serve")
    .description("Answer HTTP requests with a component (wasi:http). Limits apply to each request.")
    .argument("[file]", "Component, in binary or text form");
  addOptions(command, OPTION_ROWS).action(async (file: string | undefined, flags: ServeFlags) => {
    await serve(file, flags);
  });
}

/** The values of the options that are parsed before anything is loaded. */
interface ServeSettings {
  readonly routes: readonly RouteSettings[];
  /** The files whose changes replace the workers, in the state in which they have been, or will be, read. */
  readonly watched: ReadonlyMap<string, FileState>;
  readonly address: Address;
  /** The descriptor of a socket that listens, in place of the address. */
  readonly fd: number | undefined;
  readonly admin: Address | undefined;
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  readonly h2c: boolean;
  readonly gracefulMs: number;
  readonly log: ServeLog;
  /** Where traces and metrics go; undefined: nowhere. */
  readonly telemetry: TelemetrySettings | undefined;
}

/** A component: the requests that it answers, and its options as those of a command line. */
interface RouteSettings extends Pick<ConfiguredRoute, "name" | "host"> {
  readonly path: string;
  readonly component: string;
  readonly concurrent: number;
  readonly maxReuse: number;
  readonly flags: ServeFlags;
}

interface Address {
  readonly host: string;
  readonly port: number;
}

async function serve(file: string | undefined, given: ServeFlags): Promise<void> {
  // Installed before anything slow, so that no signal arrives without a handler.
  const signals = watchSignals();
  const watched = given.watch === true ? new Map<string, FileState>() : undefined;
  if (watched !== undefined && given.config !== undefined) await addWatched(watched, [given.config]);
  const config = await configOf(file, given);
  const ofFile = serverFlags(given.tlsCert === undefined ? config : { ...config, tls: undefined });
  const flags: ServeFlags = { ...ofFile, ...given, timeout: given.timeout ?? DEFAULT_TIMEOUT_MS };
  const workers = await workerCount(flags);
  if (flags.debug !== undefined) requireDebuggable(flags, workers);
  // A file that no longer asks for workers may have replaced the one that the primary has read.
  const mayBeWorker = workers !== undefined || flags.config !== undefined;
  const isWorker = mayBeWorker && !(await import("node:cluster")).default.isPrimary;
  const routes = config.routes.map((route) => routeSettings(route, flags));
  if (watched !== undefined) await addWatched(watched, routes.map(({ component }) => component));
  const settings: ServeSettings = {
    routes,
    watched: watched ?? new Map(),
    fd: await inheritedSocket(isWorker),
    address: addressOf("--addr", flags.addr ?? DEFAULT_ADDRESS),
    admin: flags.admin === undefined ? undefined : addressOf("--admin", flags.admin),
    gracefulMs: milliseconds("--graceful-timeout", flags.gracefulTimeout ?? flags.timeout ?? DEFAULT_TIMEOUT_MS),
    tls: tlsOf(flags),
    h2c: h2cOf(flags),
    log: logOf(flags),
    telemetry: await telemetryOf(isWorker),
  };
  if (isWorker) await serveAsWorker(settings);
  else if (workers === undefined) await serveAlone(settings, signals);
  else await superviseWorkers(settings, workers, signals);
}

/** Adds files with their states. They must not have been read yet. */
async function addWatched(watched: Map<string, FileState>, paths: readonly string[]): Promise<void> {
  if (paths.some(isReference)) throw new UsageError("--watch needs files, not references");
  const { fileState } = await fileWatch();
  for (const path of paths) watched.set(path, fileState(path));
}

/** Throws UsageError for options that the debugger excludes. */
function requireDebuggable({ config, debug }: ServeFlags, workers: number | undefined): void {
  if (workers !== undefined) throw new UsageError("--debug needs one process: leave out --workers and --watch");
  if (config !== undefined) throw new UsageError("--debug needs one component: name its file in place of --config");
  if (!/^\d{1,5}$/.test(debug!) || Number(debug) > 65_535) {
    throw new UsageError(`--debug takes a port from 0 to 65535, not "${debug}"`);
  }
}

/** The options that give a component what it has; routes of a file have their own. */
const GRANTS = [
  "dir",
  "env",
  "inheritEnv",
  "net",
  "configVar",
  "keyvalue",
  "keyvalueRedis",
  "logging",
  "tlsClient",
] as const;

/** The configuration of the command line: that of its file, or one component for all requests. */
async function configOf(file: string | undefined, flags: ServeFlags): Promise<ServeConfig> {
  if (flags.config === undefined) {
    if (file === undefined) throw new UsageError("missing argument: a component, or --config FILE");
    return { routes: [{ component: file }] };
  }
  if (file !== undefined) throw new UsageError("--config names the components: leave out the file");
  for (const grant of GRANTS) {
    const value = flags[grant];
    if (value === undefined || (Array.isArray(value) && value.length === 0)) continue;
    const option = grant.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    throw new UsageError(`--${option} and --config exclude each other: the file gives each component its grants`);
  }
  return (await serveConfig()).readServeConfig(flags.config);
}

/** The options of the server that a file sets; those of the command line come before them. */
function serverFlags({ addr, admin, workers, gracefulTimeout, tls }: ServeConfig): Partial<ServeFlags> {
  return definedOf({ addr, admin, workers, gracefulTimeout, tlsCert: tls?.cert, tlsKey: tls?.key });
}

/** The properties that have a value. */
function definedOf<T extends object>(values: T): { [Key in keyof T]?: Exclude<T[Key], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [Key in keyof T]?: Exclude<T[Key], undefined>;
  };
}

/** The component of a route. Throws UsageError for mistakes in its limits, so that no request finds them. */
function routeSettings(route: ConfiguredRoute, flags: ServeFlags): RouteSettings {
  const { name, host, path = "/", component } = route;
  const pairs = (values: Readonly<Record<string, string>> = {}) =>
    Object.entries(values).map(([key, value]) => `${key}=${value}`);
  const own: ServeFlags = flags.config === undefined ? flags : {
    ...flags,
    ...definedOf({
      timeout: route.timeout,
      processorTime: route.processorTime,
      fuel: route.fuel?.toString(),
      maxMemory: route.maxMemory,
      signedBy: route.signedBy,
      keyvalue: route.keyvalue,
      keyvalueRedis: route.keyvalueRedis,
      logging: route.logging,
      tlsClient: route.tlsClient,
    }),
    dir: Object.entries(route.dirs ?? {}).map(([guest, host]) => `${host}::${guest}`),
    env: pairs(route.env),
    configVar: pairs(route.configVars),
    net: [...route.net ?? []],
  };
  runContexts(own);
  return {
    ...definedOf({ name, host }),
    path,
    component,
    concurrent: route.concurrent ?? wholeNumber("--concurrent", flags.concurrent, MAX_COUNT) ?? DEFAULT_CONCURRENT,
    maxReuse: route.maxReuse ?? wholeNumber("--max-reuse", flags.maxReuse, MAX_COUNT) ?? 1,
    flags: own,
  };
}

/** The settings of OpenTelemetry, which are loaded only if the environment names a collector. */
async function telemetryOf(isWorker: boolean): Promise<TelemetrySettings | undefined> {
  const names = ["", "_TRACES", "_METRICS"].map((signal) => `OTEL_EXPORTER_OTLP${signal}_ENDPOINT`);
  if (names.every((name) => environmentVariable(name) === undefined)) return undefined;
  // The primary has reported the mistakes.
  return (await telemetrySettings()).telemetrySettings(isWorker ? () => {} : warnTelemetry);
}

function warnTelemetry(message: string): void {
  writeText(2, `waft: telemetry: ${oneLine(message)}\n`);
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
  const isMeasured = admin !== undefined || settings.telemetry !== undefined;
  const metrics = isMeasured ? new (await serveMetrics()).ServeMetrics() : undefined;
  const samples = async () => ({
    ...metrics?.samples(serving.load, serving.instances),
    ...(await serveMetrics()).buildSamples(),
  });
  const sink = await telemetrySink(settings, samples);
  const serving: Serving = await startServing(settings, (report) => {
    metrics?.record(report);
    sink?.record(report);
    log("request", report);
  });
  let isReady = true;
  const operators = await listenForOperators(settings, { isReady: () => isReady, samples });
  const { url, debugPort } = serving;
  log("listening", { url, ...definedOf({ admin: operators?.url, debug: debugPort }) });
  await notify("ready");
  await signals.first;
  isReady = false;
  const ended = signals.second.then(() => exitProcess(EXIT_SIGNAL));
  log("stopping", { active: serving.load.handling + serving.load.queued });
  const told = notify("stopping");
  await Promise.race([serving.stop(), after(gracefulMs), ended]);
  await sink?.close(LAST_MESSAGES_MS);
  operators?.close();
  await told;
  log("stopped", {});
  exitProcess(0);
}

/** Sends traces, and the metrics if there is a source of samples, to the collector; undefined without one. */
async function telemetrySink(
  { telemetry: settings }: ServeSettings,
  samples?: () => Promise<Samples>,
): Promise<Telemetry | undefined> {
  if (settings === undefined) return undefined;
  const { Telemetry } = await telemetry();
  return new Telemetry({ settings, warn: warnTelemetry, ...(samples === undefined ? {} : { samples }) });
}

/** Starts worker processes, and replaces and stops them on signals. */
async function superviseWorkers(settings: ServeSettings, count: number, signals: Signals): Promise<void> {
  const { watched, address, fd, gracefulMs, log } = settings;
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
  const sink = await telemetrySink(settings, () => workers.samples());
  log("listening", { url: workers.url, ...(operators === undefined ? {} : { admin: operators.url }) });
  await notify("ready");
  const reload = (reason: "SIGHUP" | "file") => {
    log("reloading", { reason });
    void workers.reload();
  };
  process.on("SIGHUP", () => reload("SIGHUP"));
  for (const [path, state] of watched) (await fileWatch()).watchFile(path, state, () => reload("file"));
  await signals.first;
  log("stopping", { active: workers.active });
  const told = notify("stopping");
  void signals.second.then(() => {
    workers.kill();
    exitProcess(EXIT_SIGNAL);
  });
  // Counters of workers that end are in the samples of their primary.
  await workers.stop();
  await sink?.close(LAST_MESSAGES_MS);
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
  const sink = await telemetrySink(settings);
  const serving = await startServing(settings, (report) => {
    metrics.record(report);
    sink?.record(report);
    log("request", report);
  });
  await (await serveWorker()).runWorker(serving, () => metrics.samples(serving.load, serving.instances));
  await sink?.close(LAST_MESSAGES_MS);
  exitProcess(0);
}

/** Compiles the components, and listens. */
async function startServing(
  { routes, address, fd, tls, h2c, log, telemetry }: ServeSettings,
  onRequest: (report: RequestReport) => void,
): Promise<Serving> {
  const { serveComponents } = await serveComponent();
  const components: ServedComponent[] = [];
  for (const route of routes) components.push(await servedComponent(route));
  return await atAddress(address, () =>
    serveComponents({
      components,
      place: fd === undefined ? address : { fd },
      h2c,
      ...definedOf({ tls, sampler: telemetry?.traces === undefined ? undefined : telemetry.sampler }),
      onRequest,
      onCertificate: (error) => log("certificate", { ok: error === undefined, error }),
    }));
}

/** The component of a route, with the settings of the project. */
async function servedComponent(
  { name, host, path, component, concurrent, maxReuse, flags }: RouteSettings,
): Promise<ServedComponent> {
  const { engine, ...guest } = await projectGuest(flags);
  const { file, name: argv0 } = await programFile(component, flags.signedBy);
  const drafts = draftOptions(flags);
  return {
    file,
    ...definedOf({ name, host, argv0, drafts }),
    path,
    engine: {
      ...controlledEngine(engine, flags),
      ...(flags.cache ? { cache: { ...codeCacheOptions(), label: absolutePath(file) } } : {}),
    },
    limits: { concurrent, waiting: concurrent * WAITING_FACTOR },
    maxReuse,
    // A program that is stopped would reach its deadline.
    ...(flags.debug === undefined
      ? { context: runContexts(flags) }
      : { context: () => ({}), debugPort: Number(flags.debug) }),
    network: networkOptions({ net: flags.net, listen: [] }),
    ...guest,
  };
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

function h2cOf({ h2c = false, tlsCert }: ServeFlags): boolean {
  if (h2c && tlsCert !== undefined) throw new UsageError("--h2c is for servers without TLS, which offer HTTP/2 anyway");
  return h2c;
}

function logOf({ json, accessLog }: ServeFlags): ServeLog {
  if (json === true && accessLog === true) throw new UsageError("--json and --access-log exclude each other");
  if (json === true) return jsonLog;
  return accessLog === true ? commonLog : textLog;
}
