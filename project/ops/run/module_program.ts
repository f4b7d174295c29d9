/**
 * Runs modules and artifacts: checks function, arguments and imports, compiles, and hands the module on in the one of
 * four ways that its imports and the options ask for. In: a source, words of the command line, options. Out: the lines
 * to print; throws UsageError, FileFailure, GuestExit, or a ProjectError before the guest starts. Invariant: options
 * and imports that cannot be satisfied are refused before anything is compiled, except for artifacts.
 */
import { type Engine, type Module, NewEngine } from "@waft/engine";
import { FileFailure, UsageError } from "../../base/failure.ts";
import { checkImports } from "./missing_imports.ts";
import type { ModuleShape, PlacedShape } from "./module_shape.ts";
import { callGuest, inFile, planCall, startGuest, startsThreads } from "./run_module.ts";
import type { ModuleRunner, RunOptions } from "./run_options.ts";

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
  recorded: async () => (await import("./run_recorded.ts")).runRecorded,
  threads: async () => (await import("./run_threaded.ts")).runThreadedModule,
  withPlugins: async () => (await import("./module_with_plugins.ts")).runModuleWithPlugins,
} as const satisfies Record<string, () => Promise<ModuleRunner>>;

/** Runs a module, and returns the lines to print, one per result. */
export async function runModule(
  file: string,
  source: ModuleSource,
  args: readonly string[],
  options: RunOptions,
): Promise<string[]> {
  refuseOptions(source, options);
  const { bytes, shape } = source;
  const plan = shape === undefined ? undefined : planCall(file, shape, args, options.invoke);
  const stubs = shape === undefined ? {} : checkImports(file, shape, options.project?.guest, options.unknownImports);
  const planned = shape === undefined ? undefined : chooseWay(file, shape, options);
  const engine = NewEngine(options.engine);
  const module = compileProgram(file, source, engine, options);
  const call = plan ?? planCall(file, module, args, options.invoke);
  const run = await RUNNERS[planned ?? chooseWay(file, module, options)]();
  return await run({ file, bytes, module, engine, args, call, stubs }, options);
}

/** Throws UsageError for options that a module cannot have. */
function refuseOptions({ isArtifact }: ModuleSource, { network, drafts, record, project }: RunOptions): void {
  if (drafts !== undefined) throw new UsageError("--config-var, --keyvalue and --logging are for components");
  if (network !== undefined) throw new UsageError("--net and --listen are for components; modules have no sockets");
  if (record !== undefined && project !== undefined) {
    throw new UsageError("--record is for programs without plugins; --bare runs the program without the project's");
  }
  if (record !== undefined && isArtifact) throw new UsageError("--record takes the module, not an artifact of it");
}

/** The way in which a module with these imports runs. Throws FileFailure for threads that would be recorded. */
function chooseWay(
  file: string,
  module: Pick<ModuleShape, "imports">,
  { record, project }: RunOptions,
): keyof typeof RUNNERS {
  if (startsThreads(module)) {
    if (record === undefined) return "threads";
    throw new FileFailure(file, new Error("a program with threads cannot be recorded: others change its memory"));
  }
  if (record !== undefined) return "recorded";
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
