/**
 * Structures, arrays, i31 references and casts. In: a decoded instruction. Out: its validation, by the rules of
 * validate/aggregates.ts and validate/references.ts, and, if it is reachable, code (objects.ts, casts.ts).
 */
import * as casts from "./casts.ts";
import { referenceOnTop } from "./control.ts";
import * as frames from "./frames.ts";
import * as layout from "./layout.ts";
import { FEATURE_CUSTOM_DESCRIPTORS, MAX_FIXED_ELEMENTS } from "./constants.ts";
import { type i32, load32 } from "./memory.ts";
import { elemType, hasData, hasElem, isIndex, newRef, useFeature, useType } from "./module.ts";
import * as objects from "./objects.ts";
import * as operands from "./operands.ts";
import * as op from "./operations.ts";
import { fail, heap, heap2, index, index2, nullable, nullable2, status } from "./reader.ts";
import {
  EXTERNREF,
  HEAP_ANY,
  HEAP_ARRAY,
  HEAP_CONT,
  HEAP_EXTERN,
  HEAP_I31,
  I32,
  isNullable,
  isPacked,
  isRef,
  matches,
  nonNull,
  refType,
  topHeap,
  typeRow,
  unpacked,
} from "./types.ts";

/** The row of type `k`, which must be of `kind`; 0 after a failure. */
export function typeOfKind(k: i32, kind: i32): i32 {
  if (!isIndex(k, load32(layout.H_TYPE_COUNT))) return 0;
  const row = typeRow(k);
  if (load32(row + layout.TYPE_KIND) === kind) return row;
  fail();
  return 0;
}

function storageOf(field: i32): i32 {
  return load32(field + layout.FIELD_STORAGE);
}

/** Fails unless a field has a default value. */
function expectDefault(field: i32): void {
  if (isRef(storageOf(field)) && !isNullable(storageOf(field))) fail();
}

/** Fails unless `access` fits the field: sign or zero extension for packed fields, and only for them. */
function expectAccess(field: i32, access: i32): void {
  if (isPacked(storageOf(field)) !== (access !== op.ACCESS_WHOLE)) fail();
}

/** The type of an operand that refers to the type that the instruction names. */
function ownType(): i32 {
  return refType(1, index);
}

// Structures.

/** The row of the structure type that the instruction names, whose objects have no descriptor; 0 after a failure. */
function plainStructure(): i32 {
  const type = typeOfKind(index, layout.TYPE_IS_STRUCT);
  if (type === 0 || load32(type + layout.TYPE_DESCRIPTOR) < 0) return type;
  fail();
  return 0;
}

/** Checks the values of all fields of the type with row `type`, `below` other operands. */
export function hasFields(type: i32, below: i32): boolean {
  const count = load32(type + layout.TYPE_FIELD_COUNT);
  for (let k: i32 = 0; k < count; k++) {
    if (!frames.expect(below + k, unpacked(storageOf(objects.fieldRow(type, count - 1 - k))))) return false;
  }
  return true;
}

/** Whether all fields of the type with row `type` have default values. Fails if not. */
export function hasDefaults(type: i32): boolean {
  const count = load32(type + layout.TYPE_FIELD_COUNT);
  for (let k: i32 = 0; k < count; k++) expectDefault(objects.fieldRow(type, k));
  return status === layout.STATUS_DONE;
}

function visitStructNew(): void {
  const type = plainStructure();
  if (type === 0 || !hasFields(type, 0)) return;
  if (frames.live) objects.emitStructNew();
  else frames.replaceTypes(load32(type + layout.TYPE_FIELD_COUNT), newRef(index));
}

function visitStructNewDefault(): void {
  const type = plainStructure();
  if (type === 0 || !hasDefaults(type)) return;
  if (frames.live) objects.emitStructNewDefault();
  else frames.replaceTypes(0, newRef(index));
}

