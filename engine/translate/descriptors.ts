/**
 * Descriptors (proposal "custom descriptors"): structures made with one, the descriptor of a structure, and casts that
 * compare it. In: operands on the translator's stack. Out: the descriptor is a reference in the object
 * (gc_layout.ts), written when the object is made and constant afterwards.
 *
 * Invariant: code reads the descriptor only of objects whose type is proven or tested to have one. A cast therefore
 * tests the type first, without its exactness, and then compares: an object with the descriptor of an exact type is of
 * exactly the described type.
 */
import { CLASS_CONSTANT, REGION, region } from "../ir/regions.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { TRAP } from "../base/traps.ts";
import type { Immediates } from "../wasm/immediates.ts";
import { idOf } from "../wasm/opcodes.ts";
import { inexact } from "../wasm/exact_heap.ts";
import { branchAhead, joinEdges, jumpAhead } from "./block_parameters.ts";
import { CAST_TEST } from "./cast_state.ts";
import { branchDecided, classify, leaveCast, lowBits, OBJECT_TAG_MASK, typeCondition } from "./casts.ts";
import { branchWhen, trapHere } from "./control.ts";
import { notCompiled } from "./failures.ts";
import { allocateStruct, structOfFields } from "./objects.ts";
import { isNull } from "./references.ts";
import type { Translation } from "./translation.ts";

const { I32, NONE, REF } = TY;
const CONSTANT_POINTER = region(REGION.POINTER, CLASS_CONSTANT);

/** Traps with `code` if `condition` holds. */
function trapWhen(t: Translation, condition: number, code: number): void {
  const { b, f } = t;
  if (b.isConst(condition) && f.imm[condition] !== 0) trapHere(t, code);
  else b.trapIf(condition, code);
}

/** The offset of the descriptor in objects of type `index`. */
function descriptorOffset(t: Translation, index: number): number {
  return t.env.objectTypes[index]!.descriptor;
}

/** Pops a descriptor; traps if it is null. */
function popDescriptor(t: Translation): number {
  const descriptor = t.pop();
  trapWhen(t, isNull(t, descriptor), TRAP.NULL_DESCRIPTOR);
  return descriptor;
}

/** The descriptor of `object`, which is of type `index` and not null. */
function descriptorOf(t: Translation, object: number, index: number): number {
  return t.b.emit(OP.LOAD, REF, object, 0, CONSTANT_POINTER, descriptorOffset(t, index));
}

/** Tests if the descriptor of `object`, as above, is `descriptor`, or with `op` NE if it is not. */
function descriptorCondition(t: Translation, object: number, index: number, descriptor: number, op: number): number {
  return t.b.binary(op, I32, descriptorOf(t, object, index), descriptor);
}

function structNewDesc(t: Translation, index: number, isDefault: boolean): void {
  const descriptor = popDescriptor(t);
  if (!t.reachable) return;
  const object = isDefault ? allocateStruct(t, index, t.env.objectTypes[index]!) : structOfFields(t, index);
  t.b.emit(OP.STORE, NONE, object, descriptor, CONSTANT_POINTER, descriptorOffset(t, index));
  t.push(object);
}

function refGetDesc(t: Translation, index: number): void {
  const object = t.pop();
  trapWhen(t, isNull(t, object), TRAP.NULL_REFERENCE);
  if (t.reachable) t.push(descriptorOf(t, object, index));
}

