/**
 * The code of one function apart from its image, so that another thread can append it. In: MachineCode that holds only
 * that function. Out: words, and from those the same bytes, sites and relocations, appended to an image at any offset.
 *
 *     defined index · alignment · bytes · bytes without constants and tables · frame · relocations · rows of calls
 *     rows of traps · words of the caller's own · offsets, kinds and targets of relocations · rows · own words
 *     code, in words
 *
 * Invariant: functions that are appended in the order in which one thread compiles them give the image that one thread
 * makes.
 */
import { alignImage } from "./align_image.ts";
import { CALL_COLUMNS, type MachineCode, TRAP_COLUMNS } from "./machine_code.ts";

const HEADER_WORDS = 9;
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
  words[at + 1] = code.alignment;
  words[at + 2] = code.length;
  words[at + 3] = code.functionEnd[index];
  words[at + 4] = code.functionFrame[index];
  words[at + 5] = relocations;
  words[at + 6] = callRows.length / CALL_COLUMNS;
  words[at + 7] = trapRows.length / TRAP_COLUMNS;
  words[at + 8] = own.length;
  at += HEADER_WORDS;
  for (const column of [relocAt, relocKind, relocTarget]) {
    words.set(column, at);
    at += relocations;
  }
  words.set(callRows, at);
  words.set(trapRows, at += callRows.length);
  words.set(own, at += trapRows.length);
  at += own.length;
  new Uint8Array(words.buffer, words.byteOffset + at * 4, code.length).set(code.bytes.subarray(0, code.length));
}

/** Appends the function at `at` of `words` to the image; returns the words that its writer added. */
export function appendFunctionCode(code: MachineCode, filler: number, words: Int32Array, at: number): Int32Array {
  const [index, alignment, length, end, frame, relocations, calls, traps, own] = words.subarray(at, at + HEADER_WORDS);
  at += HEADER_WORDS;
  const take = (count: number) => words.subarray(at, at += count);
  const relocAt = take(relocations), relocKind = take(relocations), relocTarget = take(relocations);
  const callRows = take(calls * CALL_COLUMNS), trapRows = take(traps * TRAP_COLUMNS);
  const ownWords = take(own);
  const bytes = new Uint8Array(words.buffer, words.byteOffset + at * 4, length);
  appendFunction(code, filler, index, {
    bytes,
    alignment,
    end,
    frame,
    relocAt,
    relocKind,
    relocTarget,
    callRows,
    trapRows,
  });
  return ownWords;
}

/** The code of one function, with offsets from its start. */
interface FunctionParts {
  readonly bytes: Uint8Array;
  readonly alignment: number;
  /** Offset of the end of its instructions: constants and tables follow. */
  readonly end: number;
  /** Frame size in bytes. */
  readonly frame: number;
  readonly relocAt: Int32Array;
  readonly relocKind: Int32Array;
  readonly relocTarget: Int32Array;
  readonly callRows: Int32Array;
  readonly trapRows: Int32Array;
}

/** Appends the code of defined function `index` to the image. */
export function appendFunction(code: MachineCode, filler: number, index: number, parts: FunctionParts): void {
  const { bytes, relocAt, relocKind, relocTarget, callRows, trapRows } = parts;
  code.alignment = parts.alignment;
  alignImage(code, parts.alignment, filler);
  code.reserve(bytes.length);
  const start = code.length;
  code.functionStart[index] = start;
  code.functionEnd[index] = start + parts.end;
  code.functionFrame[index] = parts.frame;
  for (let k = 0; k < relocAt.length; k++) code.addReloc(start + relocAt[k], relocKind[k], relocTarget[k]);
  for (let at = 0; at < callRows.length; at += CALL_COLUMNS) {
    const landing = callRows[at + CALL_LANDING];
    code.addCallSite(
      start + callRows[at + CALL_RETURN],
      callRows[at + 1],
      callRows[at + 2],
      callRows[at + 3],
      landing < 0 ? landing : start + landing,
      callRows[at + 5],
    );
  }
  for (let at = 0; at < trapRows.length; at += TRAP_COLUMNS) {
    code.addTrapSite(start + trapRows[at], trapRows[at + 1], trapRows[at + 2], trapRows[at + 3], trapRows[at + 4]);
  }
  code.bytes.set(bytes, start);
  code.length = start + bytes.length;
}
