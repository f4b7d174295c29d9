/**
 * Type tests and casts of references (specification, 4.4.4): ref.test, ref.cast, br_on_cast, br_on_cast_fail. In: the
 * operand, its static type and the target type. Out: those of the following checks that the static type does not
 * decide, in this order:
 *
 *     null        is the reference null?
 *     tag         low bits: i31, host handle, or object (gc_layout.ts: REF_TAG)
 *     type        the type id in the object's header (or function record) against the target's: by equality if the
 *                 target is exact or has no subtypes, else by the display in the type's descriptor (Cohen,
 *                 "Type-Extension Type Tests Can Be Performed In Constant Time", 1991)
 *
 * A cast to an object type that fails for null needs no null check: reading the header faults.
 */
import { CAST_TEST } from "./cast_state.ts";
import { CONTEXT, RECORD } from "../abi/context_layout.ts";
import { CELLS, DESCRIPTOR, DISPLAY_LENGTH, OBJECT, REF_TAG, TYPE_KIND } from "../abi/gc_layout.ts";
import { CLASS_CONSTANT, REGION, region } from "../ir/regions.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { TRAP } from "../base/traps.ts";
import type { Immediates } from "../wasm/immediates.ts";
import { idOf } from "../wasm/opcodes.ts";
import { inexact, isExact } from "../wasm/exact_heap.ts";
import { HEAP } from "../wasm/types.ts";
import { branchAhead, joinEdges, jumpAhead } from "./block_parameters.ts";
import { branch, branchWhen, trapHere } from "./control.ts";
import { notCompiled } from "./failures.ts";
import { heapMatches, topHeap } from "./heap_types.ts";
import type { Translation } from "./translation.ts";
import { bitsOf } from "./objects.ts";
import { isNull } from "./references.ts";

const { I32, I64 } = TY;
const CONSTANT_CONTEXT = region(REGION.CONTEXT, CLASS_CONSTANT);
const CONSTANT_POINTER = region(REGION.POINTER, CLASS_CONSTANT);
/** The low bits that distinguish objects from all other references of their hierarchy. */
export const OBJECT_TAG_MASK = 3;
const DESCRIPTOR_SHIFT: number = Math.log2(DESCRIPTOR.SIZE);

const { ALWAYS, NEVER, BY_TAG, BY_TYPE } = CAST_TEST;

/**
 * Sets the state of the cast (`t.cast`) of `value`, a reference of heap type `from`, null included if `nullable`, to
 * heap type `to`: the test that decides it.
 */
export function classify(t: Translation, from: number, nullable: boolean, to: number, value: number): void {
  const { env } = t;
  t.cast.sourceNullable = nullable;
  t.cast.tagged = false;
  if (heapMatches(env, from, to)) t.cast.kind = ALWAYS;
  else if (!heapMatches(env, to, from) || isBottom(to)) t.cast.kind = NEVER;
  else if (to === HEAP.i31 || to === HEAP.eq) t.cast.kind = BY_TAG;
  else {
    t.cast.kind = BY_TYPE;
    t.cast.tagged = topHeap(env, to) === HEAP.any && heapMatches(env, HEAP.i31, from);
  }
  // A constant is null or an i31, possibly converted to an externref.
  if (!t.b.isConst(value)) return;
  t.cast.sourceNullable = t.b.isZero(value);
  t.cast.kind = !t.cast.sourceNullable && (heapMatches(env, HEAP.i31, to) || to === HEAP.extern) ? ALWAYS : NEVER;
}

function isBottom(heap: number): boolean {
  return heap === HEAP.none || heap === HEAP.nofunc || heap === HEAP.noextern || heap === HEAP.noexn ||
    heap === HEAP.nocont;
}

export function lowBits(t: Translation, value: number, mask: number): number {
  const { b } = t;
  return b.binary(OP.AND, I32, b.unary(OP.WRAP, I32, bitsOf(t, value)), b.i32(mask));
}

/**
 * True (an i32) if `value` is an i31, or for `heap` eq any reference but a host value. `nullPasses` is the answer for
 * null.
 */
function tagCondition(t: Translation, value: number, heap: number, nullPasses: boolean): number {
  const { b } = t;
  if (heap === HEAP.i31) {
    const test = lowBits(t, value, REF_TAG.I31);
    return t.cast.sourceNullable && nullPasses ? b.binary(OP.OR, I32, test, isNull(t, value)) : test;
  }
  const test = b.binary(OP.NE, I32, lowBits(t, value, OBJECT_TAG_MASK), b.i32(REF_TAG.HOST));
  if (!t.cast.sourceNullable || nullPasses) return test;
  return b.binary(OP.AND, I32, test, b.eqz(isNull(t, value)));
}

