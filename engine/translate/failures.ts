/**
 * The failures of a translation, which end it. In: the function or instruction, and its offset. Out: the error. In the
 * compiled forms they become a status (scripts/generate/portable/), which this file words, too.
 */
import { UnsupportedError } from "../base/errors.ts";
import { OPCODES } from "../wasm/opcodes.ts";

/** The status of a translation: which failure has ended it. */
export const FAILURE = { NONE: 0, TOO_LARGE: 1, NOT_COMPILED: 2, LOOPS_TOO_LARGE: 3, MEMORY_FULL: 4 } as const;

/** The error of status `failure`, with the function or row `subject` and an offset. */
export function failureOf(failure: number, subject: number, offset: number): UnsupportedError {
  switch (failure) {
    case FAILURE.TOO_LARGE:
      return tooLarge(subject, offset);
    case FAILURE.NOT_COMPILED:
      return notCompiled(subject, offset);
    case FAILURE.MEMORY_FULL:
      return memoryFull(subject);
    default:
      return loopsTooLarge(offset);
  }
}

/** The error for a function beyond an implementation limit. */
export function tooLarge(funcIndex: number, offset: number): UnsupportedError {
  const problem = `function ${funcIndex} is too large or its control flow too complex to compile`;
  return new UnsupportedError("function size", problem, { offset });
}

/** The error for a valid instruction of row `id` without a translation: this build does not compile its feature. */
export function notCompiled(id: number, offset: number): UnsupportedError {
  const { feature, mnemonic } = OPCODES[id];
  const name = feature === "mvp" ? mnemonic : feature;
  return new UnsupportedError(name, `${mnemonic} is not compiled by this build (feature ${name})`, { offset });
}

/** The error for a loop that cannot be entered, because those around it are too large. */
export function loopsTooLarge(offset: number): UnsupportedError {
  return new UnsupportedError("function size", "the enclosing loops are too large to translate twice", { offset });
}

/** The error for a function whose compilation does not fit the memory of a compiled form. */
function memoryFull(funcIndex: number): UnsupportedError {
  return new UnsupportedError("function size", `the compiler's memory is too small for function ${funcIndex}`);
}
