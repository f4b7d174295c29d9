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
import { idOf } from "../wasm/opcodes.ts";
import { branchWhen, trapHere } from "./control.ts";
import { notCompiled } from "./failures.ts";
import { recordOffset } from "./module_facts.ts";
import type { Translation } from "./translation.ts";

const { I32, REF } = TY;

const REF_NULL = idOf("ref.null");
const REF_IS_NULL = idOf("ref.is_null");
const REF_FUNC = idOf("ref.func");
const REF_AS_NON_NULL = idOf("ref.as_non_null");
const BR_ON_NULL = idOf("br_on_null");
const BR_ON_NON_NULL = idOf("br_on_non_null");

/** Translates the instruction of row `id`. */
export function translateReference(t: Translation, id: number, imm: Immediates): void {
  switch (id) {
    case REF_NULL:
      t.push(t.b.constant(REF, 0, 0));
      break;
    case REF_IS_NULL:
      t.push(isNull(t, t.pop()));
      break;
    case REF_FUNC:
      t.push(funcRef(t, imm.index));
      break;
    case REF_AS_NON_NULL:
      refAsNonNull(t);
      break;
    case BR_ON_NULL:
      branchOnNull(t, imm.index);
      break;
    case BR_ON_NON_NULL:
      branchOnNonNull(t, imm.index);
      break;
    default:
      throw notCompiled(id, t.b.pos);
  }
}

/** Reference to function `index`: the address of its record. */
export function funcRef(t: Translation, index: number): number {
  return t.b.pure(OP.CONTEXT, REF, 0, 0, 0, recordOffset(t.env, index));
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
function branchOnNull(t: Translation, label: number): void {
  const value = t.pop();
  branchWhen(t, isNull(t, value), label);
  if (t.reachable) t.push(value);
}

/** `br_on_non_null`: the label gets the reference; the fall-through path does not. */
function branchOnNonNull(t: Translation, label: number): void {
  branchWhen(t, t.b.eqz(isNull(t, t.stack[t.sp - 1])), label);
  if (t.reachable) t.pop();
}
