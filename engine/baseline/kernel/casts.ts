/**
 * Type tests and casts of references in live code (translate/casts.ts). In: the static type of the operand and the
 * target type. Out: the checks that the static type does not decide, in this order: null, the tag in the low bits, the
 * type in the header of the object. A cast that compares descriptors (translate/descriptors.ts) makes these checks with
 * the target type without its exactness, and compares the object's descriptor, a field of that type, at the end.
 *
 * Invariant: all registers are allocated before the first branch, since an allocation may store an operand to its home.
 */
import { compareType, loadDescriptor } from "./calls.ts";
import * as code from "./code.ts";
import * as cond from "./conditions.ts";
import {
  DESCRIPTOR_IS_ARRAY,
  DESCRIPTOR_IS_STRUCT,
  DESCRIPTOR_KIND,
  OBJECT_TYPE_ID,
  RECORD_TYPE_ID,
  REF_TAG_HOST,
  REF_TAG_I31,
  TRAP_CAST_FAILURE,
  TRAP_DESCRIPTOR_CAST,
  TRAP_NULL_DESCRIPTOR,
} from "./constants.ts";
import { branchIf } from "./control.ts";
import * as machine from "./machine.ts";
import * as layout from "./layout.ts";
import { type i32, load32 } from "./memory.ts";
import * as operands from "./operands.ts";
import * as op from "./operations.ts";
import { instructionOffset } from "./reader.ts";
import {
  HEAP_ANY,
  HEAP_EQ,
  HEAP_FUNC,
  HEAP_I31,
  HEAP_STRUCT,
  heapMatches,
  heapOf,
  I32,
  I64,
  inexact,
  isBottomHeap,
  isNullable,
  refType,
  topHeap,
  typeRow,
} from "./types.ts";

/** The low bits that distinguish objects from all other references of their hierarchy. */
const OBJECT_TAG_MASK: i32 = 3;

// Tests of a reference that is not null, as in translate/cast_state.ts.
const ALWAYS: i32 = 0;
const NEVER: i32 = 1;
const BY_TAG: i32 = 2;
const BY_TYPE: i32 = 3;

/** The test that decides whether a reference of heap type `from` is of heap type `to`. */
function testOf(from: i32, to: i32): i32 {
  if (heapMatches(from, to)) return ALWAYS;
  if (!heapMatches(to, from) || isBottomHeap(to)) return NEVER;
  return to === HEAP_I31 || to === HEAP_EQ ? BY_TAG : BY_TYPE;
}

/** Whether a reference of heap type `from` needs a tag check before the type in its header is read. */
function isTagged(from: i32, to: i32): boolean {
  return topHeap(to) === HEAP_ANY && heapMatches(HEAP_I31, from);
}

/** Compares the tag of the non-null reference in x with heap type i31 or eq; returns the condition for a match. */
function testTag(x: i32, to: i32): i32 {
  if (to === HEAP_I31) {
    machine.compareBits(x, REF_TAG_I31);
    return cond.NE;
  }
  machine.binaryImmediate(op.AND, 0, machine.SCRATCH, x, OBJECT_TAG_MASK);
  machine.compareImmediate(0, machine.SCRATCH, REF_TAG_HOST);
  return cond.NE;
}

/**
 * Compares the type in the header of the object or function record in x with heap type `to`: EQ if it matches. Changes
 * t.
 */
function testHeader(x: i32, to: i32, t: i32): void {
  machine.loadFrom(I32, machine.SCRATCH, x, topHeap(to) === HEAP_FUNC ? RECORD_TYPE_ID : OBJECT_TYPE_ID);
  if (to >= 0) {
    compareType(to, t);
    return;
  }
  loadDescriptor(t);
  machine.loadFrom(I32, machine.SCRATCH, t, DESCRIPTOR_KIND);
  machine.compareImmediate(0, machine.SCRATCH, to === HEAP_STRUCT ? DESCRIPTOR_IS_STRUCT : DESCRIPTOR_IS_ARRAY);
}

/** Compares the descriptor of the object in x, of type `to`, with that in register `descriptor`: EQ. Changes t. */
function testDescriptor(x: i32, to: i32, descriptor: i32, t: i32): void {
  machine.loadFrom(I64, t, x, load32(typeRow(heapOf(to)) + layout.TYPE_DESCRIPTOR_OFFSET));
  machine.compare(1, t, descriptor);
}

/**
 * d = 1 if the reference in x, of type `from`, is of type `to`, else 0. d differs from x. Unless `descriptor` is
 * NO_REGISTER, an object must also have the descriptor in that register.
 */
function emitTest(d: i32, x: i32, from: i32, to: i32, descriptor: i32): void {
  const test = testOf(heapOf(from), heapOf(to));
  const compares = descriptor !== machine.NO_REGISTER && test !== NEVER;
  const nullPasses = isNullable(to);
  const isDecided = nullPasses ? test === ALWAYS && !compares : test === NEVER;
  let ofNull: i32 = 0;
  let ofTag: i32 = 0;
  let ofType: i32 = 0;
  if (isNullable(from) && !isDecided) {
    machine.compareImmediate(1, x, 0);
    machine.constant(d, nullPasses ? 1 : 0, 0, 0);
    ofNull = machine.shortBranch(cond.EQ);
  }
  if ((test === ALWAYS && !compares) || test === NEVER) machine.constant(d, test === ALWAYS ? 1 : 0, 0, 0);
  else if (test === BY_TAG) machine.setCondition(testTag(x, heapOf(to)), d);
  else if (test === BY_TYPE) {
    if (isTagged(heapOf(from), heapOf(to))) {
      machine.compareBits(x, OBJECT_TAG_MASK);
      machine.constant(d, 0, 0, 0);
      ofTag = machine.shortBranch(cond.NE);
    }
    testHeader(x, heapOf(to), d);
    if (compares) {
      machine.constant(d, 0, 0, 0);
      ofType = machine.shortBranch(cond.NE);
    } else machine.setCondition(cond.EQ, d);
  }
  if (compares) {
    testDescriptor(x, to, descriptor, d);
    machine.setCondition(cond.EQ, d);
  }
  if (ofType !== 0) machine.bindShort(ofType);
  if (ofTag !== 0) machine.bindShort(ofTag);
  if (ofNull !== 0) machine.bindShort(ofNull);
}

