/**
 * Columns by row id for the validator's loop: operand and result types of simple rows, the immediates that need checks,
 * and the number of the feature. In: the opcode rows. Out: typed arrays, built once at load.
 *
 * Invariant (checked here): a simple row has at most three operands and one result.
 */
import { Bug } from "../base/errors.ts";
import type { OpcodeRow } from "../wasm/opcode_row.ts";
import { IS_ATOMIC, LANE_LIMIT, opcodeColumn } from "../wasm/opcodes.ts";
import { F32, F64, I32, I64, V128, type ValType } from "../wasm/types.ts";
import { featureNumber } from "./gate.ts";

/** Bits of {@linkcode CHECKS}: immediates of a simple row that need more than decoding. */
export const CHECK = { MEMARG: 1, LANE: 2, LANES: 4, MEMORY: 8, TABLE: 16, ATOMIC: 32, ORDERING: 64 } as const;

/** Bits of {@linkcode ADDRESSES}: which of operands 1 to 3 (from the top) and the result have the address type. */
export const ADDRESS = { TOP: 1, SECOND: 2, THIRD: 4, RESULT: 8 } as const;

/** Types of signature letters; an address is i32 here, unless ADDRESSES and the memory's type override it. */
const LETTER_TYPES: Readonly<Record<string, ValType>> = { i: I32, I: I64, f: F32, F: F64, v: V128, a: I32 };

/** Number of operands, −1 for special rows. */
export const OPERANDS: Int8Array = opcodeColumn(Int8Array, operandCount);
/** Type of the top operand, of the second, of the third. */
export const TOP: Int32Array = opcodeColumn(Int32Array, (row) => operandType(row, 1));
export const SECOND: Int32Array = opcodeColumn(Int32Array, (row) => operandType(row, 2));
export const THIRD: Int32Array = opcodeColumn(Int32Array, (row) => operandType(row, 3));
/** Type of the result, 0 for none. */
export const RESULT: Int32Array = opcodeColumn(Int32Array, (row) => row.results ? LETTER_TYPES[row.results] : 0);
/** Operands and results that are addresses. */
export const ADDRESSES: Uint8Array = opcodeColumn(Uint8Array, addressBits);
/** Immediates to check. */
export const CHECKS: Uint8Array = opcodeColumn(Uint8Array, checkBits);
/** Number of the row's feature, 0 for those of WebAssembly 1.0. */
export const FEATURES: Uint8Array = opcodeColumn(Uint8Array, (row) => featureNumber(row.feature));

function operandCount(row: OpcodeRow): number {
  if (row.params === undefined || row.results === undefined) return -1;
  if (row.params.length > 3 || row.results.length > 1) throw new Bug(`Simple row "${row.mnemonic}" is too long`);
  return row.params.length;
}

function operandType(row: OpcodeRow, fromTop: number): ValType {
  const letter = row.params?.at(-fromTop);
  return letter === undefined ? 0 : LETTER_TYPES[letter];
}

function addressBits(row: OpcodeRow): number {
  let bits = row.results === "a" ? ADDRESS.RESULT : 0;
  for (let i = 0; i < 3; i++) if (row.params?.at(-1 - i) === "a") bits |= ADDRESS.TOP << i;
  return bits;
}

function checkBits(row: OpcodeRow): number {
  let bits = 0;
  if (row.params === undefined) return bits;
  for (const kind of row.immediates) {
    if (kind === "memarg") bits |= IS_ATOMIC[row.id] === 1 ? CHECK.MEMARG | CHECK.ATOMIC : CHECK.MEMARG;
    if (kind === "atomicarg" || kind === "rmwarg") bits |= CHECK.MEMARG | CHECK.ATOMIC | CHECK.ORDERING;
    if (kind === "ordering") bits |= CHECK.ORDERING;
    if (kind === "lane" && LANE_LIMIT[row.id] !== 0) bits |= CHECK.LANE;
    if (kind === "lanes") bits |= CHECK.LANES;
    if (kind === "memory") bits |= CHECK.MEMORY;
    if (kind === "table") bits |= CHECK.TABLE;
  }
  return bits;
}
