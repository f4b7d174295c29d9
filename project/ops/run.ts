/**
 * Runs a module file: reads, compiles, instantiates with WASI when the module imports it, picks the function, converts arguments and
 * results. In: a path and words of the command line. Out: the result lines; throws UsageError, FileFailure or GuestExit.
 */
import { type Engine, type EngineOptions, type Instance, type Module, NewEngine } from "@waft/engine";
import { readFile } from "node:fs/promises";
import { parseArgument, printResult } from "../commands/arguments.ts";
import { FileFailure, GuestExit, UsageError } from "../commands/failure.ts";

/** How to run. */
export interface RunOptions {
  engine: EngineOptions;
  invoke?: string;
  preopens: { host: string; guest: string }[];
  env: [string, string][];
}

const WASI_MODULES = ["wasi_snapshot_preview1", "wasi_unstable"];

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
  const name = options.invoke ?? defaultExport(file, module);
  const type = functionType(engine, file, module, name);
  const isProgram = module.imports.some((entry) => WASI_MODULES.includes(entry.module));
  if (!isProgram || type.params.length > 0 || options.invoke !== undefined) {
    const values = convertArguments(file, name, type.params, args);
    const instance = await instantiate(file, module, args, options);
    const result = inFile(file, () => instance.call({}, name, ...values));
    const results = type.results.length === 1 ? [result] : type.results.length === 0 ? [] : result as unknown[];
    return results.map((value, i) => printResult(value, type.results[i]!));
  }
  const instance = await instantiate(file, module, args, options);
  inFile(file, () => instance.call({}, name));
  return [];
}

async function instantiate(
  file: string,
  module: Module,
  args: readonly string[],
  options: RunOptions,
): Promise<Instance> {
  const wanted = module.imports.find((entry) => WASI_MODULES.includes(entry.module));
  if (wanted === undefined) return inFile(file, () => module.instantiate({}, {}));
  const { Wasi, WasiExit } = await import("../../engine/wasi/mod.ts");
  const wasi = new Wasi({ args: [file, ...args], env: options.env, preopens: options.preopens });
  const imports = Object.fromEntries(WASI_MODULES.map((name) => [name, wasi.imports]));
  exitClass = WasiExit;
  const instance = inFile(file, () => module.instantiate({}, imports));
  wasi.attach(instance);
  return instance;
}

let exitClass: (new (status: number) => Error & { status: number }) | undefined;

/** Runs `action`; what it throws is a failure of `file`. */
function inFile<T>(file: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (exitClass !== undefined && error instanceof exitClass) throw new GuestExit(error.status);
    throw new FileFailure(file, error);
  }
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

function functionType(_engine: Engine, file: string, module: Module, name: string) {
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