/** The row of the field that the instruction names, or 0 after a failure. */
function fieldAtHand(): i32 {
  const type = typeOfKind(index, layout.TYPE_IS_STRUCT);
  if (type === 0 || !isIndex(index2, load32(type + layout.TYPE_FIELD_COUNT))) return 0;
  return objects.fieldRow(type, index2);
}

function visitStructGet(access: i32): void {
  const field = fieldAtHand();
  if (field === 0) return;
  expectAccess(field, access);
  if (!frames.expect(0, ownType()) || status !== layout.STATUS_DONE) return;
  if (frames.live) objects.emitStructGet(access);
  else frames.replaceTypes(1, unpacked(storageOf(field)));
}

function visitStructSet(): void {
  const field = fieldAtHand();
  if (field === 0) return;
  if (load32(field + layout.FIELD_IS_MUTABLE) === 0) fail();
  if (!frames.expect(0, unpacked(storageOf(field))) || !frames.expect(1, ownType())) return;
  if (status !== layout.STATUS_DONE) return;
  if (frames.live) objects.emitStructSet();
  else frames.dropTypes(2);
}

// Arrays.

/** The field row of the elements of array type `k`, or 0 after a failure. */
function elementOf(k: i32): i32 {
  const type = typeOfKind(k, layout.TYPE_IS_ARRAY);
  return type === 0 ? 0 : objects.fieldRow(type, 0);
}

/** The field row of the elements of the instruction's array type, which must be mutable; 0 after a failure. */
function mutableElement(): i32 {
  const field = elementOf(index);
  if (field === 0 || load32(field + layout.FIELD_IS_MUTABLE) !== 0) return field;
  fail();
  return 0;
}

function visitArrayNew(): void {
  const field = elementOf(index);
  if (field === 0 || !frames.expect(0, I32) || !frames.expect(1, unpacked(storageOf(field)))) return;
  if (frames.live) objects.emitArrayNew();
  else frames.replaceTypes(2, newRef(index));
}

function visitArrayNewDefault(): void {
  const field = elementOf(index);
  if (field === 0) return;
  expectDefault(field);
  if (!frames.expect(0, I32) || status !== layout.STATUS_DONE) return;
  if (frames.live) objects.emitArrayNewDefault();
  else frames.replaceTypes(1, newRef(index));
}

function visitArrayNewFixed(): void {
  const field = elementOf(index);
  if (field === 0 || !isIndex(index2, MAX_FIXED_ELEMENTS + 1)) return;
  const type = unpacked(storageOf(field));
  for (let k: i32 = 0; k < index2; k++) if (!frames.expect(k, type)) return;
  if (frames.live) objects.emitArrayNewFixed();
  else frames.replaceTypes(index2, newRef(index));
}

/** Checks the element type of the array, with row `field`, against the segment that the instruction reads. */
function hasSegment(field: i32, isData: boolean): boolean {
  if (isData) {
    if (isRef(storageOf(field))) fail();
    return hasData(index2) && status === layout.STATUS_DONE;
  }
  if (!hasElem(index2)) return false;
  if (!matches(elemType(index2), storageOf(field))) fail();
  return status === layout.STATUS_DONE;
}

function visitArrayNewSegment(isData: boolean): void {
  const field = elementOf(index);
  if (field === 0 || !hasSegment(field, isData) || !frames.expect(0, I32) || !frames.expect(1, I32)) return;
  if (!frames.live) frames.replaceTypes(2, newRef(index));
  else if (isData) objects.emitArrayNewData();
  else objects.emitArrayNewElem();
}

function visitArrayInitSegment(isData: boolean): void {
  const field = mutableElement();
  if (field === 0 || !hasSegment(field, isData)) return;
  if (!frames.expect(0, I32) || !frames.expect(1, I32) || !frames.expect(2, I32)) return;
  if (!frames.expect(3, ownType())) return;
  if (!frames.live) frames.dropTypes(4);
  else if (isData) objects.emitArrayInitData();
  else objects.emitArrayInitElem();
}

