/**
 * Descriptors (proposal "custom descriptors"). In: a decoded instruction. Out: its validation, by the rules of
 * validate/descriptors.ts, and, if it is reachable, code (objects.ts, casts.ts).
 */
import { castTarget, hasDefaults, hasFields, typeOfKind, visitBranchOnCast } from "./aggregates.ts";
import * as casts from "./casts.ts";
import * as frames from "./frames.ts";
import * as layout from "./layout.ts";
import { type i32, load32 } from "./memory.ts";
import { isIndex, newRef } from "./module.ts";
import * as objects from "./objects.ts";
import * as op from "./operations.ts";
import { fail, heap, heap2, index, status } from "./reader.ts";
import { exactHeap, inexact, isExact, matches, refType, typeRow } from "./types.ts";

/** The index of the type of the descriptors of objects of type `k`; −1 after a failure. */
function descriptorOf(k: i32): i32 {
  if (!isIndex(k, load32(layout.H_TYPE_COUNT))) return -1;
  const descriptor = load32(typeRow(k) + layout.TYPE_DESCRIPTOR);
  if (descriptor < 0) fail();
  return descriptor;
}

function visitStructNewDesc(isDefault: boolean): void {
  const type = typeOfKind(index, layout.TYPE_IS_STRUCT);
  const descriptor = type === 0 ? -1 : descriptorOf(index);
  if (descriptor < 0 || (isDefault && !hasDefaults(type))) return;
  if (!frames.expect(0, refType(1, exactHeap(descriptor)))) return;
  if (!isDefault && !hasFields(type, 1)) return;
  if (frames.live) objects.emitStructNewDesc(isDefault);
  else frames.replaceTypes(isDefault ? 1 : load32(type + layout.TYPE_FIELD_COUNT) + 1, newRef(index));
}

/** The descriptor of an object of exactly this type is of exactly the descriptor's type. */
function visitRefGetDesc(): void {
  const descriptor = descriptorOf(index);
  if (descriptor < 0) return;
  const isOfExactType = matches(frames.typeAt(0), refType(1, exactHeap(index)));
  if (!frames.expect(0, refType(1, index)) || status !== layout.STATUS_DONE) return;
  const type = refType(0, isOfExactType ? exactHeap(descriptor) : descriptor);
  if (frames.live) objects.emitRefGetDesc(type);
  else frames.replaceTypes(1, type);
}

/** Whether the operand on top is a descriptor for a cast to heap type `to`, which is exact if that is. */
function hasDescriptor(to: i32): boolean {
  const descriptor = descriptorOf(inexact(to));
  return descriptor >= 0 && frames.expect(0, refType(1, isExact(to) ? exactHeap(descriptor) : descriptor));
}

function visitRefCastDescEq(): void {
  if (!hasDescriptor(heap)) return;
  const to = castTarget(1);
  if (to === 0) return;
  if (frames.live) casts.emitRefCastDescEq(to);
  else frames.replaceTypes(2, to);
}

/** Handles an instruction of this file; returns false for all others. */
export function visitDescriptor(kind: i32, argument: i32): boolean {
  switch (kind) {
    case op.KIND_STRUCT_NEW_DESC:
      visitStructNewDesc(argument !== 0);
      return true;
    case op.KIND_REF_GET_DESC:
      visitRefGetDesc();
      return true;
    case op.KIND_REF_CAST_DESC_EQ:
      visitRefCastDescEq();
      return true;
    case op.KIND_BR_ON_CAST_DESC_EQ:
      if (hasDescriptor(heap2)) visitBranchOnCast(argument !== 0, 1);
      return true;
  }
  return false;
}
