/**
 * Instrumented forms of modules that are valid under the user's options. In: a valid module's instrumentation, and
 * those options. Out: the compiled module. Invariant: the user's features have judged the module itself; the
 * instrumented form may need more of them, and may exceed a limit of the engine, which is then an error about
 * instrumentation.
 */
import { type EngineOptions, InvalidError, MalformedError, type Module, NewEngine } from "@waft/engine";
import { inFile } from "./run_module.ts";

/** Compiles an instrumented form; `done` is the participle of the tool's verb, for refusals. */
export function compileInstrumented(file: string, bytes: Uint8Array, done: string, options: EngineOptions): Module {
  const engine = NewEngine({ ...options, features: switchedOn(options) });
  return instrumenting(file, done, () => engine.compile(bytes));
}

/** Runs `action`, which makes or reads the instrumented form of a valid module. Throws FileFailure. */
export function instrumenting<T>(file: string, done: string, action: () => T): T {
  return inFile(file, () => {
    try {
      return action();
    } catch (error) {
      if (!(error instanceof InvalidError || error instanceof MalformedError)) throw error;
      // Its places are those of the instrumented form.
      const limit = error.message.replace(/ \(at offset 0x[0-9a-f]+\)$/, "");
      throw new Error(`it is too large to be ${done}: its instrumented form has ${limit}`);
    }
  });
}

/** The features that the user switched on; the others have their defaults. */
function switchedOn({ features = {} }: EngineOptions): NonNullable<EngineOptions["features"]> {
  return Object.fromEntries(Object.entries(features).filter(([, isOn]) => isOn));
}
