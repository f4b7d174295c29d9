/**
 * Runs a compiled module as a program or as one call: chooses the function, converts arguments and results, and
 * provides WASI when the module imports it. In: a module, words of the command line. Out: the result lines;
 * throws UsageError, FileFailure, GuestExit. module_program.ts adds plugins; this file loads nothing that they need.
 */
import type { Context, Instance, Module } from "@waft/engine";
import { callByBits } from "@waft/engine/internal/call_by_bits";
import { systemName } from "@waft/engine/internal/host/process";
import { Wasi, WasiExit } from "@waft/engine/wasi";
import type { ModuleShape } from "./module_shape.ts";
import { isCalledByBits, parseArgument, parseArgumentBits, printResult, printResultBits } from "./arguments.ts";
import { FileFailure, GuestExit, oneLine, UsageError } from "../../base/failure.ts";
import { protectedPaths, type ProtectedRun } from "../../base/protected_paths.ts";
import { ProjectError } from "../../base/diagnostic.ts";
import { FileSearch } from "./file_hint.ts";
import { narrowedInputs, narrowedStreams, narrowedWasi } from "../../definitions/wasi_groups.ts";

/** The inputs and limits of a guest's run. */
export interface GuestInputs extends ProtectedRun {
  /** The context shared by the start function and the call. */
  readonly context: Context;
  readonly preopens: readonly { host: string; guest: string }[];
  readonly env: readonly (readonly [string, string])[];
  /** The name of the program that the guest sees, if it is not that of its file. */
  readonly argv0?: string;
  /** The groups of WASI that the project allows its guests; undefined: all, or there is no project. */
  readonly wasiGroups: readonly string[] | undefined;
  /** Descriptors of the process for the guest's standard streams, if not the process's own. */
  readonly stdio?: readonly [number, number, number];
  /** Descriptors of the process, of sockets that listen. */
  readonly sockets?: readonly number[];
  /** Called with the error that ends the guest, before the guest is closed. */
  readonly failed?: (error: unknown) => void;
}

/** An instance, or a guest with its plugins. */
export interface Runnable {
  call(name: string, ...args: unknown[]): unknown;
  /** The guest's search for files, if it has no directories. */
  readonly search?: FileSearch | undefined;
  /** The instance, where nothing observes its calls, and their limits: it can be called by bits. */
  readonly direct?: { readonly instance: Instance; readonly context: Context };
  /** Closes the guest; waits until the plugins' `stop` functions have finished. */
  close(): void | Promise<void>;
}

/** The call that a run makes. */
export interface PlannedCall {
  readonly name: string;
  readonly values: readonly unknown[];
  /** Their bits, if the call is made by bits. */
  readonly bits?: readonly bigint[];
  /** Types of the results to print; undefined for a program, which prints for itself. */
  readonly printed: readonly number[] | undefined;
  /** Call `_initialize` first: the module is a WASI reactor, or a library of the same convention. */
  readonly initialize: boolean;
}

/** The export that initializes a WASI reactor. It runs once, before every other export. */
export const INITIALIZE = "_initialize";

/** The number of exports that an error names. */
const MAX_LISTED = 40;

/** The namespace of WASI preview 1. */
export const WASI = "wasi_snapshot_preview1";
/**
 * The predecessor of preview 1. Its numbers and layouts differ under nearly the same names, so it must not be linked
 * with preview 1.
 */
const OLD_WASI = "wasi_unstable";

function importsFrom(module: ModuleShape, namespace: string): boolean {
  return module.imports.some((entry) => entry.module === namespace);
}

/** Whether the program starts threads (wasi-threads). */
export function startsThreads(module: Pick<ModuleShape, "imports">): boolean {
  return module.imports.some((entry) => entry.module === "wasi" && entry.name === "thread-spawn");
}

