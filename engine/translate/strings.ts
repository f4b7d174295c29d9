/**
 * Calls of string builtins (string_layout.ts): an inline fast path reads the table of known strings, and everything
 * else is a call, which is rare. In: the arguments on the translator's stack. Out: the result on the stack.
 *
 * If an import turns out not to be the builtin, the table that the context refers to is empty, so the call is always
 * made.
 *
 * Invariant: the guest cannot be parked between the loads of one fast path, and no loaded address is used after the
 * join with the slow path, which has left compiled code: strings move while the runtime has control.
 */
import { STRINGS } from "../abi/context_layout.ts";
import { REF_TAG, REF_TAG_MASK } from "../abi/gc_layout.ts";
import { BLOCK_COLD } from "../ir/function.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { ENTRY_SHIFT, NO_STRING, OTHER_WORD, STRING_BUILTIN_NAMES, STRING_ENTRY } from "../abi/string_layout.ts";
import { branchAhead, joinEdges, jumpAhead } from "./block_parameters.ts";
import { emitCall } from "./emit_call.ts";
import { builtinImport } from "./module_facts.ts";
import { bitsOf } from "./objects.ts";
import type { Translation } from "./translation.ts";

const { I32, I64, REF } = TY;

const LENGTH = STRING_BUILTIN_NAMES.indexOf("length");
const CAST = STRING_BUILTIN_NAMES.indexOf("cast");
const TEST = STRING_BUILTIN_NAMES.indexOf("test");
const CHAR_CODE_AT = STRING_BUILTIN_NAMES.indexOf("charCodeAt");
const CODE_POINT_AT = STRING_BUILTIN_NAMES.indexOf("codePointAt");

/** Address of a reference's entry; that of entry 0 for references other than host handles. */
function entryOf(t: Translation, reference: number): number {
  const { b, env } = t;
  const origin = b.emit(OP.LOAD, I64, 0, 0, env.stringContextRegion, env.stringsOffset + STRINGS.ORIGIN);
  const word = bitsOf(t, reference);
  const tag = b.binary(OP.AND, I32, b.unary(OP.WRAP, I32, word), b.i32(REF_TAG_MASK));
  const known = b.select(I64, word, b.i64(OTHER_WORD, 0), b.binary(OP.EQ, I32, tag, b.i32(REF_TAG.HOST)));
  return b.binary(OP.ADD, I64, origin, b.binary(OP.SHL, I64, known, b.i64(ENTRY_SHIFT, 0)));
}

function field(t: Translation, entry: number, offset: number): number {
  return t.b.emit(OP.LOAD, I32, entry, 0, t.env.stringRegion, offset);
}

/** Makes the call if `condition` holds: `exits` gets the edge to it. */
function leave(t: Translation, condition: number, exits: number[]): void {
  exits.push(branchAhead(t, condition));
}

/** The length of the string of `entry`; leaves if it is not a string. */
function lengthOf(t: Translation, entry: number, exits: number[]): number {
  const { b } = t;
  const length = b.binary(OP.SUB, I32, field(t, entry, STRING_ENTRY.LENGTH), b.i32(1));
  leave(t, b.binary(OP.GE_U, I32, length, b.i32(NO_STRING - 1)), exits);
  return length;
}

/** The code unit at `index` of the string of `entry`; leaves if it is out of range. */
function unitOf(t: Translation, entry: number, index: number, exits: number[]): number {
  const { b, env } = t;
  leave(t, b.binary(OP.GE_U, I32, index, field(t, entry, STRING_ENTRY.READABLE)), exits);
  const units = b.emit(OP.LOAD, I64, entry, 0, env.stringRegion, STRING_ENTRY.UNITS);
  const offset = b.binary(OP.SHL, I64, b.unary(OP.EXTEND_U, I64, index), b.i64(1, 0));
  return b.emit(OP.LOAD16_U, I32, b.binary(OP.ADD, I64, units, offset), 0, env.stringRegion, 0);
}

/** Whether builtin `k` has a fast path. */
function hasFastPath(k: number): boolean {
  return k === LENGTH || k === CAST || k === TEST || k === CHAR_CODE_AT || k === CODE_POINT_AT;
}

/** The fast path of builtin `k` with its arguments from operand `at` on: leaves where the call is required. */
function fastPath(t: Translation, k: number, at: number, exits: number[]): number {
  const { b, stack } = t;
  const value = stack[at];
  const entry = entryOf(t, value);
  if (k === LENGTH) return lengthOf(t, entry, exits);
  if (k === CAST) {
    lengthOf(t, entry, exits);
    return value;
  }
  if (k === TEST) {
    const stored = field(t, entry, STRING_ENTRY.LENGTH);
    leave(t, b.eqz(stored), exits);
    return b.binary(OP.NE, I32, stored, b.i32(NO_STRING));
  }
  const unit = unitOf(t, entry, stack[at + 1], exits);
  if (k === CODE_POINT_AT) {
    leave(t, b.binary(OP.EQ, I32, b.binary(OP.AND, I32, unit, b.i32(0xf800)), b.i32(0xd800)), exits);
  }
  return unit;
}

/** Translates the call of imported function `funcIndex`, which may be builtin `k`. */
export function translateStringCall(t: Translation, funcIndex: number, k: number): void {
  const { b, env, f, stack } = t;
  const index = builtinImport(env, k);
  const signature = env.funcSignature[funcIndex];
  if (!hasFastPath(k)) {
    emitCall(t, OP.CALL_IMPORT, index, signature, 0, false);
    return;
  }
  const exits: number[] = [];
  const known = fastPath(t, k, t.sp - env.signatures[signature].params.length, exits);
  const ends: number[] = [jumpAhead(t, known)];
  const cold = b.openBlock(BLOCK_COLD, false);
  for (const e of exits) f.edgeTo[e] = cold;
  emitCall(t, OP.CALL_IMPORT, index, signature, 0, false);
  ends.push(jumpAhead(t, stack[t.sp - 1]));
  stack[t.sp - 1] = joinEdges(t, ends, k === CAST ? REF : I32);
}
