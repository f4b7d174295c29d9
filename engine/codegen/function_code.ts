/**
 * The code of one function apart from its image, so that another thread can append it. In: MachineCode that holds only
 * that function. Out: words, and from those the same bytes, sites and relocations, appended to an image at any offset.
 *
 *     defined index · bytes · bytes without constants and tables · frame · relocations · rows of calls · rows of traps
 *     words of the caller's own · { at, kind, target } per relocation · rows · own words · code, up to a whole word
 *
 * Invariant: functions that are appended in the order in which one thread compiles them give the image that one thread
 * makes.
 */
import { alignImage, FUNCTION_ALIGNMENT } from "./align_image.ts";
import { CALL_COLUMNS, type MachineCode, TRAP_COLUMNS } from "./machine_code.ts";

const HEADER_WORDS = 8;
/** Columns of a call's row that are offsets in the image. */
const CALL_RETURN = 0, CALL_LANDING = 4;

/** The number of words that `writeFunctionCode` writes. */
export function functionCodeWords(code: MachineCode, own: ArrayLike<number>): number {
  return HEADER_WORDS + code.relocAt.length * 3 + code.callRows.length + code.trapRows.length + own.length +
    Math.ceil(code.length / 4);
}

/** Writes the only function of `code` to `words` from `at` on, followed by the words `own`. */
export function writeFunctionCode(
  code: MachineCode,
  index: number,
  own: ArrayLike<number>,
  words: Int32Array,
  at: number,
): void {
  const { relocAt, relocKind, relocTarget, callRows, trapRows } = code;
  const relocations = relocAt.length;
  words[at] = index;
  words[at + 1] = code.length;
  words[at + 2] = code.functionEnd[index];
  words[at + 3] = code.functionFrame[index];
  words[at + 4] = relocations;
  words[at + 5] = callRows.length / CALL_COLUMNS;
  words[at + 6] = trapRows.length / TRAP_COLUMNS;
  words[at + 7] = own.length;
  at += HEADER_WORDS;
  for (let k = 0; k < relocations; k++, at += 3) {
    words[at] = relocAt[k];
    words[at + 1] = relocKind[k];
    words[at + 2] = relocTarget[k];
  }
  words.set(callRows, at);
  words.set(trapRows, at += callRows.length);
  words.set(own, at += trapRows.length);
  at += own.length;
  new Uint8Array(words.buffer, words.byteOffset + at * 4, code.length).set(code.bytes.subarray(0, code.length));
}

/** Appends the function at `at` of `words` to the image; returns the words that its writer added. */
export function appendFunctionCode(code: MachineCode, filler: number, words: Int32Array, at: number): Int32Array {
  const index = words[at], length = words[at + 1], end = words[at + 2];
  const relocations = words[at + 4], calls = words[at + 5], traps = words[at + 6], own = words[at + 7];
  alignImage(code, FUNCTION_ALIGNMENT, filler);
  code.reserve(length);
  const start = code.length;
  code.functionStart[index] = start;
  code.functionEnd[index] = start + end;
  code.functionFrame[index] = words[at + 3];
  at += HEADER_WORDS;
  for (let k = 0; k < relocations; k++, at += 3) code.addReloc(start + words[at], words[at + 1], words[at + 2]);
  for (let k = 0; k < calls; k++, at += CALL_COLUMNS) {
    const landing = words[at + CALL_LANDING];
    code.addCallSite(
      start + words[at + CALL_RETURN],
      words[at + 1],
      words[at + 2],
      words[at + 3],
      landing < 0 ? landing : start + landing,
      words[at + 5],
    );
  }
  for (let k = 0; k < traps; k++, at += TRAP_COLUMNS) {
    code.addTrapSite(start + words[at], words[at + 1], words[at + 2], words[at + 3], words[at + 4]);
  }
  const ownWords = words.subarray(at, at + own);
  at += own;
  code.bytes.set(new Uint8Array(words.buffer, words.byteOffset + at * 4, length), start);
  code.length = start + length;
  return ownWords;
}