function refCastDescEq(t: Translation, imm: Immediates): void {
  const { nullable } = imm;
  const heap = inexact(imm.heap);
  const descriptor = popDescriptor(t);
  if (!t.reachable) return;
  const value = t.stack[t.sp - 1];
  classify(t, imm.heap2, imm.nullable2, heap, value);
  const { cast } = t;
  const { sourceNullable } = cast;
  if (cast.kind === CAST_TEST.NEVER) {
    if (sourceNullable && nullable) trapWhen(t, t.b.eqz(isNull(t, value)), TRAP.DESCRIPTOR_CAST);
    else trapHere(t, TRAP.DESCRIPTOR_CAST);
    return;
  }
  let past = -1;
  if (sourceNullable && nullable) past = branchAhead(t, isNull(t, value));
  else if (sourceNullable) trapWhen(t, isNull(t, value), TRAP.DESCRIPTOR_CAST);
  if (cast.tagged) trapWhen(t, lowBits(t, value, OBJECT_TAG_MASK), TRAP.DESCRIPTOR_CAST);
  if (cast.kind === CAST_TEST.BY_TYPE) trapWhen(t, typeCondition(t, value, heap, OP.NE, 0), TRAP.DESCRIPTOR_CAST);
  trapWhen(t, descriptorCondition(t, value, heap, descriptor, OP.NE), TRAP.DESCRIPTOR_CAST);
  if (past >= 0) joinEdges(t, [past, jumpAhead(t, 0)], 0);
}

/** br_on_cast_desc_eq, and br_on_cast_desc_eq_fail with `onFail`: the reference stays on the stack on both paths. */
function branchOnCastDescEq(t: Translation, imm: Immediates, onFail: boolean): void {
  const { index: label, nullable2: nullable } = imm;
  const heap = inexact(imm.heap2);
  const descriptor = popDescriptor(t);
  if (!t.reachable) return;
  const value = t.stack[t.sp - 1];
  classify(t, imm.heap, imm.nullable, heap, value);
  const { cast } = t;
  if (cast.kind === CAST_TEST.NEVER) {
    branchDecided(t, false, imm, onFail, value);
    return;
  }
  const kept: number[] = [];
  if (cast.sourceNullable) leaveCast(t, isNull(t, value), nullable !== onFail, label, kept);
  if (cast.tagged) leaveCast(t, lowBits(t, value, OBJECT_TAG_MASK), onFail, label, kept);
  if (cast.kind === CAST_TEST.BY_TYPE) leaveCast(t, typeCondition(t, value, heap, OP.NE, 0), onFail, label, kept);
  branchWhen(t, descriptorCondition(t, value, heap, descriptor, onFail ? OP.NE : OP.EQ), label);
  if (kept.length === 0) return;
  if (t.reachable) kept.push(jumpAhead(t, 0));
  joinEdges(t, kept, 0);
  t.reachable = true;
}

const STRUCT_NEW_DESC = idOf("struct.new_desc");
const STRUCT_NEW_DEFAULT_DESC = idOf("struct.new_default_desc");
const REF_GET_DESC = idOf("ref.get_desc");
const REF_CAST_DESC_EQ = idOf("ref.cast_desc_eq");
const REF_CAST_DESC_EQ_NULL = idOf("ref.cast_desc_eq(null)");
const BR_ON_CAST_DESC_EQ = idOf("br_on_cast_desc_eq");
const BR_ON_CAST_DESC_EQ_FAIL = idOf("br_on_cast_desc_eq_fail");

/** Translates the instruction of row `id`. */
export function translateDescriptor(t: Translation, id: number, imm: Immediates): void {
  switch (id) {
    case STRUCT_NEW_DESC:
      structNewDesc(t, imm.index, false);
      break;
    case STRUCT_NEW_DEFAULT_DESC:
      structNewDesc(t, imm.index, true);
      break;
    case REF_GET_DESC:
      refGetDesc(t, imm.index);
      break;
    case REF_CAST_DESC_EQ:
    case REF_CAST_DESC_EQ_NULL:
      refCastDescEq(t, imm);
      break;
    case BR_ON_CAST_DESC_EQ:
      branchOnCastDescEq(t, imm, false);
      break;
    case BR_ON_CAST_DESC_EQ_FAIL:
      branchOnCastDescEq(t, imm, true);
      break;
    default:
      throw notCompiled(id, t.b.pos);
  }
}
