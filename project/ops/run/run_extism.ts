/**
 * Runs plugins of Extism: a module for its host interface, or a manifest. In: the file's content, at most one word as
 * the input of the function (else standard input), options. Out: the function's output on standard output, log messages
 * on standard error; throws UsageError, FileFailure, GuestExit.
 *
 * Invariant: a plugin gets directories and hosts from the command line alone; a manifest that names others is refused
 * with the options that would grant them.
 */
import process from "node:process";
import { type Context, NewEngine } from "@waft/engine";
import { compilePlugin, type Logger, type Manifest, type Plugin } from "@waft/engine/extism";
import { writeBytes, writeText } from "@waft/engine/internal/host/process";
import { parseModule } from "@waft/engine/internal/text_format";
import { Wasi } from "@waft/engine/wasi";
import { oneLine, UsageError } from "../../base/failure.ts";
import { protectedPaths } from "../../base/protected_paths.ts";
import { narrowedInputs, narrowedStreams } from "../../definitions/wasi_groups.ts";
import type { FileKind } from "../tools/file_kind.ts";
import { readInput } from "../tools/read_input.ts";
import { inFile, INITIALIZE, programArguments } from "./run_module.ts";
import type { RunOptions } from "./run_options.ts";

/** The function that a module's toolchain exports besides those of the plugin. */
const OTHERS: ReadonlySet<string> = new Set([INITIALIZE, "_start", "hs_init", "__wasm_call_ctors"]);

/** Writes log messages to standard error. */
const LOGGER: Logger = {
  trace: log("trace"),
  debug: log("debug"),
  info: log("info"),
  warn: log("warn"),
  error: log("error"),
};

function log(level: string): (message: string) => void {
  return (message) => writeText(2, `${level}: ${message}\n`);
}

/** Calls a function of the plugin. Returns no lines: the output may be any bytes. */
export async function runExtism(
  file: string,
  bytes: Uint8Array,
  kind: FileKind,
  args: readonly string[],
  options: RunOptions,
): Promise<string[]> {
  refuseOptions(options);
  if (args.length > 1) throw new UsageError(`a plugin of Extism takes one input, not ${args.length} arguments`);
  const { network, preopens } = options;
  const hosts = network?.connect ?? [];
  const manifest = kind === "manifest of Extism" ? readManifest(file, bytes) : moduleBytes(kind, bytes);
  if (!(manifest instanceof Uint8Array)) requireGrants(file, manifest, hosts, preopens);
  const engine = NewEngine({ ...options.engine, interruptible: true, limits: limitsOf(manifest, options) });
  const wasi = () =>
    new Wasi({
      ...narrowedInputs(
        { args: programArguments(file, [], options.argv0), env: options.env, preopens },
        options.wasiGroups,
      ),
      ...(preopens.length === 0 ? {} : { protect: protectedPaths(options) }),
      ...narrowedStreams(options.stdio, options.wasiGroups),
    });
  const done = options.progress?.(`compiling ${file}`);
  const compiled = await inFile(file, () => {
    return compilePlugin(manifest, {
      engine,
      wasi,
      allowedHosts: hosts,
      logger: LOGGER,
      ...timeoutOf(options.context),
    });
  }).finally(() => done?.());
  const plugin = await inFile(file, () => compiled.instantiate());
  try {
    const name = await chosenFunction(file, plugin, options.invoke);
    const input = args.length === 1 ? args[0] : process.stdin.isTTY === true ? "" : readInput("-");
    const output = await inFile(file, () => plugin.call(name, input));
    if (output !== null) writeBytes(1, output.bytes());
  } finally {
    plugin.close();
  }
  return [];
}

