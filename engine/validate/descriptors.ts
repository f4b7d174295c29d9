/**
 * Rules of descriptors (proposal "custom descriptors", "New Instructions"): objects made with a descriptor, the
 * descriptor of an object, and casts that compare it.
 */
import type { SpecialMnemonic } from "../wasm/opcodes.ts";
import { exactHeap, inexact, isExact } from "../wasm/exact_heap.ts";
import { type HeapType, heapTypeName, refType } from "../wasm/types.ts";
import { checkDefaults, popFields, pushNew } from "./aggregates.ts";
import type { Rule } from "./control.ts";
import { structTypeAt } from "./lookups.ts";
import { branchOnCast, castTarget } from "./references.ts";
import type { Walker } from "./walker.ts";

/** The type of the descriptors of objects of type `index`, which are made with one. */
function descriptorOfNew(walker: Walker, index: number): number {
  structTypeAt(walker, index);
  const { descriptor } = walker.valid.types[index];
  if (descriptor !== undefined) return descriptor;
  walker.fail(`type without descriptor requires non-descriptor allocation: type ${index}`);
}

function structNewDesc(walker: Walker): void {
  const { index } = walker.imm;
  walker.pop(refType(true, exactHeap(descriptorOfNew(walker, index))));
  popFields(walker, structTypeAt(walker, index).fields);
  pushNew(walker, index);
}

function structNewDefaultDesc(walker: Walker): void {
  const { index } = walker.imm;
  const descriptor = descriptorOfNew(walker, index);
  checkDefaults(walker, structTypeAt(walker, index).fields);
  walker.pop(refType(true, exactHeap(descriptor)));
  pushNew(walker, index);
}

/** The descriptor of an object of exactly this type is of exactly the descriptor's type. */
function refGetDesc(walker: Walker): void {
  const { index } = walker.imm;
  walker.checkTypeIndex(index);
  const { descriptor } = walker.valid.types[index];
  if (descriptor === undefined) walker.fail(`type without descriptor: type ${index}`);
  if (walker.tryPop(refType(true, exactHeap(index)))) return walker.push(refType(false, exactHeap(descriptor)));
  walker.pop(refType(true, index));
  walker.push(refType(false, descriptor));
}

/** Pops the descriptor of a cast to heap type `heap`, which is exact if that is. */
function popDescriptor(walker: Walker, heap: HeapType): void {
  const index = inexact(heap);
  walker.checkTypeIndex(index);
  const descriptor = index < 0 ? undefined : walker.valid.types[index].descriptor;
  if (descriptor === undefined) walker.fail(`type ${heapTypeName(index)} does not have a descriptor`);
  walker.pop(refType(true, isExact(heap) ? exactHeap(descriptor) : descriptor));
}

function refCastDescEq(walker: Walker): void {
  popDescriptor(walker, walker.imm.heap);
  walker.push(castTarget(walker));
}

function branchOnCastDescEq(walker: Walker, isFail: boolean): void {
  popDescriptor(walker, walker.imm.heap2);
  branchOnCast(walker, isFail);
}

/** Rules by mnemonic. */
export const DESCRIPTOR_RULES = {
  "struct.new_desc": structNewDesc,
  "struct.new_default_desc": structNewDefaultDesc,
  "ref.get_desc": refGetDesc,
  "ref.cast_desc_eq": refCastDescEq,
  "ref.cast_desc_eq(null)": refCastDescEq,
  "br_on_cast_desc_eq": (walker) => branchOnCastDescEq(walker, false),
  "br_on_cast_desc_eq_fail": (walker) => branchOnCastDescEq(walker, true),
} as const satisfies Partial<Record<SpecialMnemonic, Rule>>;