/** Tests whether the reference on top is of type `to`. */
export function emitRefTest(to: i32): void {
  const entry = operands.popEntry();
  const from = operands.entryType(entry);
  const x = operands.toRegister(entry);
  const d = operands.allocate(0);
  emitTest(d, x, from, to, machine.NO_REGISTER);
  operands.release(entry);
  operands.pushRegister(I32, d);
}

/** Traps unless the reference on top is of type `to`; its entry has that type afterwards. */
export function emitRefCast(to: i32): void {
  const entry = operands.top - operands.ENTRY;
  const from = operands.entryType(entry);
  const x = operands.ownRegister(entry);
  const t = operands.allocate(0);
  emitCast(x, t, from, to, machine.NO_REGISTER);
  operands.freeRegister(t);
  operands.setEntryType(entry, to);
}

/** The type whose test precedes the comparison of descriptors in a cast to `to`: `to` without its exactness. */
function describedType(to: i32): i32 {
  return refType(isNullable(to) ? 1 : 0, inexact(heapOf(to)));
}

/** Pops the descriptor on top into a register, for reading; traps if it is null. The caller releases `entry`. */
function takeDescriptor(entry: i32): i32 {
  const register = operands.toRegister(entry);
  if (isNullable(operands.entryType(entry))) {
    machine.compareImmediate(1, register, 0);
    machine.trapIf(cond.EQ, TRAP_NULL_DESCRIPTOR, instructionOffset);
  }
  return register;
}

/**
 * Traps unless the reference below the top is of type `to` and has the descriptor on top, which is popped; the
 * reference has that type afterwards.
 */
export function emitRefCastDescEq(to: i32): void {
  const descriptor = operands.popEntry();
  const entry = operands.top - operands.ENTRY;
  const from = operands.entryType(entry);
  const x = operands.ownRegister(entry);
  const t = operands.allocate(0);
  emitCast(x, t, from, describedType(to), takeDescriptor(descriptor));
  operands.freeRegister(t);
  operands.release(descriptor);
  operands.setEntryType(entry, to);
}

/**
 * Traps unless the reference in x, of type `from`, is of type `to`, and, unless `descriptor` is NO_REGISTER, has the
 * descriptor in that register. Changes t.
 */
function emitCast(x: i32, t: i32, from: i32, to: i32, descriptor: i32): void {
  const test = testOf(heapOf(from), heapOf(to));
  const trap = descriptor === machine.NO_REGISTER ? TRAP_CAST_FAILURE : TRAP_DESCRIPTOR_CAST;
  const compares = descriptor !== machine.NO_REGISTER && test !== NEVER;
  if (test === NEVER && !(isNullable(from) && isNullable(to))) {
    machine.callTrap(trap);
    code.trapSite(trap, 0, instructionOffset);
    return;
  }
  let ofNull: i32 = 0;
  if (isNullable(from) && (test !== ALWAYS || compares || !isNullable(to))) {
    machine.compareImmediate(1, x, 0);
    if (!isNullable(to)) failIf(cond.EQ, trap);
    else if (test === NEVER) failIf(cond.NE, trap);
    else ofNull = machine.shortBranch(cond.EQ);
  }
  if (test === BY_TAG) failIf(cond.opposite(testTag(x, heapOf(to))), trap);
  else if (test === BY_TYPE) {
    if (isTagged(heapOf(from), heapOf(to))) {
      machine.compareBits(x, OBJECT_TAG_MASK);
      failIf(cond.NE, trap);
    }
    testHeader(x, heapOf(to), t);
    failIf(cond.NE, trap);
  }
  if (compares) {
    testDescriptor(x, to, descriptor, t);
    failIf(cond.NE, trap);
  }
  if (ofNull !== 0) machine.bindShort(ofNull);
}

function failIf(condition: i32, trap: i32): void {
  machine.trapIf(condition, trap, instructionOffset);
}

/**
 * Branches to `target` if the reference on top is of type `to`, or with `onFail` if it is not; the operands stay. The
 * caller sets their types.
 */
export function emitBranchOnCast(target: i32, to: i32, onFail: boolean): void {
  const entry = operands.top - operands.ENTRY;
  const x = operands.ownRegister(entry);
  const d = operands.allocate(0);
  emitTest(d, x, operands.entryType(entry), to, machine.NO_REGISTER);
  branchOnTest(target, d, onFail);
}

/** Branches to `target` if d is 1, or with `onFail` if it is 0, and frees it. */
function branchOnTest(target: i32, d: i32, onFail: boolean): void {
  machine.compareImmediate(0, d, 0);
  operands.freeRegister(d);
  branchIf(target, onFail ? cond.EQ : cond.NE);
}

/** The same if the reference below the top has, or has not, also the descriptor on top, which is popped. */
export function emitBranchOnCastDescEq(target: i32, to: i32, onFail: boolean): void {
  const descriptor = operands.popEntry();
  const entry = operands.top - operands.ENTRY;
  const x = operands.ownRegister(entry);
  const d = operands.allocate(0);
  emitTest(d, x, operands.entryType(entry), describedType(to), takeDescriptor(descriptor));
  operands.release(descriptor);
  branchOnTest(target, d, onFail);
}
