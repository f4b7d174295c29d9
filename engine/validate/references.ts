/**
 * Rules of references: null, functions, tests, casts, branches on them, i31 and conversions (specification, 3.4.2 and
 * 3.4.3).
 */
import type { SpecialMnemonic } from "../wasm/opcodes.ts";
import { closeHeapType, REF_BOTTOM, topHeap } from "../wasm/subtype.ts";
import {
  exactHeapOf,
  EXTERNREF,
  HEAP,
  heapOf,
  type HeapType,
  I32,
  isNullable,
  isRef,
  refType,
  type ValType,
  valTypeName,
} from "../wasm/types.ts";
import type { Rule } from "./control.ts";
import { funcRef } from "./exact_types.ts";
import { FEATURE } from "./gate.ts";
import { funcAt } from "./lookups.ts";
import type { Walker } from "./walker.ts";

const DESCRIPTORS = FEATURE["custom-descriptors"];
const ANYREF = refType(true, HEAP.any);
const EQREF = refType(true, HEAP.eq);
const I31REF = refType(true, HEAP.i31);

function refNull(walker: Walker): void {
  const type = refType(true, walker.imm.heap);
  walker.useType(type);
  walker.push(type);
}

function refIsNull(walker: Walker): void {
  walker.popRef();
  walker.push(I32);
}

/** In a constant expression the instruction declares the function; in a body the function must have been declared. */
function refFunc(walker: Walker): void {
  const index = walker.imm.index;
  funcAt(walker, index);
  const { declaredFuncs } = walker.valid;
  if (walker.funcIndex < 0) declaredFuncs[index] = 1;
  else if (declaredFuncs[index] === 0) walker.fail(`undeclared function reference ${index}`);
  walker.push(funcRef(walker.valid, index));
}

function refEq(walker: Walker): void {
  walker.pop2(EQREF, EQREF);
  walker.push(I32);
}

function nonNull(type: ValType): ValType {
  return refType(false, exactHeapOf(type));
}

function branchOnNull(walker: Walker): void {
  const types = walker.labelTypes(walker.frameOf(walker.imm.index));
  const type = walker.popRef();
  walker.popAll(types);
  walker.pushAll(types);
  walker.push(nonNull(type));
}

/**
 * A branch that also carries a reference: checks that the label's last type is one and returns it; the other operands
 * stay on the stack.
 */
function carriedRef(walker: Walker, types: readonly ValType[]): ValType {
  const last = types.at(-1);
  if (last === undefined || !isRef(last)) {
    walker.fail(`type mismatch: label ${walker.imm.index} does not end in a reference type`);
  }
  return last;
}

function repeatOperands(walker: Walker, types: readonly ValType[]): void {
  if (types.length === 1) return;
  const below = types.slice(0, -1);
  walker.popAll(below);
  walker.pushAll(below);
}

function branchOnNonNull(walker: Walker): void {
  const types = walker.labelTypes(walker.frameOf(walker.imm.index));
  walker.pop(refType(true, exactHeapOf(carriedRef(walker, types))));
  repeatOperands(walker, types);
}

/** The top type of an instruction's heap type, as a nullable reference. */
function topRef(walker: Walker, heap: HeapType): ValType {
  return refType(true, topHeap(closeHeapType(heap, walker.ids)));
}

/** Continuations have no type at run time. */
function checkCastable(walker: Walker, type: ValType): void {
  if (topHeap(closeHeapType(heapOf(type), walker.ids)) !== HEAP.cont) return;
  walker.fail(`invalid cast to ${valTypeName(type)}: the type of a continuation cannot be tested`);
}

/** The target type of a type test or cast; pops its operand, whose type is in the immediates afterwards. */
export function castTarget(walker: Walker): ValType {
  const { heap, nullable } = walker.imm;
  const type = refType(nullable, heap);
  walker.useType(type);
  checkCastable(walker, type);
  const { stack, casts } = walker;
  const found = walker.top > walker.base ? stack[walker.top - 1] : REF_BOTTOM;
  walker.pop(topRef(walker, heap));
  if (casts !== null) {
    casts.at.push(walker.at);
    casts.heap.push(exactHeapOf(found));
    casts.isNullable.push(Number(isNullable(found)));
  }
  return type;
}

function refTest(walker: Walker): void {
  castTarget(walker);
  walker.push(I32);
}

function refCast(walker: Walker): void {
  walker.push(castTarget(walker));
}

/** A cast to a type that is no subtype must stay in one hierarchy, which custom descriptors allow. */
function checkHierarchy(walker: Walker, source: ValType, target: ValType): void {
  const { gate } = walker.valid;
  if (gate.allows(DESCRIPTORS) && topRef(walker, heapOf(source)) === topRef(walker, heapOf(target))) {
    gate.use(DESCRIPTORS, walker.at, "a cast to a type that is no subtype");
    return;
  }
  walker.fail(`type mismatch: cast from ${valTypeName(source)} to ${valTypeName(target)} can never succeed`);
}

/**
 * br_on_cast branches with the target type and falls through with the rest of the source type; br_on_cast_fail is the
 * reverse.
 */
export function branchOnCast(walker: Walker, isFail: boolean): void {
  const { imm } = walker;
  const source = refType(imm.nullable, imm.heap);
  const target = refType(imm.nullable2, imm.heap2);
  walker.useType(source);
  walker.useType(target);
  checkCastable(walker, target);
  if (!walker.matches(target, source)) checkHierarchy(walker, source, target);
  const rest = isNullable(target) ? nonNull(source) : source;
  const types = walker.labelTypes(walker.frameOf(imm.index));
  const expected = carriedRef(walker, types);
  const carried = isFail ? rest : target;
  if (!walker.matches(carried, expected)) {
    walker.fail(`type mismatch: label ${imm.index} takes ${valTypeName(expected)}, not ${valTypeName(carried)}`);
  }
  walker.pop(source);
  repeatOperands(walker, types);
  walker.push(isFail ? target : rest);
}

/** any.convert_extern and extern.convert_any preserve nullability. */
function convert(walker: Walker, from: ValType, to: HeapType): void {
  const height = walker.top;
  const type = walker.popRef();
  if (!walker.matches(type, from)) walker.mismatch([from], height);
  walker.push(refType(isNullable(type), to));
}

function i31New(walker: Walker): void {
  walker.pop(I32);
  walker.push(refType(false, HEAP.i31));
}

function i31Get(walker: Walker): void {
  walker.pop(I31REF);
  walker.push(I32);
}

/** Rules by mnemonic. */
export const REFERENCE_RULES = {
  "ref.null": refNull,
  "ref.is_null": refIsNull,
  "ref.func": refFunc,
  "ref.eq": refEq,
  "ref.as_non_null": (walker) => walker.push(nonNull(walker.popRef())),
  "br_on_null": branchOnNull,
  "br_on_non_null": branchOnNonNull,
  "ref.test": refTest,
  "ref.test(null)": refTest,
  "ref.cast": refCast,
  "ref.cast(null)": refCast,
  "br_on_cast": (walker) => branchOnCast(walker, false),
  "br_on_cast_fail": (walker) => branchOnCast(walker, true),
  "any.convert_extern": (walker) => convert(walker, EXTERNREF, HEAP.any),
  "extern.convert_any": (walker) => convert(walker, ANYREF, HEAP.extern),
  "ref.i31": i31New,
  "i31.get_s": i31Get,
  "i31.get_u": i31Get,
} as const satisfies Partial<Record<SpecialMnemonic, Rule>>;
