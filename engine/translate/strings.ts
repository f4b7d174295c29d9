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
import { stringBuiltinIndex, STRINGS } from "../abi/context_layout.ts";
import { REF_TAG, REF_TAG_MASK } from "../abi/gc_layout.ts";
import { BLOCK_COLD } from "../ir/function.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import {
  ENTRY_SHIFT,
  NO_STRING,
  OTHER_WORD,
  STRING_BUILTIN_NAMES,
  STRING_ENTRY,
  type StringBuiltin,
} from "../abi/string_layout.ts";
import { branchAhead, joinEdges, jumpAhead } from "./block_parameters.ts";
import type { Translation } from "./translation.ts";
import { bitsOf } from "./objects.ts";

const { I32, I64, REF } = TY;

/**
 * The fast path of a builtin, given its arguments: uses `leave` for conditions that require the call, and returns the
 * result.
 */
type FastPath = (t: Translation, args: readonly number[], leave: (condition: number) => void) => number;

/** Address of a reference's entry; that of entry 0 for references other than host handles. */
function entryOf(t: Translation, reference: number): number {
  const { b, env } = t;
  const origin = b.emit(OP.LOAD, I64, 0, 0, env.stringContextRegion, env.layout.stringsOffset + STRINGS.ORIGIN);
  const word = bitsOf(t, reference);
  const tag = b.binary(OP.AND, I32, b.unary(OP.WRAP, I32, word), b.i32(REF_TAG_MASK));
  const known = b.select(I64, word, b.i64(OTHER_WORD, 0), b.binary(OP.EQ, I32, tag, b.i32(REF_TAG.HOST)));
  return b.binary(OP.ADD, I64, origin, b.binary(OP.SHL, I64, known, b.i64(ENTRY_SHIFT, 0)));
}

function field(t: Translation, entry: number, offset: number): number {
  return t.b.emit(OP.LOAD, I32, entry, 0, t.env.stringRegion, offset);
}

/** The length of the string of `entry`; leaves if it is not a string. */
function lengthOf(t: Translation, entry: number, leave: (condition: number) => void): number {
  const { b } = t;
  const length = b.binary(OP.SUB, I32, field(t, entry, STRING_ENTRY.LENGTH), b.i32(1));
  leave(b.binary(OP.GE_U, I32, length, b.i32(NO_STRING - 1)));
  return length;
}

/** The code unit at `index` of the string of `entry`; leaves if it is out of range. */
function unitOf(t: Translation, entry: number, index: number, leave: (condition: number) => void): number {
  const { b, env } = t;
  leave(b.binary(OP.GE_U, I32, index, field(t, entry, STRING_ENTRY.READABLE)));
  const units = b.emit(OP.LOAD, I64, entry, 0, env.stringRegion, STRING_ENTRY.UNITS);
  const offset = b.binary(OP.SHL, I64, b.unary(OP.EXTEND_U, I64, index), b.i64(1, 0));
  return b.emit(OP.LOAD16_U, I32, b.binary(OP.ADD, I64, units, offset), 0, env.stringRegion, 0);
}

const FAST_PATHS: Partial<Record<StringBuiltin, FastPath>> = {
  length: (t, [string], leave) => lengthOf(t, entryOf(t, string), leave),
  cast: (t, [string], leave) => {
    lengthOf(t, entryOf(t, string), leave);
    return string;
  },
  test: (t, [value], leave) => {
    const { b } = t;
    const stored = field(t, entryOf(t, value), STRING_ENTRY.LENGTH);
    leave(b.eqz(stored));
    return b.binary(OP.NE, I32, stored, b.i32(NO_STRING));
  },
  charCodeAt: (t, [string, index], leave) => unitOf(t, entryOf(t, string), index, leave),
  codePointAt: (t, [string, index], leave) => {
    const { b } = t;
    const unit = unitOf(t, entryOf(t, string), index, leave);
    leave(b.binary(OP.EQ, I32, b.binary(OP.AND, I32, unit, b.i32(0xf800)), b.i32(0xd800)));
    return unit;
  },
};

/** Result type of builtins with a fast path. */
function resultType(name: StringBuiltin): number {
  return name === "cast" ? REF : I32;
}

/**
 * Translates the call of imported function `funcIndex` if it may be a builtin. `call` emits a call of an import by its
 * number, with the arguments on the stack, and pushes its result.
 */
export function translateStringCall(t: Translation, funcIndex: number, call: (index: number) => void): boolean {
  const { b, env, f, stack } = t;
  const k = env.stringBuiltin[funcIndex];
  if (k < 0) return false;
  const name = STRING_BUILTIN_NAMES[k];
  const index = stringBuiltinIndex(env.layout, k);
  const fastPath = FAST_PATHS[name];
  if (fastPath === undefined) {
    call(index);
    return true;
  }
  const params = env.signatures[env.funcSignature[funcIndex]].params.length;
  const args = Array.from(stack.subarray(t.sp - params, t.sp));
  const exits: number[] = [];
  const known = fastPath(t, args, (condition) => exits.push(branchAhead(t, condition)));
  const ends = [jumpAhead(t, known)];
  const cold = b.openBlock(BLOCK_COLD, false);
  for (const e of exits) f.edgeTo[e] = cold;
  call(index);
  ends.push(jumpAhead(t, stack[t.sp - 1]));
  stack[t.sp - 1] = joinEdges(t, ends, resultType(name));
  return true;
}
