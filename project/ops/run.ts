/**
 * Runs a module file: reads, compiles, instantiates with WASI when the module imports it and with the project's plugins when there are
 * any, picks the function, converts arguments and results. Where plugins use the network the calls are asynchronous, so that a deadline ends
 * waiting, too; elsewhere synchronous, which is faster. In: a path and words of the command line, and what loadProject gave. Out: the
 * result lines; throws UsageError, FileFailure, GuestExit, or a ProjectError before the guest starts.
 */
import { type Context, type Engine, type EngineOptions, type Instance, type Module, NewEngine } from "@waft/engine";
import { readFile } from "node:fs/promises";
import { parseArgument, printResult } from "../commands/arguments.ts";
import { FileFailure, GuestExit, UsageError } from "../commands/failure.ts";
import { ProjectError } from "../diagnostic.ts";
import type { Wasi } from "@waft/engine/wasi";
import { narrowedInputs, narrowedWasi } from "../wasi_groups.ts";
import type { LoadedProject } from "./load.ts";

/** How to run. */
export interface RunOptions {
  engine: EngineOptions;
  /** What the start function and the call are subject to, together. */
  context: Context;
  invoke?: string;
  preopens: { host: string; guest: string }[];
  env: [string, string][];
  /** A project with plugins; without it nothing of the plugin host is loaded. */
  project?: LoadedProject;
}

/** An instance, or a guest with its plugins. */
interface Runnable {
  call(name: string, ...args: unknown[]): unknown;
  /** Waits for what the plugins' `stop` functions wait for. */
  close(): void | Promise<void>;
}

const WASI = "wasi_snapshot_preview1";
/** What preview 1 replaced: other numbers and layouts under nearly the same names, so it must not be linked with preview 1. */
const OLD_WASI = "wasi_unstable";

/** Runs `file` and returns what to print, one line per result. */
export async function runFile(file: string, args: readonly string[], options: RunOptions): Promise<string[]> {
  let bytes: Uint8Array;
  try {
    bytes = await readFile(file);
  } catch (error) {
    throw new FileFailure(file, error);
  }
  const engine = NewEngine(options.engine);
  const module = inFile(file, () => engine.compile(bytes));
  if (module.imports.some((entry) => entry.module === OLD_WASI)) {
    throw new FileFailure(
      file,
      new Error(`it needs ${OLD_WASI}, which ${WASI} has replaced; build it again with a current toolchain`),
    );
  }
  const name = options.invoke ?? defaultExport(file, module);
  const type = functionType(file, module, name);
  const isProgram = module.imports.some((entry) => entry.module === WASI);
  const isCall = !isProgram || type.params.length > 0 || options.invoke !== undefined;
  const values = isCall ? convertArguments(file, name, type.params, args) : [];
  if (module.imports.some((entry) => entry.module === "wasi" && entry.name === "thread-spawn")) {
    await runWithThreads(file, module, name, [file, ...args], options);
    return [];
  }
  const guest = await instantiate(file, { engine, module, bytes }, args, options);
  let lines: string[] = [];
  let failed = true;
  try {
    const result = await inFile(file, () => guest.call(name, ...values));
    const results = type.results.length === 1 ? [result] : type.results.length === 0 ? [] : result as unknown[];
    if (isCall) lines = results.map((value, i) => printResult(value, type.results[i]!));
    failed = false;
  } finally {
    await end(file, guest, failed);
  }
  return lines;
}

/** Runs a program that starts threads (wasi-threads), every one of them in a Worker. */
async function runWithThreads(
  file: string,
  module: Module,
  name: string,
  args: string[],
  { project, context, env, preopens }: RunOptions,
): Promise<void> {
  if (name !== "_start") throw new UsageError(`${file} starts threads: only its _start can be run`);
  if (project !== undefined) throw new FileFailure(file, new Error("a program with threads cannot use plugins"));
  const { runThreads } = await import("@waft/engine/wasi/threads");
  let status: number;
  try {
    status = await runThreads(module, { args, env, preopens }, context);
  } catch (error) {
    throw new FileFailure(file, error);
  }
  if (status !== 0) throw new GuestExit(status);
}

