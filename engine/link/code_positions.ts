/**
 * Wasm positions of machine code by offset. In: the rows of a compilation with positions, or the tables of an image.
 * Out: lookups. A position is an offset in the module and an inline site, as in the tables of call sites.
 */
import type { CodeTables } from "./image.ts";

/** A wasm position: byte offset in the module, 0 for none, and inline site. */
export interface CodePosition {
  readonly pos: number;
  readonly site: number;
}

/** The position of an instruction: `at` is its offset in the image, `end` that of the next one. */
export type PositionOf = (at: number, end: number) => CodePosition;

export const NO_POSITION: CodePosition = { pos: 0, site: 0 };

/** Index of the last of `count` ascending values that is at most `value`; −1 if there is none. */
function lastAtMost(count: number, valueAt: (k: number) => number, value: number): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (valueAt(middle) <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Positions by the rows of `MachineCode.positions`. */
export function optimizedPositions(rows: Int32Array): PositionOf {
  return (at) => {
    const k = 3 * lastAtMost(rows.length / 3, (n) => rows[3 * n], at);
    return k < 0 ? NO_POSITION : { pos: rows[k + 1], site: rows[k + 2] };
  };
}

/** Positions of calls, by their return addresses, and of instructions that may trap. */
export function baselinePositions(
  { callReturn, callPos, callSite, trapAt, trapPos, trapSite }: CodeTables,
): PositionOf {
  return (at, end) => {
    const trap = lastAtMost(trapAt.length, (k) => trapAt[k], at);
    if (trapAt[trap] === at) return { pos: trapPos[trap], site: trapSite[trap] };
    const call = lastAtMost(callReturn.length, (k) => callReturn[k], end);
    return callReturn[call] === end ? { pos: callPos[call], site: callSite[call] } : NO_POSITION;
  };
}

/** A site in code: its position, and the size of the frame there. */
interface NearSite extends CodePosition {
  readonly frame: number;
}

/**
 * The sites around offset `at` within [start, end), the nearest first: the last call or trap that is not behind it, and
 * the next one.
 */
export function nearSites(tables: CodeTables, at: number, start: number, end: number): NearSite[] {
  const { callReturn, callFrame, callPos, callSite, trapAt, trapFrame, trapPos, trapSite } = tables;
  const call = lastAtMost(callReturn.length, (k) => callReturn[k], at);
  const trap = lastAtMost(trapAt.length, (k) => trapAt[k], at);
  const found: (NearSite & { at: number })[] = [];
  for (const k of [call, call + 1]) {
    if (callReturn[k] > start && callReturn[k] <= end) {
      found.push({ at: callReturn[k], frame: callFrame[k], pos: callPos[k], site: callSite[k] });
    }
  }
  for (const k of [trap, trap + 1]) {
    if (trapAt[k] >= start && trapAt[k] <= end) {
      found.push({ at: trapAt[k], frame: trapFrame[k], pos: trapPos[k], site: trapSite[k] });
    }
  }
  return found.sort((a, b) => Math.abs(a.at - at) - Math.abs(b.at - at));
}