/**
 * Tests if the object or function `value` is of type `heap`: an i32, 1 for yes if `op` is EQ and for no if it is NE. If
 * `value` may be null, reading its type traps with `nullCode`.
 */
export function typeCondition(t: Translation, value: number, heap: number, op: number, nullCode: number): number {
  const isFunc = topHeap(t.env, heap) === HEAP.func;
  const offset = isFunc ? RECORD.TYPE_ID : OBJECT.TYPE_ID;
  const id = t.b.emit(OP.LOAD, I32, value, nullCode, CONSTANT_POINTER, offset);
  if (heap >= 0) return typeMatches(t, id, heap, op);
  const wanted = heap === HEAP.struct ? TYPE_KIND.STRUCT : TYPE_KIND.ARRAY;
  return t.b.binary(op, I32, loadOfDescriptor(t, id, DESCRIPTOR.KIND), t.b.i32(wanted));
}

/**
 * Tests if the type with canonical id `id` (i32) is type `heap` of the module or, unless that is exact, a subtype of
 * it: an i32, 1 for yes if `op` is EQ and for no if it is NE.
 */
export function typeMatches(t: Translation, id: number, heap: number, op: number): number {
  const { b, env } = t;
  const index = inexact(heap);
  const expected = b.emit(OP.LOAD, I32, 0, 0, CONSTANT_CONTEXT, env.typeIdsOffset + index * 4);
  if (isExact(heap) || env.typeIsFinal[index] !== 0) return b.binary(op, I32, id, expected);
  const depth = env.typeDepth[index];
  if (depth < DISPLAY_LENGTH) {
    return b.binary(op, I32, loadOfDescriptor(t, id, DESCRIPTOR.DISPLAY + depth * 4), expected);
  }
  const deep = b.emit(OP.LOAD, I64, descriptorOf(t, id), 0, CONSTANT_POINTER, DESCRIPTOR.DEEP);
  return b.binary(op, I32, b.emit(OP.LOAD, I32, deep, 0, CONSTANT_POINTER, depth * 4), expected);
}

function descriptorOf(t: Translation, id: number): number {
  const { b } = t;
  const cells = b.emit(OP.LOAD, I64, 0, 0, CONSTANT_CONTEXT, CONTEXT.HEAP);
  const table = b.emit(OP.LOAD, I64, cells, 0, CONSTANT_POINTER, CELLS.TYPES);
  const shift = b.i64(DESCRIPTOR_SHIFT, 0);
  return b.binary(OP.ADD, I64, table, b.binary(OP.SHL, I64, b.unary(OP.EXTEND_U, I64, id), shift));
}

function loadOfDescriptor(t: Translation, id: number, offset: number): number {
  return t.b.emit(OP.LOAD, I32, descriptorOf(t, id), 0, CONSTANT_POINTER, offset);
}

function refTest(t: Translation, imm: Immediates): void {
  const { b } = t;
  const { heap, nullable } = imm;
  const value = t.pop();
  classify(t, imm.heap2, imm.nullable2, heap, value);
  if (t.cast.kind === ALWAYS) t.push(t.cast.sourceNullable && !nullable ? b.eqz(isNull(t, value)) : b.i32(1));
  else if (t.cast.kind === NEVER) t.push(t.cast.sourceNullable && nullable ? isNull(t, value) : b.i32(0));
  else if (t.cast.kind === BY_TAG) t.push(b.binary(OP.NE, I32, tagCondition(t, value, heap, nullable), b.i32(0)));
  else {
    // The type must not be read before the reference is known to have one.
    const exits: number[] = [];
    if (t.cast.sourceNullable) exits.push(branchAhead(t, isNull(t, value), b.i32(nullable ? 1 : 0)));
    if (t.cast.tagged) exits.push(branchAhead(t, lowBits(t, value, OBJECT_TAG_MASK), b.i32(0)));
    const result = typeCondition(t, value, heap, OP.EQ, 0);
    if (exits.length === 0) {
      t.push(result);
      return;
    }
    exits.push(jumpAhead(t, result));
    t.push(joinEdges(t, exits, I32));
  }
}

