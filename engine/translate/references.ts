/**
 * References: null, functions, null tests and the branches on them (specification, 4.4.4). In: operands on the
 * translator's stack. Out: constants, comparisons, traps and branches.
 *
 * A reference is 64 bits: a funcref is the address of a function record, an externref a host handle, null is 0.
 */
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { TRAP } from "../base/traps.ts";
import type { Immediates } from "../wasm/immediates.ts";
import { branchWhen, trapHere } from "./control.ts";
import { recordOffset } from "./module_env.ts";
import type { Handler, Translation } from "./translation.ts";

const { I32, REF } = TY;

/** Reference to function `index`: the address of its record. */
export function funcRef(t: Translation, index: number): number {
  return t.b.pure(OP.CONTEXT, REF, 0, 0, 0, recordOffset(t.env, index));
}

function refNull(t: Translation): void {
  t.push(t.b.constant(REF, 0, 0));
}

function refIsNull(t: Translation): void {
  t.push(isNull(t, t.pop()));
}

/** An i32: 1 if reference `value` is null. */
export function isNull(t: Translation, value: number): number {
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

/** Handlers by mnemonic. */
export const REFERENCE_HANDLERS: Readonly<Record<string, Handler>> = {
  "ref.null": refNull,
  "ref.is_null": refIsNull,
  "ref.func": refFunc,
  "ref.as_non_null": refAsNonNull,
  "br_on_null": branchOnNull,
  "br_on_non_null": branchOnNonNull,
};
