/**
 * Programs of `waft run`: what a file is, decided once. In: a path. Out: a program, whose `run` takes the words of the
 * command line and returns the lines to print; it throws UsageError, FileFailure, GuestExit, or a ProjectError before
 * the guest starts. Invariant: what only some kinds need is loaded when a file of that kind is run.
 */
import { EXTISM_HOST } from "@waft/engine/internal/extism/host_name";
import { FileFailure, UsageError } from "../../base/failure.ts";
import { componentBytes } from "../tools/component_bytes.ts";
import { type FileKind, fileKind } from "../tools/file_kind.ts";
import { readInput } from "../tools/read_input.ts";
import { readShape } from "./module_shape.ts";
import { artifactSource, moduleSource, runModule } from "./module_program.ts";
import { inFile, startsThreads } from "./run_module.ts";
import type { RunOptions } from "./run_options.ts";

/** A file that can be run. */
interface Program {
  readonly kind: FileKind;
  /** Whether it is a module that starts threads. False for artifacts, whose imports are known when they are loaded. */
  readonly startsThreads: boolean;
  /** Whether it can import exports of other modules. */
  readonly takesPreloads?: true;
  run(args: readonly string[], options: RunOptions): Promise<string[]>;
}

/** The functions that make a program of a file, by its kind. */
const OPENERS: Readonly<Record<FileKind, (file: string, bytes: Uint8Array, kind: FileKind) => Program>> = {
  "artifact": (file, bytes, kind) => ({
    kind,
    startsThreads: false,
    takesPreloads: true,
    run: (args, options) => {
      // Standard input has no file that the guest could replace.
      return runModule(file, artifactSource(bytes), args, file === "-" ? options : { ...options, artifact: file });
    },
  }),
  "component": openComponent,
  "manifest of Extism": openExtismPlugin,
  "module": openModule,
  "text of a component": openComponent,
  "text of a module": openModule,
};

/** Reads the program at `file`. Throws FileFailure. */
export function readProgram(file: string): Program {
  let bytes: Uint8Array;
  try {
    bytes = readInput(file);
  } catch (error) {
    throw new FileFailure(file, error);
  }
  const kind = fileKind(bytes);
  return OPENERS[kind](file, bytes, kind);
}

/** Runs `file` and returns the lines to print, one per result. */
export async function runFile(file: string, args: readonly string[], options: RunOptions): Promise<string[]> {
  const program = readProgram(file);
  if (options.preloads !== undefined && !program.takesPreloads) throw new UsageError("--preload is for modules");
  return await program.run(args, options);
}

function openModule(file: string, bytes: Uint8Array, kind: FileKind): Program {
  const shape = readShape(bytes);
  if (shape?.imports.some(({ module }) => module === EXTISM_HOST)) return openExtismPlugin(file, bytes, kind);
  return {
    kind,
    startsThreads: shape !== undefined && startsThreads(shape),
    takesPreloads: true,
    run: (args, options) => runModule(file, moduleSource(bytes, shape), args, options),
  };
}

function openExtismPlugin(file: string, bytes: Uint8Array, kind: FileKind): Program {
  return {
    kind,
    startsThreads: false,
    run: async (args, options) => {
      const { runExtism } = await import("./run_extism.ts");
      return await runExtism(file, bytes, kind, args, options);
    },
  };
}

function openComponent(file: string, bytes: Uint8Array, kind: FileKind): Program {
  return {
    kind,
    startsThreads: false,
    run: async (args, options) => {
      const binary = (await inFile(file, () => componentBytes(bytes, kind)))!;
      if (options.record !== undefined) {
        throw new UsageError("--record is for modules; components cannot be recorded");
      }
      const { runComponent } = await import("./run_component.ts");
      return await runComponent(file, binary, args, options);
    },
  };
}
