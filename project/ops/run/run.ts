/**
 * Runs a module file: reads it, checks function, arguments and imports, compiles, instantiates with WASI and the
 * project's plugins, and calls (run_module.ts). In: a path, words of the command line, and a loaded project. Output:
 * the result lines; throws UsageError, FileFailure, GuestExit, or a ProjectError before the guest starts. Calls are
 * asynchronous if plugins use the network, so that a deadline ends waiting; otherwise they are synchronous, which is
 * faster.
 */
import { type Engine, type Module, NewEngine } from "@waft/engine";
import { Wasi } from "@waft/engine/wasi";
import { FileFailure, UsageError } from "../../base/failure.ts";
import { componentBytes } from "../tools/component_bytes.ts";
import { missingFailure, missingImports, trappingImports } from "./missing_imports.ts";
import { type PlacedShape, readShape } from "./module_shape.ts";
import { readInput } from "../tools/read_input.ts";
import type { LoadedProject } from "../../plugins/load.ts";
import {
  callGuest,
  type ImportStubs,
  inFile,
  planCall,
  programArguments,
  type Runnable,
  startGuest,
  startsThreads,
  WASI,
  wasiFor,
  withStubs,
} from "./run_module.ts";
import type { RunOptions } from "./run_options.ts";

/** Runs `file` and returns the lines to print, one per result. */
export async function runFile(file: string, args: readonly string[], given: RunOptions): Promise<string[]> {
  const bytes = readProgram(file);
  const options = isArtifact(bytes) && file !== "-" ? { ...given, artifact: file } : given;
  const component = await componentIn(file, bytes);
  if (component !== undefined) {
    if (options.record !== undefined) throw new UsageError("--record is for modules; components cannot be recorded");
    const { runComponent } = await import("./run_component.ts");
    return await runComponent(file, component, args, options);
  }
  refuseOptions(bytes, options);
  const { project, record } = options;
  const shape = readShape(bytes);
  const plan = shape === undefined ? undefined : planCall(file, shape, args, options.invoke);
  const stubs = shape === undefined ? {} : checkImports(file, shape, project, options.unknownImports ?? "refuse");
  if (record !== undefined && shape !== undefined && startsThreads(shape)) {
    throw new FileFailure(file, new Error("a program with threads cannot be recorded: others change its memory"));
  }
  const engine = NewEngine(options.engine);
  const module = compileProgram(file, bytes, engine, options);
  const call = plan ?? planCall(file, module, args, options.invoke);
  if (startsThreads(module)) {
    if (project !== undefined && call.name === "_start") {
      throw new FileFailure(file, new Error("a program with threads cannot use plugins"));
    }
    const { runThreaded } = await import("./run_threaded.ts");
    await runThreaded(file, module, call.name, programArguments(file, args), options);
    return [];
  }
  let guest: Runnable | Promise<Runnable>;
  if (record !== undefined) {
    const { startRecorded } = await import("./run_recorded.ts");
    guest = startRecorded(file, bytes, module, args, options, stubs, record);
  } else if (project !== undefined) {
    guest = startWithPlugins(file, bytes, module, args, { ...options, project }, stubs, engine);
  } else guest = startGuest(file, module, args, options, stubs);
  return await callGuest(file, await guest, call, options.failed);
}

function readProgram(file: string): Uint8Array {
  try {
    return readInput(file);
  } catch (error) {
    throw new FileFailure(file, error);
  }
}

/** Throws UsageError for options that a module cannot have. */
function refuseOptions(bytes: Uint8Array, { network, record, project }: RunOptions): void {
  if (network !== undefined) throw new UsageError("--net and --listen are for components; modules have no sockets");
  if (record !== undefined && project !== undefined) {
    throw new UsageError("--record is for programs without plugins; --bare runs the program without the project's");
  }
  if (record !== undefined && isArtifact(bytes)) {
    throw new UsageError("--record takes the module, not an artifact of it");
  }
}

function compileProgram(file: string, bytes: Uint8Array, engine: Engine, options: RunOptions): Module {
  const done = options.progress?.(`compiling ${file}`);
  try {
    return inFile(file, () => isArtifact(bytes) ? loadArtifact(engine, bytes, options) : engine.compile(bytes));
  } finally {
    done?.();
  }
}

/** Instantiates a module with the plugins of the project, which may wait. */
async function startWithPlugins(
  file: string,
  bytes: Uint8Array,
  module: Module,
  args: readonly string[],
  options: RunOptions & { readonly project: LoadedProject },
  stubs: ImportStubs,
  engine: Engine,
): Promise<Runnable> {
  const [{ PluginHost }, { digestBytes }] = await Promise.all([
    import("../../plugins/plugin_host.ts"),
    import("../../base/integrity.ts"),
  ]);
  const programArgs = programArguments(file, args);
  const { project, context, env, artifact } = options;
  const { wasi, imports, search } = wasiFor(module, programArgs, options);
  const host = new PluginHost(project, engine);
  const started = {
    module,
    digest: digestBytes(bytes),
    imports: withStubs(imports, stubs),
    args: programArgs,
    env,
    context,
    ...(artifact === undefined ? {} : { artifact }),
  };
  if (host.waits) {
    const graph = await inFile(file, () => host.startAsync(started));
    wasi?.attach(graph.guest);
    return {
      call: (name, ...values) => graph.callAsync(context, name, ...values),
      close: () => graph.closeAsync(),
      search,
    };
  }
  const graph = inFile(file, () => host.start(started));
  wasi?.attach(graph.guest);
  return { call: (name, ...values) => graph.call(context, name, ...values), close: () => graph.close(), search };
}

/** The bytes of a component in either form; undefined if the file is not a component. */
async function componentIn(file: string, bytes: Uint8Array): Promise<Uint8Array | undefined> {
  return await inFile(file, () => componentBytes(bytes));
}

/** Whether the bytes begin like a compiled artifact. */
function isArtifact(bytes: Uint8Array): boolean {
  return new TextDecoder("latin1").decode(bytes.subarray(0, 8)) === "\0waftbin";
}

function loadArtifact(engine: Engine, bytes: Uint8Array, { allowPrecompiled }: RunOptions): Module {
  if (allowPrecompiled === true) return engine.load(bytes);
  throw new UsageError("this is machine code, which runs unsandboxed: pass --allow-precompiled if you trust it");
}

/**
 * Refuses a module with imports that neither WASI nor a plugin provides, or returns functions that trap in their place.
 * Imports of a namespace that plugins serve are left to the plugin host, which compares types, too.
 */
export function checkImports(
  file: string,
  shape: PlacedShape,
  project: LoadedProject | undefined,
  unknown: "trap" | "refuse",
): ImportStubs {
  const threads = startsThreads(shape);
  const offered = new Map<string, string[]>([[WASI, Object.keys(new Wasi().imports)]]);
  for (const { module, name } of project?.guest ?? []) offered.set(module, [...offered.get(module) ?? [], name]);
  if (threads) offered.set("wasi", ["thread-spawn"]);
  const served = new Set(project?.guest.map(({ module }) => module));
  const missing = missingImports(shape.imports, offered).filter(({ module, kind }) =>
    !served.has(module) && !(threads && kind === "memory")
  );
  if (missing.length === 0) return {};
  const { imports, left } = trappingImports(missing);
  if (unknown === "trap" && left.length === 0) return imports;
  throw new FileFailure(file, missingFailure(file, unknown === "trap" ? left : missing, offered));
}
