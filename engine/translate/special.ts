/**
 * Globals, references and tables (specification, 4.4.3, 4.4.5, 4.4.6). In: operands on the translator's stack. Out: accesses
 * of the VM context and of table elements, and calls of runtime routines for what is rare.
 *
 * A reference is 64 bits: a funcref is the address of a function record, an externref a host handle, null is 0.
 */
import { TABLE } from "../context_layout.ts";
import { CLASS_CONSTANT, REGION, region } from "../ir/function.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { TRAP } from "../traps.ts";
import type { Immediates } from "../wasm/immediates.ts";
import { checkTableIndex, elementAddress } from "./calls.ts";
import type { FunctionTranslator, Handler } from "./function.ts";
import { callBuiltin } from "./memory.ts";
import { GLOBAL, recordOffset } from "./module_env.ts";

const { I32, I64, NONE, REF } = TY;
const CONSTANT_CONTEXT = region(REGION.CONTEXT, CLASS_CONSTANT);

/** `global.get` */
export function translateGlobalGet(t: FunctionTranslator, index: number): void {
  const { b, env } = t;
  const ty = env.globalTy[index]!;
  switch (env.globalKind[index]) {
    case GLOBAL.KNOWN: {
      const value = env.globalValues[index]!;
      t.push(value.func >= 0 ? funcRef(t, value.func) : b.constant(ty, value.lo, value.hi));
      return;
    }
    case GLOBAL.POINTER:
      t.push(b.emit(OP.LOAD, ty, cellPointer(t, index), 0, env.globalRegion[index]!, 0));
      return;
    default:
      t.push(b.emit(OP.LOAD, ty, 0, 0, env.globalRegion[index]!, env.globalOffset[index]!));
  }
}

/** `global.set` */
export function translateGlobalSet(t: FunctionTranslator, index: number): void {
  const { b, env } = t;
  const value = t.pop();
  if (env.globalKind[index] === GLOBAL.POINTER) {
    b.emit(OP.STORE, NONE, cellPointer(t, index), value, env.globalRegion[index]!, 0);
  } else {
    b.emit(OP.STORE, NONE, 0, value, env.globalRegion[index]!, env.globalOffset[index]!);
  }
}

function cellPointer(t: FunctionTranslator, index: number): number {
  return t.b.emit(OP.LOAD, I64, 0, 0, CONSTANT_CONTEXT, t.env.globalOffset[index]!);
}

/** Reference to function `index`: the address of its record. */
function funcRef(t: FunctionTranslator, index: number): number {
  return t.b.pure(OP.CONTEXT, REF, 0, 0, 0, recordOffset(t.env, index));
}

function refNull(t: FunctionTranslator): void {
  t.push(t.b.constant(REF, 0, 0));
}

function refIsNull(t: FunctionTranslator): void {
  t.push(t.b.binary(OP.EQ, I32, t.pop(), t.b.constant(REF, 0, 0)));
}

function refFunc(t: FunctionTranslator, imm: Immediates): void {
  t.push(funcRef(t, imm.index));
}

function tableGet(t: FunctionTranslator, imm: Immediates): void {
  const index = t.pop();
  checkTableIndex(t, imm.index, index, TRAP.TABLE_OUT_OF_BOUNDS);
  t.push(t.b.emit(OP.LOAD, REF, elementAddress(t, imm.index, index), 0, t.env.tableRegion[imm.index]!, 0));
}

function tableSet(t: FunctionTranslator, imm: Immediates): void {
  const value = t.pop();
  const index = t.pop();
  checkTableIndex(t, imm.index, index, TRAP.TABLE_OUT_OF_BOUNDS);
  t.b.emit(OP.STORE, NONE, elementAddress(t, imm.index, index), value, t.env.tableRegion[imm.index]!, 0);
}

function tableSize(t: FunctionTranslator, imm: Immediates): void {
  const { b, env } = t;
  const { index } = imm;
  const fixed = env.tableFixedLength[index]!;
  t.push(
    fixed >= 0
      ? b.i32(fixed)
      : b.emit(OP.LOAD, I32, 0, 0, env.tableSizeRegion[index]!, env.tableOffset[index]! + TABLE.LENGTH),
  );
}

/** Pops an i32 or i64 and widens it for a routine. */
function popWide(t: FunctionTranslator): number {
  const value = t.pop();
  return t.f.ty[value] === I64 ? value : t.b.unary(OP.EXTEND_U, I64, value);
}

function tableGrow(t: FunctionTranslator, imm: Immediates): void {
  const delta = popWide(t);
  const value = t.pop();
  t.push(t.b.unary(OP.WRAP, I32, callBuiltin(t, "table_grow", t.b.i32(imm.index), value, delta)));
}

function tableFill(t: FunctionTranslator, imm: Immediates): void {
  const count = popWide(t);
  const value = t.pop();
  const start = popWide(t);
  callBuiltin(t, "table_fill", t.b.i32(imm.index), start, value, count);
}

function tableCopy(t: FunctionTranslator, imm: Immediates): void {
  const count = popWide(t);
  const source = popWide(t);
  const target = popWide(t);
  callBuiltin(t, "table_copy", t.b.i32(imm.index), t.b.i32(imm.index2), target, source, count);
}

function tableInit(t: FunctionTranslator, imm: Immediates): void {
  const count = popWide(t);
  const source = popWide(t);
  const target = popWide(t);
  callBuiltin(t, "table_init", t.b.i32(imm.index2), t.b.i32(imm.index), target, source, count);
}

function elemDrop(t: FunctionTranslator, imm: Immediates): void {
  callBuiltin(t, "elem_drop", t.b.i32(imm.index));
}

/** Handlers by mnemonic. */
export const SPECIAL_HANDLERS: Readonly<Record<string, Handler>> = {
  "ref.null": refNull,
  "ref.is_null": refIsNull,
  "ref.func": refFunc,
  "table.get": tableGet,
  "table.set": tableSet,
  "table.size": tableSize,
  "table.grow": tableGrow,
  "table.fill": tableFill,
  "table.copy": tableCopy,
  "table.init": tableInit,
  "elem.drop": elemDrop,
};