function refCast(t: Translation, imm: Immediates): void {
  const { b } = t;
  const { heap, nullable } = imm;
  const value = t.stack[t.sp - 1];
  classify(t, imm.heap2, imm.nullable2, heap, value);
  if (t.cast.kind === ALWAYS) {
    if (t.cast.sourceNullable && !nullable) failIf(t, isNull(t, value));
  } else if (t.cast.kind === NEVER) {
    if (t.cast.sourceNullable && nullable) failIf(t, b.eqz(isNull(t, value)));
    else trapHere(t, TRAP.CAST_FAILURE);
  } else if (t.cast.kind === BY_TAG) {
    failIf(t, b.eqz(tagCondition(t, value, heap, nullable)));
  } else {
    const past = t.cast.sourceNullable && nullable ? branchAhead(t, isNull(t, value)) : -1;
    if (t.cast.tagged) failIf(t, lowBits(t, value, OBJECT_TAG_MASK));
    failIf(t, typeCondition(t, value, heap, OP.NE, t.cast.sourceNullable && !nullable ? TRAP.CAST_FAILURE : 0));
    if (past >= 0) joinEdges(t, [past, jumpAhead(t, 0)], 0);
  }
}

/** Traps if `condition` holds. */
function failIf(t: Translation, condition: number): void {
  const { b, f } = t;
  if (b.isConst(condition) && f.imm[condition] !== 0) trapHere(t, TRAP.CAST_FAILURE);
  else b.trapIf(condition, TRAP.CAST_FAILURE);
}

/** A branch on a cast of `value`, which `passes` or fails, unless that is null. */
export function branchDecided(t: Translation, passes: boolean, imm: Immediates, onFail: boolean, value: number): void {
  const { index: label, nullable2: nullable } = imm;
  // Null may take the other path.
  if (t.cast.sourceNullable && nullable !== passes) {
    branchWhen(t, nullable !== onFail ? isNull(t, value) : t.b.eqz(isNull(t, value)), label);
  } else if (passes !== onFail) branch(t, label);
}

/** br_on_cast, and br_on_cast_fail with `onFail`: the reference stays on the stack on both paths. */
function branchOnCast(t: Translation, imm: Immediates, onFail: boolean): void {
  const { b } = t;
  const { index: label, heap2: heap, nullable2: nullable } = imm;
  const value = t.stack[t.sp - 1];
  classify(t, imm.heap, imm.nullable, heap, value);
  if (t.cast.kind === ALWAYS || t.cast.kind === NEVER) {
    branchDecided(t, t.cast.kind === ALWAYS, imm, onFail, value);
    return;
  }
  if (t.cast.kind === BY_TAG) {
    const passes = tagCondition(t, value, heap, nullable);
    branchWhen(t, onFail ? b.eqz(passes) : passes, label);
    return;
  }
  const kept: number[] = [];
  if (t.cast.sourceNullable) leaveCast(t, isNull(t, value), nullable !== onFail, label, kept);
  if (t.cast.tagged) leaveCast(t, lowBits(t, value, OBJECT_TAG_MASK), onFail, label, kept);
  branchWhen(t, typeCondition(t, value, heap, onFail ? OP.NE : OP.EQ, 0), label);
  if (kept.length === 0) return;
  if (t.reachable) kept.push(jumpAhead(t, 0));
  joinEdges(t, kept, 0);
  t.reachable = true;
}

/**
 * If `condition` holds, decides a branch on a cast: it goes to `label` if `isTaken`, else past it, by an edge in
 * `kept`.
 */
export function leaveCast(t: Translation, condition: number, isTaken: boolean, label: number, kept: number[]): void {
  if (isTaken) branchWhen(t, condition, label);
  else kept.push(branchAhead(t, condition));
}

const REF_TEST = idOf("ref.test");
const REF_TEST_NULL = idOf("ref.test(null)");
const REF_CAST = idOf("ref.cast");
const REF_CAST_NULL = idOf("ref.cast(null)");
const BR_ON_CAST = idOf("br_on_cast");
const BR_ON_CAST_FAIL = idOf("br_on_cast_fail");

/** Translates the instruction of row `id`. */
export function translateCast(t: Translation, id: number, imm: Immediates): void {
  switch (id) {
    case REF_TEST:
    case REF_TEST_NULL:
      refTest(t, imm);
      break;
    case REF_CAST:
    case REF_CAST_NULL:
      refCast(t, imm);
      break;
    case BR_ON_CAST:
      branchOnCast(t, imm, false);
      break;
    case BR_ON_CAST_FAIL:
      branchOnCast(t, imm, true);
      break;
    default:
      throw notCompiled(id, t.b.pos);
  }
}
