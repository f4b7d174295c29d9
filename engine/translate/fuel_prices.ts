/**
 * Prices in fuel: one per instruction of WebAssembly, independent of the generated code, so that totals are equal under
 * every optimization setting, bounds mode and target. Embedders can set others (wasm/fuel_groups.ts). Instructions
 * without a row cost DEFAULT_PRICE; bulk instructions also cost one unit per 64 bytes (8 table elements) of their
 * length operand. Of lengths of 64 bits only the low LENGTH_BITS count: no larger length is within a memory or table,
 * and its price would use up the fuel of calls without a limit.
 *
 * Fuel is charged per region: a run of instructions that begins at the function's start, at a loop, at an arm of an
 * `if`, at a catch clause, after an `end` or after a branch that was not taken, and ends where the next one begins. A
 * region that cannot be paid for is not entered and costs nothing; one that traps half-way has been paid in full. Calls
 * do not end a region.
 */
import { OPCODES } from "../wasm/opcodes.ts";

/** The price of an instruction without a row. */
const DEFAULT_PRICE = 1;

// deno-fmt-ignore
const PRICE_ROWS: readonly (readonly [price: number, ...mnemonics: string[]])[] = [
  [0, "nop", "block", "loop", "else", "end", "try", "try_table", "catch", "catch_all", "delegate", "drop"],
  [2, "call", "return_call"],
  [3, "call_indirect", "call_ref", "return_call_indirect", "return_call_ref"],
  [4, "i32.div_s", "i32.div_u", "i32.rem_s", "i32.rem_u", "i64.div_s", "i64.div_u", "i64.rem_s", "i64.rem_u"],
  [4, "f32.div", "f64.div", "f32.sqrt", "f64.sqrt"],
  [4, "struct.new", "struct.new_default", "array.new", "array.new_default", "array.new_fixed"],
  [4, "struct.new_desc", "struct.new_default_desc"],
  [16, "array.new_data", "array.new_elem", "array.init_data", "array.init_elem"],
  [16, "throw", "throw_ref", "rethrow", "table.grow", "table.init", "table.fill", "table.copy", "memory.init"],
  [16, "cont.new", "cont.bind", "suspend", "resume", "resume_throw", "resume_throw_ref", "switch"],
  [64, "memory.grow"],
];

/** Instructions whose last operand is a length: log2 of the length per unit of fuel. */
// deno-fmt-ignore
const BULK_ROWS: readonly (readonly [shift: number, ...mnemonics: string[]])[] = [
  [6, "memory.copy", "memory.fill", "memory.init"],
  [3, "table.copy", "table.fill", "table.init", "table.grow"],
  [3, "array.new", "array.new_default", "array.new_data", "array.new_elem"],
  [3, "array.fill", "array.copy", "array.init_data", "array.init_elem"],
];

function column(rows: readonly (readonly [number, ...string[]])[], absent: number): Uint8Array {
  const values = new Uint8Array(OPCODES.length).fill(absent);
  for (const [value, ...mnemonics] of rows) {
    for (const mnemonic of mnemonics) {
      const row = OPCODES.find((entry) => entry.mnemonic === mnemonic);
      if (row === undefined) throw new Error(`There is no instruction "${mnemonic}"`);
      values[row.id] = value;
    }
  }
  return values;
}

/** Price by opcode row. */
export const FUEL_PRICE: Uint8Array = column(PRICE_ROWS, DEFAULT_PRICE);
/** Shift by opcode row, 0 for all but bulk instructions. */
export const FUEL_BULK_SHIFT: Uint8Array = column(BULK_ROWS, 0);
/** The bits of a 64-bit length that are charged for. */
export const LENGTH_BITS = 38;
/** The row of `if`, which the visitor reports as a frame. */
export const IF_ROW: number = OPCODES.find(({ mnemonic }) => mnemonic === "if")!.id;
