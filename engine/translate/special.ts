/**
 * Globals, references and tables (specification, 4.4.3, 4.4.5, 4.4.6). In: operands on the translator's stack. Out:
 * accesses of the VM context and of table elements, and runtime calls for rare operations.
 *
 * A reference is 64 bits: a funcref is the address of a function record, an externref a host handle, null is 0.
 */
import { TABLE } from "../abi/context_layout.ts";
import { CLASS_CONSTANT, REGION, region } from "../ir/function.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { TRAP } from "../traps.ts";
import type { Immediates } from "../wasm/immediates.ts";
import { I64 as INDEX64 } from "../wasm/types.ts";
import { checkTableIndex, elementAddress } from "./calls.ts";
import { branchWhen, trapHere } from "./control.ts";
import type { Handler, Translation } from "./translation.ts";
import { callBuiltin } from "./memory.ts";
import { GLOBAL, recordOffset } from "./module_env.ts";

const { I32, I64, NONE, REF } = TY;
const CONSTANT_CONTEXT = region(REGION.CONTEXT, CLASS_CONSTANT);

/** `global.get` */
export function translateGlobalGet(t: Translation, index: number): void {
  const { b, env } = t;
  const ty = env.globalTy[index];
  switch (env.globalKind[index]) {
    case GLOBAL.KNOWN: {
      const value = env.globalValues[index]!;
      t.push(value.func >= 0 ? funcRef(t, value.func) : b.constant(ty, value.lo, value.hi));
      return;
    }
    case GLOBAL.POINTER:
      t.push(b.emit(OP.LOAD, ty, cellPointer(t, index), 0, env.globalRegion[index], 0));
      return;
    default:
      t.push(b.emit(OP.LOAD, ty, 0, 0, env.globalRegion[index], env.globalOffset[index]));
  }
}

/** `global.set` */
export function translateGlobalSet(t: Translation, index: number): void {
  const { b, env } = t;
  const value = t.pop();
  if (env.globalKind[index] === GLOBAL.POINTER) {
    b.emit(OP.STORE, NONE, cellPointer(t, index), value, env.globalRegion[index], 0);
  } else {
    b.emit(OP.STORE, NONE, 0, value, env.globalRegion[index], env.globalOffset[index]);
  }
}

function cellPointer(t: Translation, index: number): number {
  return t.b.emit(OP.LOAD, I64, 0, 0, CONSTANT_CONTEXT, t.env.globalOffset[index]);
}

/** Reference to function `index`: the address of its record. */
function funcRef(t: Translation, index: number): number {
  return t.b.pure(OP.CONTEXT, REF, 0, 0, 0, recordOffset(t.env, index));
}

function refNull(t: Translation): void {
  t.push(t.b.constant(REF, 0, 0));
}

function refIsNull(t: Translation): void {
  t.push(isNull(t, t.pop()));
}

/** An i32: 1 if reference `value` is null. */
function isNull(t: Translation, value: number): number {
  // An address in the context is never 0.
  if (t.f.op[value] === OP.CONTEXT) return t.b.i32(0);
  return t.b.binary(OP.EQ, I32, value, t.b.constant(REF, 0, 0));
}

function refAsNonNull(t: Translation): void {
  const condition = isNull(t, t.stack[t.sp - 1]);
  const { b, f } = t;
  if (b.isConst(condition) && f.imm[condition] !== 0) trapHere(t, TRAP.NULL_REFERENCE);
  else b.trapIf(condition, TRAP.NULL_REFERENCE);
}

/** `br_on_null`: the label does not get the reference; the fall-through path keeps it. */
function branchOnNull(t: Translation, imm: Immediates): void {
  const value = t.pop();
  branchWhen(t, isNull(t, value), imm.index);
  if (t.reachable) t.push(value);
}

/** `br_on_non_null`: the label gets the reference; the fall-through path does not. */
function branchOnNonNull(t: Translation, imm: Immediates): void {
  branchWhen(t, t.b.eqz(isNull(t, t.stack[t.sp - 1])), imm.index);
  if (t.reachable) t.pop();
}

function refFunc(t: Translation, imm: Immediates): void {
  t.push(funcRef(t, imm.index));
}

function tableGet(t: Translation, imm: Immediates): void {
  const index = t.pop();
  checkTableIndex(t, imm.index, index, TRAP.TABLE_OUT_OF_BOUNDS);
  t.push(t.b.emit(OP.LOAD, REF, elementAddress(t, imm.index, index), 0, t.env.tableRegion[imm.index], 0));
}

function tableSet(t: Translation, imm: Immediates): void {
  const value = t.pop();
  const index = t.pop();
  checkTableIndex(t, imm.index, index, TRAP.TABLE_OUT_OF_BOUNDS);
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

/** Pops an i32 or i64 and widens it to i64. */
function popWide(t: Translation): number {
  const value = t.pop();
  return t.f.ty[value] === I64 ? value : t.b.unary(OP.EXTEND_U, I64, value);
}

function tableGrow(t: Translation, imm: Immediates): void {
  const delta = popWide(t);
  const value = t.pop();
  const old = callBuiltin(t, "table_grow", t.b.i32(imm.index), value, delta);
  t.push(is64(t, imm.index) ? old : t.b.unary(OP.WRAP, I32, old));
}

function tableFill(t: Translation, imm: Immediates): void {
  const count = popWide(t);
  const value = t.pop();
  const start = popWide(t);
  callBuiltin(t, "table_fill", t.b.i32(imm.index), start, value, count);
}

function tableCopy(t: Translation, imm: Immediates): void {
  const count = popWide(t);
  const source = popWide(t);
  const target = popWide(t);
  callBuiltin(t, "table_copy", t.b.i32(imm.index), t.b.i32(imm.index2), target, source, count);
}

function tableInit(t: Translation, imm: Immediates): void {
  const count = popWide(t);
  const source = popWide(t);
  const target = popWide(t);
  callBuiltin(t, "table_init", t.b.i32(imm.index2), t.b.i32(imm.index), target, source, count);
}

function elemDrop(t: Translation, imm: Immediates): void {
  callBuiltin(t, "elem_drop", t.b.i32(imm.index));
}

/** Handlers by mnemonic. */
export const SPECIAL_HANDLERS: Readonly<Record<string, Handler>> = {
  "ref.null": refNull,
  "ref.is_null": refIsNull,
  "ref.func": refFunc,
  "ref.as_non_null": refAsNonNull,
  "br_on_null": branchOnNull,
  "br_on_non_null": branchOnNonNull,
  "table.get": tableGet,
  "table.set": tableSet,
  "table.size": tableSize,
  "table.grow": tableGrow,
  "table.fill": tableFill,
  "table.copy": tableCopy,
  "table.init": tableInit,
  "elem.drop": elemDrop,
};