/** Throws UsageError for options that a plugin cannot have. */
function refuseOptions({ context, network, drafts, record, project, unknownImports }: RunOptions): void {
  const refused: readonly (readonly [boolean, string])[] = [
    [context.fuel !== undefined, "--fuel"],
    [context.processorTime !== undefined, "--processor-time"],
    [record !== undefined, "--record"],
    [unknownImports !== undefined, "--unknown-imports"],
    [(network?.listen ?? []).length > 0, "--listen"],
  ];
  const option = refused.find(([isGiven]) => isGiven)?.[1];
  if (option !== undefined) throw new UsageError(`${option} is not for plugins of Extism`);
  if (drafts !== undefined) {
    throw new UsageError("--config-var, --keyvalue, --keyvalue-redis, --logging and --tls-client are for components");
  }
  if (project !== undefined) {
    throw new UsageError("a plugin of Extism cannot use the project's plugins; --bare runs it without them");
  }
}

function moduleBytes(kind: FileKind, bytes: Uint8Array): Uint8Array {
  return kind === "text of a module" ? parseModule(bytes).bytes : bytes;
}

/** The manifest, with the names of its fields as in JavaScript. Throws FileFailure. */
function readManifest(file: string, bytes: Uint8Array): Manifest {
  return inFile(file, () => JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as Manifest);
}

/** A field of a manifest, in either spelling. */
function field(record: object, name: string, other: string): unknown {
  const fields = record as Record<string, unknown>;
  return fields[name] ?? fields[other] ?? undefined;
}

/** Throws UsageError if the manifest names hosts or directories that the command line does not grant. */
function requireGrants(
  file: string,
  manifest: object,
  hosts: readonly string[],
  preopens: readonly { readonly host: string; readonly guest: string }[],
): void {
  const missing: string[] = [];
  const wanted = field(manifest, "allowedHosts", "allowed_hosts");
  const modules = field(manifest, "wasm", "wasm");
  const addresses = Array.isArray(modules) ? modules.map((entry) => String(Object(entry).url ?? "")) : [];
  const fetched = addresses.filter((url) => url !== "").map((url) => URL.canParse(url) ? new URL(url).hostname : url);
  for (const host of [...(Array.isArray(wanted) ? wanted.map(String) : []), ...fetched]) {
    if (!hosts.includes(host)) missing.push(`--net ${oneLine(host)}`);
  }
  const paths = field(manifest, "allowedPaths", "allowed_paths");
  for (const [guest, host] of Object.entries(Object(paths) as Record<string, unknown>)) {
    if (!preopens.some((given) => given.guest === guest)) missing.push(`--dir ${oneLine(`${host}::${guest}`)}`);
  }
  if (missing.length === 0) return;
  const words = [...new Set(missing)].join(" ");
  throw new UsageError(`the manifest ${oneLine(file)} asks for more than the command line grants: add ${words}`);
}

/** The engine's limits: the smaller one of the command line's and the manifest's maximum of memory. */
function limitsOf(manifest: Manifest | Uint8Array, { engine: { limits = {} } }: RunOptions): typeof limits {
  if (manifest instanceof Uint8Array) return limits;
  const wanted = field(Object(manifest.memory), "maxPages", "max_pages");
  if (typeof wanted !== "number") return limits;
  return { ...limits, maxMemoryPages: Math.min(wanted, limits.maxMemoryPages ?? wanted) };
}

/** The time that is left of the run, as the deadline of the plugin's calls. */
function timeoutOf({ deadline }: Context): { readonly timeoutMs?: number } {
  return deadline instanceof Date ? { timeoutMs: Math.max(1, deadline.getTime() - Date.now()) } : {};
}

/** The function to call: the one that `--invoke` names, or the only one. Throws UsageError. */
async function chosenFunction(file: string, plugin: Plugin, invoke: string | undefined): Promise<string> {
  const names = (await plugin.getExports()).filter(({ kind, name }) => kind === "func" && !OTHERS.has(name))
    .map(({ name }) => name);
  const list = names.map((name) => `\n    ${oneLine(name)}`).join("");
  if (invoke === undefined) {
    if (names.length === 1) return names[0];
    throw new UsageError(`choose a function of the plugin ${oneLine(file)} with --invoke NAME before the file:${list}`);
  }
  if (await plugin.functionExists(invoke)) return invoke;
  throw new UsageError(`${oneLine(file)} exports no function "${oneLine(invoke)}"; it exports:${list || " none"}`);
}
