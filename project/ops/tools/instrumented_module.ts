/**
 * Instrumented forms of modules for tools. In: a valid module's instrumentation, and the user's options. Out: the
 * compiled module, or a failure that names the file (engine/counts/instrumented_form.ts).
 */
import { type EngineOptions, type Module, NewEngine } from "@waft/engine";
import { instrumentedOptions, instrumenting as formed } from "@waft/engine/internal/counts/instrumented_form";
import { inFile } from "../run/run_module.ts";

/** Compiles an instrumented form; `done` is the participle of the tool's verb, for refusals. */
export function compileInstrumented(file: string, bytes: Uint8Array, done: string, options: EngineOptions): Module {
  return instrumenting(file, done, () => NewEngine(instrumentedOptions(options)).compile(bytes));
}

/** Runs `action`, which makes or reads the instrumented form of a valid module. Throws FileFailure. */
export function instrumenting<T>(file: string, done: string, action: () => T): T {
  return inFile(file, () => formed(done, action));
}
