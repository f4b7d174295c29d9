/**
 * The failures of a translation, which end it. In: the function or instruction, and its offset. Out: the error.
 */
import { UnsupportedError } from "../base/errors.ts";
import { OPCODES } from "../wasm/opcodes.ts";

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
