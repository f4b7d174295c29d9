/**
 * The fast path of `waft run` for binary modules that are not in the cache: a plain command line (plain_run.ts), no
 * imports but WASI's. In: the words after `run`. Out: the exit status, or undefined when run.ts must take the
 * full path; in that case there has been no effect yet.
 *
 * Invariant: loads neither commander nor any Node module, and the optimizing compiler only if an option requests it.
 */
import { type EngineOptions, type Module, NewEngine } from "@waft/engine";
import { Wasi } from "@waft/engine/wasi";
import { isBinary } from "@waft/engine/internal/binary/decode";
import { readFile } from "@waft/engine/internal/host/files";
import { codeCacheOptions } from "../../base/paths.ts";
import { absolutePath } from "../../base/system_path.ts";
import { readShape } from "../../ops/run/module_shape.ts";
import { planCall, WASI } from "../../ops/run/run_module.ts";
import { controlledEngine } from "./control_flags.ts";
import { engineOptions } from "../settings/engine_options.ts";
import { type PlainRun, plainRun, runPlain } from "./plain_run.ts";

/** A compiled module to run. */
interface Compiled {
  readonly run: PlainRun;
  readonly module: Module;
}

/** Compiles and runs the module of a plain command line if possible. */
export async function runFirst(words: readonly string[]): Promise<number | undefined> {
  const compiled = compile(words);
  return compiled && await runPlain(compiled.run, compiled.module);
}

/** The compiled module to run. Every failure falls back to the full path, which reports it. */
function compile(words: readonly string[]): Compiled | undefined {
  try {
    const run = plainRun(words);
    // The optimizing compiler may take a while: run.ts shows its progress.
    if (run === undefined || run.flags.tier === "optimizing") return undefined;
    const bytes = readFile(run.file);
    if (!isBinary(bytes) || !isRunnable(bytes, run)) return undefined;
    return { run, module: NewEngine(optionsOf(run)).compile(bytes) };
  } catch {
    return undefined;
  }
}

function optionsOf({ file, flags }: PlainRun): EngineOptions {
  return {
    parallel: "auto",
    ...controlledEngine(engineOptions(flags), flags),
    ...(flags.cache ? { cache: { ...codeCacheOptions(), label: absolutePath(file) } } : {}),
  };
}

/** Whether the module has the function to call, and imports only from WASI. Throws if the call is wrong. */
function isRunnable(bytes: Uint8Array, { file, args, flags }: PlainRun): boolean {
  const shape = readShape(bytes);
  if (shape === undefined) return false;
  planCall(file, shape, args, flags.invoke);
  if (shape.imports.length === 0) return true;
  const { imports } = new Wasi();
  return shape.imports.every(({ module, name }) => module === WASI && Object.hasOwn(imports, name));
}
