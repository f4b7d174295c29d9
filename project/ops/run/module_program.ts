/**
 * Runs modules and artifacts: checks function, arguments and imports, compiles, and hands the module on in the one of
 * four ways that its imports and the options ask for. In: a source, words of the command line, options. Out: the lines
 * to print; throws UsageError, FileFailure, GuestExit, or a ProjectError before the guest starts. Invariant: options
 * and imports that cannot be satisfied are refused before anything is compiled, except for artifacts.
 */
import { type Engine, type Module, NewEngine } from "@waft/engine";
import type { ListeningSocket } from "@waft/engine/internal/wasi/listening_socket";
import { FileFailure, UsageError } from "../../base/failure.ts";
import { checkImports } from "./missing_imports.ts";
import type { ModuleShape, PlacedShape } from "./module_shape.ts";
import { callGuest, type GuestInputs, inFile, planCall, startGuest, startsThreads, WASI } from "./run_module.ts";
import type { ModuleRunner, RunOptions } from "./run_options.ts";
import { useMapBeside } from "./source_map_beside.ts";

/** A module before it is compiled or loaded. */
interface ModuleSource {
  readonly bytes: Uint8Array;
  /** Undefined for an artifact, and for an invalid module, whose error the compiler reports. */
  readonly shape: PlacedShape | undefined;
  readonly isArtifact: boolean;
  readonly compile: (engine: Engine, options: RunOptions) => Module;
}

/** The source of a module in binary or text form. */
export function moduleSource(bytes: Uint8Array, shape: PlacedShape | undefined): ModuleSource {
  return { bytes, shape, isArtifact: false, compile: (engine) => engine.compile(bytes) };
}

/** The source of an artifact, which is loaded only if the options allow that. */
export function artifactSource(bytes: Uint8Array): ModuleSource {
  return {
    bytes,
    shape: undefined,
    isArtifact: true,
    compile: (engine, { allowPrecompiled }) => {
      if (allowPrecompiled === true) return engine.load(bytes);
      throw new UsageError("this is machine code, which runs unsandboxed: pass --allow-precompiled if you trust it");
    },
  };
}

/** The ways to run a compiled module. What only some need is loaded with the way. */
const RUNNERS = {
  alone: () =>
    Promise.resolve<ModuleRunner>(({ file, module, args, call, stubs }, options) =>
      callGuest(file, startGuest(file, module, args, options, stubs), call, options.failed)
    ),
  preloaded: async () => (await import("./run_preloaded.ts")).runPreloaded,
  recorded: async () => (await import("./run_recorded.ts")).runRecorded,
  threads: async () => (await import("./run_threaded.ts")).runThreadedModule,
  withPlugins: async () => (await import("./module_with_plugins.ts")).runModuleWithPlugins,
} as const satisfies Record<string, () => Promise<ModuleRunner>>;

/** Runs a module, and returns the lines to print, one per result. */
export async function runModule(
  file: string,
  source: ModuleSource,
  args: readonly string[],
  given: RunOptions,
): Promise<string[]> {
  refuseOptions(source, given);
  const { bytes, shape } = source;
  const options = shape === undefined ? given : await withUserPlugins(shape, given);
  const plan = shape === undefined ? undefined : planCall(file, shape, args, options.invoke);
  const preloads = options.preloads?.map(({ name }) => name);
  const stubs = shape === undefined
    ? {}
    : checkImports(file, shape, { plugins: options.project?.guest, preloads, unknown: options.unknownImports });
  const planned = shape === undefined ? undefined : chooseWay(file, shape, options);
  const engine = NewEngine(options.engine);
  const module = compileProgram(file, source, engine, options);
  useMapBeside(file, module);
  const call = plan ?? planCall(file, module, args, options.invoke);
  const ready = shape === undefined ? await withUserPlugins(module, options) : options;
  const run = await RUNNERS[planned ?? chooseWay(file, module, ready)]();
  const listens = await listeningSockets(ready.network?.listen ?? []);
  try {
    return await run({ file, bytes, module, engine, args, call, stubs }, { ...ready, ...listens?.inputs });
  } finally {
    listens?.close();
  }
}

/** The options with the user's plugins that serve imports of the module which nothing else provides. */
async function withUserPlugins({ imports }: Pick<ModuleShape, "imports">, options: RunOptions): Promise<RunOptions> {
  const names = imports.map(({ module }) => module).filter((name) => name !== WASI);
  const project = names.length === 0 ? undefined : await options.userPlugins?.(names);
  return project === undefined ? options : { ...options, project };
}

/** The sockets that a module gets, and how they are closed; undefined for none. Throws UsageError. */
async function listeningSockets(
  addresses: readonly string[],
): Promise<{ readonly inputs: Pick<GuestInputs, "sockets">; close(): void } | undefined> {
  if (addresses.length === 0) return undefined;
  const { listenTcp } = await import("@waft/engine/internal/wasi/listening_socket");
  const sockets: ListeningSocket[] = [];
  try {
    for (const address of addresses) {
      // The guest has no function that says which port the system has chosen.
      if (/:0+$/.test(address)) {
        throw new Error(`--listen ${address}: a module cannot use a port that it does not know`);
      }
      sockets.push(listenTcp(address));
    }
  } catch (error) {
    for (const socket of sockets) socket.close();
    throw new UsageError((error as Error).message);
  }
  return {
    inputs: { sockets: sockets.map(({ descriptor }) => descriptor) },
    close: () => sockets.forEach((socket) => socket.close()),
  };
}

/** Throws UsageError for options that a module cannot have. */
function refuseOptions({ isArtifact }: ModuleSource, { network, drafts, record, project, preloads }: RunOptions): void {
  if (drafts !== undefined) {
    throw new UsageError("--config-var, --keyvalue, --keyvalue-redis, --logging and --tls-client are for components");
  }
  if ((network?.connect ?? []).length > 0) {
    throw new UsageError("--net is for components: WASI preview 1 has no function that connects");
  }
  if (network !== undefined && record !== undefined) {
    throw new UsageError("--record is for programs without sockets");
  }
  if (record !== undefined && project !== undefined) {
    throw new UsageError("--record is for programs without plugins; --bare runs the program without the project's");
  }
  if (preloads !== undefined && (record !== undefined || project !== undefined)) {
    throw new UsageError(
      "--preload is for programs without plugins that are not recorded; --bare ignores the project's",
    );
  }
  if (record !== undefined && isArtifact) throw new UsageError("--record takes the module, not an artifact of it");
}

/** The way in which a module with these imports runs. Throws FileFailure for threads with options that exclude them. */
function chooseWay(
  file: string,
  module: Pick<ModuleShape, "imports">,
  { record, project, preloads, network }: RunOptions,
): keyof typeof RUNNERS {
  if (startsThreads(module)) {
    if (network !== undefined) throw new FileFailure(file, new Error("--listen is for programs without threads"));
    if (preloads !== undefined) throw new FileFailure(file, new Error("--preload is for programs without threads"));
    if (record === undefined) return "threads";
    throw new FileFailure(file, new Error("a program with threads cannot be recorded: others change its memory"));
  }
  if (record !== undefined) return "recorded";
  if (preloads !== undefined) return "preloaded";
  return project === undefined ? "alone" : "withPlugins";
}

function compileProgram(file: string, { compile }: ModuleSource, engine: Engine, options: RunOptions): Module {
  const done = options.progress?.(`compiling ${file}`);
  try {
    return inFile(file, () => compile(engine, options));
  } finally {
    done?.();
  }
}
