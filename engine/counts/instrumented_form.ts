/**
 * Instrumented forms of modules that are valid under the user's options. In: the user's options, and an action that
 * makes or compiles an instrumented form. Out: the options for that form, and errors about instrumentation. Invariant:
 * the user's features have judged the module itself; its instrumented form may need more of them, and may exceed a
 * limit of the engine.
 */
import { InvalidError, MalformedError } from "../base/errors.ts";
import type { EngineOptions } from "../api/settings.ts";

/** The options for the instrumented form: features that the user switched off have their defaults. */
export function instrumentedOptions(options: EngineOptions): EngineOptions {
  const features = Object.fromEntries(Object.entries(options.features ?? {}).filter(([, isOn]) => isOn));
  return { ...options, features };
}

/**
 * Runs `action`, which makes or compiles the instrumented form of a valid module. Throws an Error with the limit that
 * the form exceeds; `done` is the participle of the tool's verb.
 */
export function instrumenting<T>(done: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (!(error instanceof InvalidError || error instanceof MalformedError)) throw error;
    // Without the place, which is one in the instrumented form.
    throw new Error(`it is too large to be ${done}: its instrumented form has ${error.message}`);
  }
}
