/**
 * Compares results with a script's expectations. Results are cells of four u32 words (runtime/instance/raw_call.ts), so
 * that NaN payloads are exact.
 */
import type { ExpectedValue, NanPattern } from "../text/script_values.ts";
import { F32, HEAP, I32, V128, type ValType } from "../wasm/types.ts";

/**
 * Messages of scripts, and those that the engine has in their place. A repeated prefix of an exact heap type is a type
 * index, which the proposal encodes as a u32, and its last byte is left over.
 */
export const OTHER_MESSAGES: ReadonlyMap<string, string> = new Map([
  ["malformed storage type", "section size mismatch"],
]);

/** Access to the references in cells. */
interface ReferenceView {
  /** The host value of an externref's word. */
  hostValue(word: number): unknown;
}

/** The word at `at` as a number below 2^53 (references) or a bigint. */
function wordAt(cells: Uint32Array, at: number): number {
  return cells[at] + cells[at + 1] * 0x1_0000_0000;
}

function isNan32(bits: number, pattern: NanPattern): boolean {
  const payload = bits & 0x7fffff;
  if ((bits & 0x7f800000) !== 0x7f800000) return false;
  return pattern === "canonical" ? payload === 0x400000 : (payload & 0x400000) !== 0;
}

function isNan64(lo: number, hi: number, pattern: NanPattern): boolean {
  if ((hi & 0x7ff00000) !== 0x7ff00000) return false;
  const top = hi & 0xfffff;
  return pattern === "canonical" ? top === 0x80000 && lo === 0 : (top & 0x80000) !== 0;
}

/** Compares the cell that starts at word `at` with `expected`. */
export function matches(cells: Uint32Array, at: number, expected: ExpectedValue, view: ReferenceView): boolean {
  const lo = cells[at];
  const hi = cells[at + 1];
  switch (expected.type) {
    case "i32":
      return lo === expected.bits >>> 0;
    case "f32":
      return expected.nan === undefined ? lo === expected.bits >>> 0 : isNan32(lo, expected.nan);
    case "i64":
      return ((BigInt(hi) << 32n) | BigInt(lo)) === BigInt.asUintN(64, expected.bits);
    case "f64":
      if (expected.nan !== undefined) return isNan64(lo, hi, expected.nan);
      return ((BigInt(hi) << 32n) | BigInt(lo)) === BigInt.asUintN(64, expected.bits);
    case "v128":
      return matchesVector(cells, at, expected);
    case "ref.null":
      return lo === 0 && hi === 0;
    case "ref":
      if (lo === 0 && hi === 0) return false;
      if (expected.host === undefined) return true;
      return (expected.heap === HEAP.extern || expected.heap === HEAP.any) &&
        view.hostValue(wordAt(cells, at)) === expected.host;
    case "either":
      return expected.options.some((option) => matches(cells, at, option, view));
  }
}

function matchesVector(cells: Uint32Array, at: number, expected: ExpectedValue & { type: "v128" }): boolean {
  const bytes = new Uint8Array(cells.buffer, cells.byteOffset + at * 4, 16);
  const lanes = Number(expected.shape.slice(expected.shape.indexOf("x") + 1));
  const width = 16 / lanes;
  const view = new DataView(bytes.buffer, bytes.byteOffset, 16);
  for (let lane = 0; lane < lanes; lane++) {
    const nan = expected.nans[lane];
    const from = lane * width;
    if (nan !== undefined) {
      const ok = width === 4
        ? isNan32(view.getUint32(from, true), nan)
        : isNan64(view.getUint32(from, true), view.getUint32(from + 4, true), nan);
      if (!ok) return false;
      continue;
    }
    for (let i = from; i < from + width; i++) if (bytes[i] !== expected.bytes[i]) return false;
  }
  return true;
}

/** The words of a cell that a value of a type has; the others are undefined. */
function wordsOf(type: ValType): readonly number[] {
  if (type === V128) return [3, 2, 1, 0];
  return type === I32 || type === F32 ? [0] : [1, 0];
}

/** A cell with a value of `type` as text, for messages. */
export function cellText(cells: Uint32Array, at: number, type: ValType): string {
  const words = wordsOf(type).map((i) => (cells[at + i] ?? 0).toString(16).padStart(8, "0"));
  return `0x${words.join("").replace(/^0+(?=.)/, "")}`;
}

/**
 * Whether a result and an exact expectation are NaNs of other bits: only deterministic code makes the NaNs that the
 * specification's deterministic profile prescribes.
 */
export function isOtherNan(cells: Uint32Array, at: number, expected: ExpectedValue): boolean {
  switch (expected.type) {
    case "f32":
      return expected.nan === undefined && isAnyNan32(cells[at]) && isAnyNan32(expected.bits);
    case "f64": {
      if (expected.nan !== undefined) return false;
      return isAnyNan64(cells[at], cells[at + 1]) &&
        isAnyNan64(Number(expected.bits & 0xffffffffn), Number(BigInt.asUintN(64, expected.bits) >> 32n));
    }
    case "v128": {
      const { bytes, shape } = expected;
      const view = new DataView(bytes.buffer, bytes.byteOffset, 16);
      const words = [0, 1, 2, 3].map((i) => view.getUint32(4 * i, true));
      if (shape === "f32x4") return words.some((word, i) => isAnyNan32(cells[at + i]) && isAnyNan32(word));
      if (shape !== "f64x2") return false;
      return [0, 2].some((i) => isAnyNan64(cells[at + i], cells[at + i + 1]) && isAnyNan64(words[i], words[i + 1]));
    }
    default:
      return false;
  }
}

function isAnyNan32(bits: number): boolean {
  return ((bits >>> 23) & 0xff) === 0xff && (bits & 0x7fffff) !== 0;
}

function isAnyNan64(lo: number, hi: number): boolean {
  return ((hi >>> 20) & 0x7ff) === 0x7ff && ((hi & 0xfffff) !== 0 || lo !== 0);
}

/** An expected value as text in the form of {@linkcode cellText}, for messages. */
export function expectedText(expected: ExpectedValue): string {
  switch (expected.type) {
    case "i32":
    case "f32":
    case "i64":
    case "f64": {
      if ("nan" in expected && expected.nan !== undefined) return `nan:${expected.nan}`;
      const wide = expected.type === "i64" || expected.type === "f64";
      return `0x${BigInt.asUintN(wide ? 64 : 32, BigInt(expected.bits)).toString(16)}`;
    }
    case "v128":
      return vectorText(expected);
    case "ref.null":
      return "a null reference";
    case "ref":
      return expected.host === undefined ? "a non-null reference" : `host reference ${expected.host}`;
    case "either":
      return expected.options.map(expectedText).join(" or ");
  }
}

function vectorText({ bytes, nans }: ExpectedValue & { type: "v128" }): string {
  const digits = [...bytes].reverse().map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const lanes = nans.flatMap((nan, lane) => nan === undefined ? [] : [`nan:${nan} in lane ${lane}`]);
  return [`0x${digits.replace(/^0+(?=.)/, "")}`, ...lanes].join(", ");
}