/** Ends the guest and its plugins; a failure in that is only told when nothing failed before. */
async function end(file: string, guest: Runnable, failed: boolean): Promise<void> {
  try {
    await inFile(file, () => guest.close());
  } catch (error) {
    if (!failed) throw error;
  }
}

async function instantiate(
  file: string,
  { engine, module, bytes }: { engine: Engine; module: Module; bytes: Uint8Array },
  args: readonly string[],
  options: RunOptions,
): Promise<Runnable> {
  const wantsWasi = module.imports.some((entry) => entry.module === WASI);
  const programArgs = [file, ...args];
  let wasi: Wasi | undefined;
  let wasiImports: Wasi["imports"] = {};
  if (wantsWasi) {
    const { Wasi, WasiExit } = await import("@waft/engine/wasi");
    const groups = options.project?.wasi;
    wasi = new Wasi(narrowedInputs({ args: programArgs, env: options.env, preopens: options.preopens }, groups));
    wasiImports = narrowedWasi(wasi.imports, groups);
    exitClass = WasiExit;
  }
  const imports: Record<string, Record<string, unknown>> = wasi === undefined ? {} : { [WASI]: wasiImports };
  const { context } = options;
  if (options.project === undefined) {
    const instance: Instance = inFile(file, () => module.instantiate(context, imports));
    wasi?.attach(instance);
    return { call: (name, ...values) => instance.call(context, name, ...values), close: () => instance.close() };
  }
  const [{ PluginHost }, { digestBytes }] = await Promise.all([
    import("../plugin_host.ts"),
    import("../integrity.ts"),
  ]);
  const host = new PluginHost(options.project, engine);
  const started = { module, digest: digestBytes(bytes), imports, args: programArgs, env: options.env, context };
  if (host.waits) {
    const graph = await inFile(file, () => host.startAsync(started));
    wasi?.attach(graph.guest);
    return { call: (name, ...values) => graph.callAsync(context, name, ...values), close: () => graph.closeAsync() };
  }
  const graph = inFile(file, () => host.start(started));
  wasi?.attach(graph.guest);
  return { call: (name, ...values) => graph.call(context, name, ...values), close: () => graph.close() };
}

let exitClass: (new (status: number) => Error & { status: number }) | undefined;

/** Runs `action`; what it throws, or rejects with, is a failure of `file`. */
function inFile<T>(file: string, action: () => T): T {
  try {
    const result = action();
    return result instanceof Promise ? result.catch((error) => refuse(file, error)) as T : result;
  } catch (error) {
    return refuse(file, error);
  }
}

function refuse(file: string, error: unknown): never {
  if (exitClass !== undefined && error instanceof exitClass) throw new GuestExit(error.status);
  if (error instanceof ProjectError) throw error;
  throw new FileFailure(file, error);
}

function functionsOf(module: Module): { name: string; type: string }[] {
  return module.exports.filter((entry) => entry.kind === "func");
}

function listOf(functions: { name: string; type: string }[]): string {
  return functions.map(({ name, type }) => `\n    ${name} ${type}`).join("");
}

function defaultExport(file: string, module: Module): string {
  const functions = functionsOf(module);
  if (functions.some(({ name }) => name === "_start")) return "_start";
  if (functions.length === 1) return functions[0]!.name;
  if (functions.length === 0) throw new UsageError(`${file} exports no function`);
  throw new UsageError(`${file} exports several functions; choose one with --invoke NAME:${listOf(functions)}`);
}

function functionType(file: string, module: Module, name: string) {
  const type = module.functionType(name);
  if (type === undefined) {
    throw new UsageError(`${file} exports no function "${name}"; it exports:${listOf(functionsOf(module)) || " none"}`);
  }
  return type;
}

function convertArguments(file: string, name: string, params: readonly number[], args: readonly string[]): unknown[] {
  if (args.length !== params.length) {
    throw new UsageError(
      `${file}: "${name}" takes ${params.length} argument${params.length === 1 ? "" : "s"}, not ${args.length}`,
    );
  }
  return params.map((type, i) => parseArgument(args[i]!, type));
}
