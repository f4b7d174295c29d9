/**
 * Tables (specification, 4.4.6). In: operands on the translator's stack. Out: accesses of table elements behind a check
 * of the index, and runtime calls for operations on ranges.
 */
import { TABLE } from "../abi/context_layout.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { TRAP } from "../base/traps.ts";
import type { Immediates } from "../wasm/immediates.ts";
import { I64 as INDEX64 } from "../wasm/types.ts";
import { callBuiltin, callRangeCopy } from "./builtin_calls.ts";
import type { Handler, Translation } from "./translation.ts";

const { I32, I64, NONE, REF } = TY;

/**
 * Traps with `code` unless `index` (i32 or i64) is below the table's length. Returns the index of the access: with
 * `mask-tables` the result of the check, unless the index is a constant below the smallest length.
 */
export function checkTableIndex(t: Translation, table: number, index: number, code: number): number {
  const { b, env, f } = t;
  const fixed = env.tableFixedLength[table];
  const ty = f.ty[index];
  // The length of a table with 32-bit indices fits its low half.
  const length = fixed >= 0 && ty === I32
    ? b.i32(fixed)
    : b.emit(OP.LOAD, ty, 0, 0, env.tableSizeRegion[table], env.tableOffset[table] + TABLE.LENGTH);
  if (env.optimizations["mask-tables"] && !isBelowMinimum(t, table, index)) {
    return b.emit(OP.CHECK_INDEX, ty, index, length, 0, code);
  }
  b.trapIf(b.binary(OP.GE_U, I32, index, length), code);
  return index;
}

/** Whether the index is a constant below the length that the table has at least. */
function isBelowMinimum({ b, env, f }: Translation, table: number, index: number): boolean {
  if (!b.isConst(index) || (f.ty[index] === I64 && f.c[index] !== 0)) return false;
  return BigInt(f.imm[index] >>> 0) < env.valid.tableTypes[table].limits.min;
}

/** Address of element `index` of a table. */
export function elementAddress(t: Translation, table: number, index: number): number {
  const { b, env } = t;
  const wide = t.wide(index);
  const base = b.emit(OP.LOAD, I64, 0, 0, env.tableSizeRegion[table], env.tableOffset[table] + TABLE.BASE);
  return b.binary(OP.ADD, I64, base, b.binary(OP.SHL, I64, wide, b.i64(3, 0)));
}

function tableGet(t: Translation, imm: Immediates): void {
  const index = checkTableIndex(t, imm.index, t.pop(), TRAP.TABLE_OUT_OF_BOUNDS);
  t.push(t.b.emit(OP.LOAD, REF, elementAddress(t, imm.index, index), 0, t.env.tableRegion[imm.index], 0));
}

function tableSet(t: Translation, imm: Immediates): void {
  const value = t.pop();
  const index = checkTableIndex(t, imm.index, t.pop(), TRAP.TABLE_OUT_OF_BOUNDS);
  t.b.emit(OP.STORE, NONE, elementAddress(t, imm.index, index), value, t.env.tableRegion[imm.index], 0);
}

/** True if table `index` has 64-bit indices. */
function is64(t: Translation, index: number): boolean {
  return t.env.valid.tableTypes[index].limits.address === INDEX64;
}

function tableSize(t: Translation, imm: Immediates): void {
  const { b, env } = t;
  const { index } = imm;
  const fixed = env.tableFixedLength[index];
  const ty = is64(t, index) ? I64 : I32;
  t.push(
    fixed >= 0
      ? b.constant(ty, fixed, 0)
      : b.emit(OP.LOAD, ty, 0, 0, env.tableSizeRegion[index], env.tableOffset[index] + TABLE.LENGTH),
  );
}

function tableGrow(t: Translation, imm: Immediates): void {
  const delta = t.wide(t.pop());
  const value = t.pop();
  const old = callBuiltin(t, "table_grow", t.b.i32(imm.index), value, delta);
  t.push(is64(t, imm.index) ? old : t.b.unary(OP.WRAP, I32, old));
}

function tableFill(t: Translation, imm: Immediates): void {
  const count = t.wide(t.pop());
  const value = t.pop();
  const start = t.wide(t.pop());
  callBuiltin(t, "table_fill", t.b.i32(imm.index), start, value, count);
}

function tableCopy(t: Translation, imm: Immediates): void {
  callRangeCopy(t, "table_copy", imm.index, imm.index2);
}

function tableInit(t: Translation, imm: Immediates): void {
  callRangeCopy(t, "table_init", imm.index2, imm.index);
}

function elemDrop(t: Translation, imm: Immediates): void {
  callBuiltin(t, "elem_drop", t.b.i32(imm.index));
}

/** Handlers by mnemonic. */
export const TABLE_HANDLERS: Readonly<Record<string, Handler>> = {
  "table.get": tableGet,
  "table.set": tableSet,
  "table.size": tableSize,
  "table.grow": tableGrow,
  "table.fill": tableFill,
  "table.copy": tableCopy,
  "table.init": tableInit,
  "elem.drop": elemDrop,
};