/** Plans the call: `invoke`, or the module's default function, with the arguments `args`. */
export function planCall(
  file: string,
  module: ModuleShape,
  args: readonly string[],
  invoke: string | undefined,
): PlannedCall {
  const { name, params, results } = requireFunction(file, module, invoke);
  const isCall = !importsFrom(module, WASI) || params.length > 0 || invoke !== undefined;
  return {
    name,
    values: isCall ? convertArguments(file, name, params, args, parseArgument) : [],
    ...(isCall && isCalledByBits([...params, ...results])
      ? { bits: convertArguments(file, name, params, args, parseArgumentBits) }
      : {}),
    printed: isCall ? results : undefined,
    initialize: name !== INITIALIZE && needsInitialization(file, module),
  };
}

/**
 * The function that a run calls: `invoke`, or the module's default one. Throws UsageError if there is none, and
 * FileFailure for a module that this version of WASI cannot run.
 */
export function requireFunction(
  file: string,
  module: ModuleShape,
  invoke: string | undefined,
): { readonly name: string; readonly params: readonly number[]; readonly results: readonly number[] } {
  if (importsFrom(module, OLD_WASI)) {
    throw new FileFailure(
      file,
      new Error(`it needs ${OLD_WASI}, which ${WASI} has replaced; build it again with a current toolchain`),
    );
  }
  const name = invoke ?? defaultExport(file, module);
  return { name, ...functionType(file, module, name) };
}

/** Whether the module exports `_initialize`. Throws FileFailure if that takes parameters or returns results. */
function needsInitialization(file: string, module: ModuleShape): boolean {
  const type = module.functionType(INITIALIZE);
  if (type === undefined) return false;
  if (type.params.length === 0 && type.results.length === 0) return true;
  throw new FileFailure(
    file,
    new Error(`its export "${INITIALIZE}" must have no parameters and no results, because it runs before every call`),
  );
}

/** WASI for a module, when it imports that: its functions as a namespace, to be attached to the instance. */
export function wasiFor(
  module: Module,
  programArgs: readonly string[],
  inputs: GuestInputs,
): { wasi: Wasi | undefined; imports: Record<string, Record<string, unknown>>; search?: FileSearch } {
  if (!importsFrom(module, WASI)) return { wasi: undefined, imports: {} };
  const { env, preopens, stdio, sockets, wasiGroups } = inputs;
  const wasi = new Wasi({
    ...narrowedInputs({ args: programArgs, env, preopens }, wasiGroups),
    ...(preopens.length === 0 ? {} : { protect: protectedPaths(inputs) }),
    ...narrowedStreams(stdio, wasiGroups),
    ...(sockets === undefined ? {} : { sockets }),
  });
  const functions = narrowedWasi(wasi.imports, wasiGroups);
  if (preopens.length > 0) return { wasi, imports: { [WASI]: functions } };
  const search = new FileSearch();
  return { wasi, imports: { [WASI]: search.watch(functions) }, search };
}

/** Stub functions for imports, by namespace and name. */
export type ImportStubs = { readonly [namespace: string]: { readonly [name: string]: unknown } };

/** The arguments of a program: its name, which is that of its file unless `name` is given, and those after it. */
export function programArguments(file: string, args: readonly string[] = [], name?: string): string[] {
  if (name !== undefined) return [name, ...args];
  // Not of node:path, which a quick run does not load.
  const separator = systemName() === "win32" ? /[\\/]/ : /\//;
  return [file.split(separator).at(-1) || file, ...args];
}

/** Instantiates a module that needs no plugins; `stubs` satisfy the imports that have no other provider. */
export function startGuest(
  file: string,
  module: Module,
  args: readonly string[],
  inputs: GuestInputs,
  stubs: ImportStubs = {},
): Runnable {
  const { context } = inputs;
  const { wasi, imports, search } = wasiFor(module, programArguments(file, args, inputs.argv0), inputs);
  const instance = inFile(file, () => module.instantiate(context, withStubs(imports, stubs)));
  wasi?.attach(instance);
  return {
    call: (name, ...values) => instance.call(context, name, ...values),
    direct: { instance, context },
    close: () => instance.close(),
    search,
  };
}

/** Imports with stubs for names that they lack. */
export function withStubs(
  imports: ImportStubs,
  stubs: ImportStubs,
): { [namespace: string]: { [name: string]: unknown } } {
  const all: { [namespace: string]: { [name: string]: unknown } } = Object.create(null);
  for (const namespace of [...Object.keys(stubs), ...Object.keys(imports)]) {
    all[namespace] = { ...stubs[namespace], ...imports[namespace] };
  }
  return all;
}