function visitArrayGet(access: i32): void {
  const field = elementOf(index);
  if (field === 0) return;
  expectAccess(field, access);
  if (!frames.expect(0, I32) || !frames.expect(1, ownType()) || status !== layout.STATUS_DONE) return;
  if (frames.live) objects.emitArrayGet(access);
  else frames.replaceTypes(2, unpacked(storageOf(field)));
}

function visitArraySet(): void {
  const field = mutableElement();
  if (field === 0 || !frames.expect(0, unpacked(storageOf(field)))) return;
  if (!frames.expect(1, I32) || !frames.expect(2, ownType())) return;
  if (frames.live) objects.emitArraySet();
  else frames.dropTypes(3);
}

function visitArrayLen(): void {
  if (!frames.expect(0, refType(1, HEAP_ARRAY))) return;
  if (frames.live) objects.emitArrayLen();
  else frames.replaceTypes(1, I32);
}

function visitArrayFill(): void {
  const field = mutableElement();
  if (field === 0 || !frames.expect(0, I32) || !frames.expect(1, unpacked(storageOf(field)))) return;
  if (!frames.expect(2, I32) || !frames.expect(3, ownType())) return;
  if (frames.live) objects.emitArrayFill();
  else frames.dropTypes(4);
}

function visitArrayCopy(): void {
  const to = mutableElement();
  const from = to === 0 ? 0 : elementOf(index2);
  if (from === 0) return;
  if (!matches(storageOf(from), storageOf(to))) {
    fail();
    return;
  }
  if (!frames.expect(0, I32) || !frames.expect(1, I32) || !frames.expect(2, refType(1, index2))) return;
  if (!frames.expect(3, I32) || !frames.expect(4, ownType())) return;
  if (frames.live) objects.emitArrayCopy();
  else frames.dropTypes(5);
}

// i31 references and conversions.

function visitRefI31(): void {
  if (!frames.expect(0, I32)) return;
  if (frames.live) objects.emitRefI31();
  else frames.replaceTypes(1, refType(0, HEAP_I31));
}

function visitI31Get(shift: i32): void {
  if (!frames.expect(0, refType(1, HEAP_I31))) return;
  if (frames.live) objects.emitI31Get(shift);
  else frames.replaceTypes(1, I32);
}

/** References of both hierarchies have the same representation, so a conversion emits nothing. */
function visitConvert(from: i32, to: i32): void {
  const type = referenceOnTop();
  if (!matches(type, from)) fail();
  if (status !== layout.STATUS_DONE) return;
  const result = refType(isNullable(type) ? 1 : 0, to);
  if (frames.live) operands.setEntryType(operands.top - operands.ENTRY, result);
  else frames.replaceTypes(1, result);
}

// Casts.

/** Checks heap type `to` of a test or cast. Continuations have no type at run time. */
function checkCastable(to: i32): void {
  if (status === layout.STATUS_DONE && topHeap(to) === HEAP_CONT) fail();
}

/** The target type of a test or cast, whose operand is checked, `below` another one; 0 if it is invalid. */
export function castTarget(below: i32): i32 {
  const to = refType(nullable, heap);
  useType(to);
  checkCastable(heap);
  if (status !== layout.STATUS_DONE || !frames.expect(below, refType(1, topHeap(heap)))) return 0;
  return to;
}

function visitRefTest(): void {
  const to = castTarget(0);
  if (to === 0) return;
  if (frames.live) casts.emitRefTest(to);
  else frames.replaceTypes(1, I32);
}

function visitRefCast(): void {
  const to = castTarget(0);
  if (to === 0) return;
  if (frames.live) casts.emitRefCast(to);
  else frames.replaceTypes(1, to);
}

/** Custom descriptors allow a cast to a type that is no subtype, in the same hierarchy. Fails for other casts. */
function expectCastable(from: i32, to: i32): void {
  if (matches(to, from)) return;
  if (topHeap(heap) === topHeap(heap2)) useFeature(FEATURE_CUSTOM_DESCRIPTORS);
  else fail();
}

