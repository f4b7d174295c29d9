/**
 * Tables (specification, 4.4.6). In: operands on the translator's stack. Out: accesses of table elements behind a check
 * of the index, and runtime calls for operations on ranges.
 */
import { BUILTIN } from "../abi/builtins.ts";
import { TABLE } from "../abi/context_layout.ts";
import { unsigned } from "../base/numbers.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { TRAP } from "../base/traps.ts";
import type { Immediates } from "../wasm/immediates.ts";
import { idOf } from "../wasm/opcodes.ts";
import { callBuiltin, callRangeCopy } from "./builtin_calls.ts";
import { notCompiled } from "./failures.ts";
import type { Translation } from "./translation.ts";

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
  if (env.choices.maskTables && !isBelowMinimum(t, table, index)) {
    return b.emit(OP.CHECK_INDEX, ty, index, length, 0, code);
  }
  b.trapIf(b.binary(OP.GE_U, I32, index, length), code);
  return index;
}

/** Whether the index is a constant below the length that the table has at least. */
function isBelowMinimum(t: Translation, table: number, index: number): boolean {
  const { b, env, f } = t;
  if (!b.isConst(index) || (f.ty[index] === I64 && f.c[index] !== 0)) return false;
  return unsigned(f.imm[index]) < env.tableMinimum[table];
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

function tableSize(t: Translation, imm: Immediates): void {
  const { b, env } = t;
  const { index } = imm;
  const fixed = env.tableFixedLength[index];
  const ty = env.tableIs64[index] ? I64 : I32;
  t.push(
    fixed >= 0
      ? b.constant(ty, fixed, 0)
      : b.emit(OP.LOAD, ty, 0, 0, env.tableSizeRegion[index], env.tableOffset[index] + TABLE.LENGTH),
  );
}

function tableGrow(t: Translation, imm: Immediates): void {
  const delta = t.wide(t.pop());
  const value = t.pop();
  const old = callBuiltin(t, BUILTIN.table_grow, [t.b.i32(imm.index), value, delta]);
  t.push(t.env.tableIs64[imm.index] ? old : t.b.unary(OP.WRAP, I32, old));
}

function tableFill(t: Translation, imm: Immediates): void {
  const count = t.wide(t.pop());
  const value = t.pop();
  const start = t.wide(t.pop());
  callBuiltin(t, BUILTIN.table_fill, [t.b.i32(imm.index), start, value, count]);
}

const TABLE_GET = idOf("table.get");
const TABLE_SET = idOf("table.set");
const TABLE_SIZE = idOf("table.size");
const TABLE_GROW = idOf("table.grow");
const TABLE_FILL = idOf("table.fill");
const TABLE_COPY = idOf("table.copy");
const TABLE_INIT = idOf("table.init");
const ELEM_DROP = idOf("elem.drop");

/** Translates the instruction of row `id`. */
export function translateTable(t: Translation, id: number, imm: Immediates): void {
  switch (id) {
    case TABLE_GET:
      tableGet(t, imm);
      break;
    case TABLE_SET:
      tableSet(t, imm);
      break;
    case TABLE_SIZE:
      tableSize(t, imm);
      break;
    case TABLE_GROW:
      tableGrow(t, imm);
      break;
    case TABLE_FILL:
      tableFill(t, imm);
      break;
    case TABLE_COPY:
      callRangeCopy(t, BUILTIN.table_copy, imm.index, imm.index2);
      break;
    case TABLE_INIT:
      callRangeCopy(t, BUILTIN.table_init, imm.index2, imm.index);
      break;
    case ELEM_DROP:
      callBuiltin(t, BUILTIN.elem_drop, [t.b.i32(imm.index)]);
      break;
    default:
      throw notCompiled(id, t.b.pos);
  }
}
