/**
 * Modules that a run instantiates before its program (`--preload NAME=FILE`), whose exports the program imports. In:
 * names with files, the program's engine and inputs. Out: exports by name. Invariant: a module sees WASI, with the
 * grants of the program, and the modules before it; a module that cannot be one of these is refused before any runs.
 */
import type { Engine, Instance, Module } from "@waft/engine";
import { FileFailure, UsageError } from "../../base/failure.ts";
import { readInput } from "../tools/read_input.ts";
import {
  type GuestInputs,
  type ImportStubs,
  inFile,
  INITIALIZE,
  programArguments,
  WASI,
  wasiFor,
} from "./run_module.ts";

/** A module with the name under which others import it. */
export interface Preload {
  readonly name: string;
  readonly file: string;
}

/** A module before it is instantiated. */
interface CompiledPreload extends Preload {
  readonly module: Module;
}

/** Instances whose exports a program imports. */
interface Preloaded {
  readonly exports: ImportStubs;
  close(): void;
}

/** Compiles the modules. Throws UsageError for names that are taken, and FileFailure for files that are no module. */
export function compilePreloads(engine: Engine, preloads: readonly Preload[]): CompiledPreload[] {
  const names = new Set([WASI]);
  for (const { name } of preloads) {
    if (names.has(name)) throw new UsageError(`--preload: the name "${name}" is taken`);
    names.add(name);
  }
  return preloads.map(({ name, file }) => {
    const module = inFile(file, () => engine.compile(readInput(file)));
    if (module.functionType("_start") !== undefined) {
      throw new FileFailure(file, new Error('a program ("_start"), whose exports nothing can call; preload libraries'));
    }
    return { name, file, module };
  });
}

/** Instantiates the modules in their order. */
export function startPreloads(preloads: readonly CompiledPreload[], inputs: GuestInputs): Preloaded {
  const exports: { [name: string]: { [name: string]: unknown } } = Object.create(null);
  const instances: Instance[] = [];
  const close = () => {
    for (const instance of instances.reverse()) instance.close();
  };
  try {
    for (const { name, file, module } of preloads) {
      inFile(file, () => {
        const { wasi, imports } = wasiFor(module, programArguments(file), inputs);
        const instance = module.instantiate(inputs.context, { ...exports, ...imports });
        instances.push(instance);
        wasi?.attach(instance);
        if (module.functionType(INITIALIZE) !== undefined) instance.call(inputs.context, INITIALIZE);
        exports[name] = instance.exports;
      });
    }
  } catch (error) {
    close();
    throw error;
  }
  return { exports, close };
}