/**
 * `br_on_cast` branches with the target type and falls through with the rest of the source type; `br_on_cast_fail` does
 * the reverse. `above` is the number of operands above the reference: 1 if a descriptor, which has been checked, is
 * compared, else 0.
 */
export function visitBranchOnCast(onFail: boolean, above: i32): void {
  const from = refType(nullable, heap);
  const to = refType(nullable2, heap2);
  useType(from);
  useType(to);
  checkCastable(heap2);
  if (status !== layout.STATUS_DONE) return;
  expectCastable(from, to);
  const rest = isNullable(to) ? nonNull(from) : from;
  const target = frames.frameOf(index);
  if (target === 0) return;
  const types = frames.labelTypes(target);
  const below = frames.labelCount(target) - 1;
  if (below < 0 || !matches(onFail ? rest : to, load32(types + below * 4))) fail();
  if (status !== layout.STATUS_DONE || !frames.expect(above, from)) return;
  if (!frames.expectList(types, below, above + 1)) return;
  const left = onFail ? to : rest;
  if (!frames.live) {
    frames.dropTypes(below + above + 1);
    frames.pushTypes(types, below);
    operands.pushHome(left);
    return;
  }
  if (above === 0) casts.emitBranchOnCast(target, to, onFail);
  else casts.emitBranchOnCastDescEq(target, to, onFail);
  frames.retypeTop(types, below + 1);
  operands.setEntryType(operands.top - operands.ENTRY, left);
}

/** Handles an instruction of this file. */
export function visitAggregate(kind: i32, argument: i32): void {
  switch (kind) {
    case op.KIND_STRUCT_NEW:
      visitStructNew();
      return;
    case op.KIND_STRUCT_NEW_DEFAULT:
      visitStructNewDefault();
      return;
    case op.KIND_STRUCT_GET:
      visitStructGet(argument);
      return;
    case op.KIND_STRUCT_SET:
      visitStructSet();
      return;
    case op.KIND_ARRAY_NEW:
      visitArrayNew();
      return;
    case op.KIND_ARRAY_NEW_DEFAULT:
      visitArrayNewDefault();
      return;
    case op.KIND_ARRAY_NEW_FIXED:
      visitArrayNewFixed();
      return;
    case op.KIND_ARRAY_NEW_DATA:
    case op.KIND_ARRAY_NEW_ELEM:
      visitArrayNewSegment(kind === op.KIND_ARRAY_NEW_DATA);
      return;
    case op.KIND_ARRAY_GET:
      visitArrayGet(argument);
      return;
    case op.KIND_ARRAY_SET:
      visitArraySet();
      return;
    case op.KIND_ARRAY_LEN:
      visitArrayLen();
      return;
    case op.KIND_ARRAY_FILL:
      visitArrayFill();
      return;
    case op.KIND_ARRAY_COPY:
      visitArrayCopy();
      return;
    case op.KIND_ARRAY_INIT_DATA:
    case op.KIND_ARRAY_INIT_ELEM:
      visitArrayInitSegment(kind === op.KIND_ARRAY_INIT_DATA);
      return;
  }
  visitCast(kind, argument);
}

function visitCast(kind: i32, argument: i32): void {
  switch (kind) {
    case op.KIND_REF_TEST:
      visitRefTest();
      return;
    case op.KIND_REF_CAST:
      visitRefCast();
      return;
    case op.KIND_BR_ON_CAST:
    case op.KIND_BR_ON_CAST_FAIL:
      visitBranchOnCast(kind === op.KIND_BR_ON_CAST_FAIL, 0);
      return;
    case op.KIND_ANY_CONVERT:
      visitConvert(EXTERNREF, HEAP_ANY);
      return;
    case op.KIND_EXTERN_CONVERT:
      visitConvert(refType(1, HEAP_ANY), HEAP_EXTERN);
      return;
    case op.KIND_REF_I31:
      visitRefI31();
      return;
    case op.KIND_I31_GET:
      visitI31Get(argument);
      return;
  }
  // The opcode table contains no other kind.
  fail();
}