/**
 * Initializes a reactor, makes the call and ends the guest. A failure of the end is reported only if the call
 * succeeded.
 */
export async function callGuest(
  file: string,
  guest: Runnable,
  call: PlannedCall,
  whenFailed: (error: unknown) => void = () => {},
): Promise<string[]> {
  let lines: string[] = [];
  let failed = true;
  try {
    if (call.initialize) await inFile(file, () => guest.call(INITIALIZE));
    lines = await callPlanned(file, guest, call);
    failed = false;
  } catch (error) {
    guest.search?.explain(error);
    whenFailed(error);
    throw error;
  } finally {
    await end(file, guest, failed);
  }
  return lines;
}

/** Makes the call. Returns the lines to print. */
async function callPlanned(file: string, guest: Runnable, call: PlannedCall): Promise<string[]> {
  const { name, values, bits, printed } = call;
  const { direct } = guest;
  if (bits !== undefined && direct !== undefined) {
    const results = inFile(file, () => callByBits(direct.instance, direct.context, name, bits));
    return (printed ?? []).map((type, i) => printResultBits(results[i], type));
  }
  const result = await inFile(file, () => guest.call(name, ...values));
  const results = printed?.length === 1 ? [result] : printed?.length === 0 ? [] : result as unknown[];
  return (printed ?? []).map((type, i) => printResult(results[i], type));
}

async function end(file: string, guest: Runnable, failed: boolean): Promise<void> {
  try {
    await inFile(file, () => guest.close());
  } catch (error) {
    if (!failed) throw error;
  }
}

/** Runs `action` and attributes its exception or rejection to `file`. */
export function inFile<T>(file: string, action: () => T): T {
  try {
    const result = action();
    return result instanceof Promise ? result.catch((error) => refuse(file, error)) as T : result;
  } catch (error) {
    return refuse(file, error);
  }
}

function refuse(file: string, error: unknown): never {
  if (error instanceof WasiExit) throw new GuestExit(error.status);
  if (error instanceof ProjectError) throw error;
  throw new FileFailure(file, error);
}

function functionsOf(module: ModuleShape): { name: string; type: string }[] {
  return module.exports.filter((entry) => entry.kind === "func");
}

function listOf(functions: { name: string; type: string }[]): string {
  const left = functions.length - MAX_LISTED;
  return functions.slice(0, MAX_LISTED).map(({ name, type }) => `\n    ${oneLine(name)} ${type}`).join("") +
    (left > 0 ? `\n    and ${left} more` : "");
}

function defaultExport(file: string, module: ModuleShape): string {
  const all = functionsOf(module);
  if (all.some(({ name }) => name === "_start")) return "_start";
  const others = all.filter(({ name }) => name !== INITIALIZE);
  const functions = others.length === 0 ? all : others;
  if (functions.length === 1) return functions[0].name;
  if (functions.length === 0) throw new UsageError(`${oneLine(file)} exports no function`);
  throw new UsageError(
    `${oneLine(file)} exports several functions; choose one with --invoke NAME before the file:${listOf(functions)}`,
  );
}

function functionType(file: string, module: ModuleShape, name: string) {
  const type = module.functionType(name);
  if (type === undefined) {
    throw new UsageError(
      `${oneLine(file)} exports no function "${oneLine(name)}"; it exports:${listOf(functionsOf(module)) || " none"}`,
    );
  }
  return type;
}

function convertArguments<T>(
  file: string,
  name: string,
  params: readonly number[],
  args: readonly string[],
  convert: (text: string, type: number) => T,
): T[] {
  if (args.length !== params.length) {
    throw new UsageError(
      `${oneLine(file)}: "${oneLine(name)}" takes ${params.length} argument${
        params.length === 1 ? "" : "s"
      }, not ${args.length}`,
    );
  }
  return params.map((type, i) => {
    try {
      return convert(args[i], type);
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      throw new UsageError(`${oneLine(file)}: argument ${i + 1} of "${oneLine(name)}": ${error.message}`);
    }
  });
}
