/**
 * Matching of types (specification, 3.3) and canonicalization of recursive groups (3.1.3, "rolling").
 *
 * In: the type section of a Module. Out: one int32 per type, its *canonical id*, such that two types of any two modules
 * have the same id exactly if they are equal up to iso-recursive equivalence. A value type whose type index has been
 * replaced by a canonical id is *closed*: it means the same in every module, and equality is `===`.
 *
 * The table of canonical types is global to the JavaScript realm (ids never travel between Workers, and artifacts
 * contain the types themselves). It only grows: an id that live code or a live object holds must keep its meaning. Id 0
 * is reserved for "no type".
 *
 * Functions whose names end in `Type` or begin with `heap` take closed types; `matchesIn` takes a module's own.
 */
import { InvalidError } from "../base/errors.ts";
import type { Module } from "./module.ts";
import { exactHeap, inexact, isExact } from "./exact_heap.ts";
import {
  BOTTOM,
  type CompositeType,
  exactHeapOf,
  type FieldType,
  type FuncType,
  type GlobalType,
  HEAP,
  heapOf,
  type HeapType,
  isNullable,
  isRef,
  type Limits,
  type MemoryType,
  pageBytes,
  refType,
  type SubType,
  type TableType,
  type ValType,
} from "./types.ts";

/** The heap type below all others: that of references in unreachable code. It does not occur in modules. */
export const HEAP_BOTTOM: HeapType = -0x40;
/** `(ref bot)`: the type of a missing reference operand in unreachable code. */
export const REF_BOTTOM: ValType = refType(false, HEAP_BOTTOM);

/** Longest chain of declared supertypes (the limit of the JavaScript API). */
export const MAX_SUBTYPE_DEPTH = 63;

/** Largest canonical id: a heap type has 24 bits for it (types.ts). */
const MAX_CANONICAL_ID = 0xffff00;

/** Canonical types, closed, by id. */
const canonicalTypes: SubType[] = [{ final: true, supertypes: [], composite: { kind: "struct", fields: [] } }];
/** Id of the declared supertype, 0 for none. */
const superOf: number[] = [0];
/** Number of declared supertypes above. */
const depthOf: number[] = [0];
/** First id of every known group, by its key. */
const groupIds = new Map<string, number>();

/** Whether some canonical type has descriptors. */
let hasDescriptors = false;

/** Whether objects of some known type have descriptors. */
export function hasDescriptorTypes(): boolean {
  return hasDescriptors;
}

/** Canonical ids by type index. */
export type TypeIds = Int32Array | number[];

/** The state of canonicalization, which the key builders share. */
interface Rolling {
  readonly types: readonly SubType[];
  readonly ids: TypeIds;
  /** Offset of type `index` in the binary, for messages. */
  readonly offsetOf: (index: number) => number | undefined;
  /** The current group: type indices `start` … `end` − 1. */
  start: number;
  end: number;
}

/**
 * The canonical id of every type of `module`, by type index. Checks the preconditions of ids: a type refers only to
 * earlier groups and its own, and has at most one supertype, which is declared before it and not too deep. Validation
 * checks that a subtype matches its supertype.
 */
export function canonicalTypeIds(
  module: Pick<Module, "types" | "recGroups">,
  offsetOf: (index: number) => number | undefined = () => undefined,
): Int32Array {
  const ids = new Int32Array(module.types.length);
  const rolling: Rolling = { types: module.types, ids, offsetOf, start: 0, end: 0 };
  for (const { start, count } of module.recGroups) {
    rolling.start = start;
    rolling.end = start + count;
    identifyGroup(rolling);
  }
  return ids;
}

/** Sets the ids of the current group, which gets new ones if no equal group is known. */
function identifyGroup(rolling: Rolling): void {
  const { start, end, ids } = rolling;
  let key = "";
  for (let index = start; index < end; index++) key += typeKey(rolling, index);
  const first = groupIds.get(key) ?? internGroup(rolling, key);
  for (let index = start; index < end; index++) ids[index] = first + index - start;
}

/**
 * Appends the canonical ids of one more recursive group to `ids`, those of an index space whose types are known by
 * their ids only. Throws InvalidError as {@linkcode canonicalTypeIds} does.
 */
export function appendTypeIds(ids: number[], group: readonly SubType[], offset: number): void {
  const start = ids.length;
  const types: SubType[] = [];
  group.forEach((type, i) => types[start + i] = type);
  const rolling: Rolling = { types, ids, offsetOf: () => offset, start, end: start + group.length };
  identifyGroup(rolling);
}

/** A string that two types share exactly if they are equal, given that the other members of their groups are. */
function typeKey(rolling: Rolling, index: number): string {
  const type = rolling.types[index];
  let key = type.final ? ";" : ";?";
  if (type.supertypes.length > 1) {
    throw invalid(rolling, index, `sub type ${index} has ${type.supertypes.length} supertypes, at most one is allowed`);
  }
  for (const above of type.supertypes) {
    key += `<${typeRefKey(rolling, index, above)}`;
    if (above >= index) throw invalid(rolling, index, `sub type ${index} is declared before its supertype ${above}`);
  }
  const { describes, descriptor, composite } = type;
  if (describes !== undefined) key += `d${typeRefKey(rolling, index, describes)}`;
  if (descriptor !== undefined) key += `D${typeRefKey(rolling, index, descriptor)}`;
  switch (composite.kind) {
    case "func":
      key += "f";
      for (const param of composite.params) key += valueKey(rolling, index, param);
      key += ">";
      for (const result of composite.results) key += valueKey(rolling, index, result);
      return key;
    case "struct":
      key += "s";
      for (const field of composite.fields) key += fieldKey(rolling, index, field);
      return key;
    case "array":
      return `${key}a${fieldKey(rolling, index, composite.field)}`;
    case "cont":
      return `${key}c${typeRefKey(rolling, index, composite.func)}`;
  }
}

function fieldKey(rolling: Rolling, index: number, field: FieldType): string {
  const key = valueKey(rolling, index, field.storage);
  return field.mutable ? `!${key}` : key;
}

function valueKey(rolling: Rolling, index: number, type: ValType): string {
  if (!isRef(type)) return `${type},`;
  const heap = heapOf(type);
  if (heap < 0) return `${type},`;
  const exact = isExact(exactHeapOf(type)) ? "e" : "";
  return (isNullable(type) ? "n" : "r") + exact + typeRefKey(rolling, index, heap);
}

/**
 * Key of the reference from type `index` to type `to`: relative within its own group (`@`), by canonical id outside.
 */
function typeRefKey(rolling: Rolling, index: number, to: number): string {
  if (to >= rolling.end) throw invalid(rolling, index, `unknown type ${to}`);
  return to >= rolling.start ? `@${to - rolling.start},` : `${rolling.ids[to]},`;
}

function invalid(rolling: Rolling, index: number, message: string): InvalidError {
  return new InvalidError(message, { offset: rolling.offsetOf(index) });
}

/** Adds a new group; returns the id of its first type. */
function internGroup(rolling: Rolling, key: string): number {
  const { start, end, types, ids } = rolling;
  const first = canonicalTypes.length;
  if (first + (end - start) > MAX_CANONICAL_ID) throw new InvalidError("too many distinct types in this process");
  for (let index = start; index < end; index++) ids[index] = first + index - start;
  for (let index = start; index < end; index++) {
    const above = types[index].supertypes[0];
    const depth = above === undefined ? 0 : depthWithin(rolling, first, above) + 1;
    if (depth > MAX_SUBTYPE_DEPTH) {
      withdraw(first);
      throw invalid(rolling, index, `sub type ${index} has more than ${MAX_SUBTYPE_DEPTH} supertypes above it`);
    }
    if (types[index].descriptor !== undefined) hasDescriptors = true;
    canonicalTypes.push(closeSubType(types[index], ids));
    superOf.push(above === undefined ? 0 : ids[above]);
    depthOf.push(depth);
  }
  groupIds.set(key, first);
  return first;
}

/** Depth of type `index` of the module, which precedes the current type in this group or in an earlier one. */
function depthWithin(rolling: Rolling, first: number, index: number): number {
  return depthOf[index >= rolling.start ? first + index - rolling.start : rolling.ids[index]];
}

/** Removes the entries of a group that turned out to be invalid; its ids have not been used. */
function withdraw(first: number): void {
  canonicalTypes.length = superOf.length = depthOf.length = first;
}

function closeSubType(type: SubType, ids: TypeIds): SubType {
  const { describes, descriptor } = type;
  return {
    final: type.final,
    supertypes: type.supertypes.map((above) => ids[above]),
    ...(describes === undefined ? {} : { describes: ids[describes] }),
    ...(descriptor === undefined ? {} : { descriptor: ids[descriptor] }),
    composite: closeCompositeType(type.composite, ids),
  };
}

function closeCompositeType(type: CompositeType, ids: TypeIds): CompositeType {
  const closeField = (field: FieldType) => ({ storage: closeValType(field.storage, ids), mutable: field.mutable });
  switch (type.kind) {
    case "func":
      return closeFuncType(type, ids);
    case "struct":
      return { kind: "struct", fields: type.fields.map(closeField) };
    case "array":
      return { kind: "array", field: closeField(type.field) };
    case "cont":
      return { kind: "cont", func: ids[type.func] };
  }
}

/** `type` of a module whose canonical ids are `ids`, closed. */
export function closeValType(type: ValType, ids: TypeIds): ValType {
  if (!isRef(type)) return type;
  const heap = exactHeapOf(type);
  return heap < 0 ? type : refType(isNullable(type), closeHeapType(heap, ids));
}

/** The heap type `heap` of a module, closed. */
export function closeHeapType(heap: HeapType, ids: TypeIds): HeapType {
  if (heap < 0) return heap;
  return isExact(heap) ? exactHeap(ids[inexact(heap)]) : ids[heap];
}

/** A function type of a module, closed. */
export function closeFuncType(type: FuncType, ids: TypeIds): FuncType {
  return {
    kind: "func",
    params: type.params.map((param) => closeValType(param, ids)),
    results: type.results.map((result) => closeValType(result, ids)),
  };
}

/** A global type of a module, closed. */
export function closeGlobalType(type: GlobalType, ids: TypeIds): GlobalType {
  return { type: closeValType(type.type, ids), mutable: type.mutable };
}

/** A table type of a module, closed. */
export function closeTableType(type: TableType, ids: TypeIds): TableType {
  return { limits: type.limits, element: closeValType(type.element, ids) };
}

/** The type with canonical id `id`, closed. */
export function canonicalType(id: number): SubType {
  return canonicalTypes[id];
}

/** The canonical id of a function type in a group of its own, without supertypes: the type of a host function. */
export function canonicalFuncTypeId(type: FuncType): number {
  const alone: SubType = { final: true, supertypes: [], composite: type };
  return canonicalTypeIds({ types: [alone], recGroups: [{ start: 0, count: 1 }] })[0];
}

/** Number of declared supertypes above type `id`. */
export function subtypeDepth(id: number): number {
  return depthOf[id];
}

/** The canonical id of the declared supertype of `id`, 0 when it has none. */
export function supertypeId(id: number): number {
  return superOf[id];
}

/**
 * The number of fields before the reference to the descriptor in objects of type `id`: those of its nearest supertype
 * without descriptors, so that all types below agree. −1 if its objects have no descriptors.
 */
export function fieldsBeforeDescriptor(id: number): number {
  if (canonicalTypes[id].descriptor === undefined) return -1;
  let above = superOf[id];
  while (above !== 0 && canonicalTypes[above].descriptor !== undefined) above = superOf[above];
  const { composite } = canonicalTypes[above];
  return composite.kind === "struct" ? composite.fields.length : 0;
}

/**
 * The display of type `id`: its chain of supertypes from the root down to itself. `id` is a subtype of `other` exactly
 * when `display(id)[depth(other)] === other`: one load and one compare for casts in compiled code.
 */
export function supertypeDisplay(id: number): Int32Array {
  const display = new Int32Array(depthOf[id] + 1);
  for (let at = display.length - 1, type = id; at >= 0; at--, type = superOf[type]) display[at] = type;
  return display;
}

/** Whether canonical type `id` equals `above` or is declared below it. */
export function isSubtypeId(id: number, above: number): boolean {
  if (id === above) return true;
  let steps = depthOf[id] - depthOf[above];
  while (steps-- > 0) id = superOf[id];
  return id === above;
}

/** For every abstract heap type (by its bit), the bits of all abstract heap types that it matches. */
export const ABSTRACT_MATCHES: Int32Array = abstractMatches();

/** The row of an abstract heap type in ABSTRACT_MATCHES, and the number of its bit: the codes descend from −0x0b on. */
function heapRow(heap: HeapType): number {
  return HEAP.nocont - heap;
}

function heapBit(heap: HeapType): number {
  return 1 << heapRow(heap);
}

function abstractMatches(): Int32Array {
  // The direct supertypes in the hierarchies (specification, 3.3.3), in an order in which one sweep computes the
  // closure.
  const steps: readonly (readonly [HeapType, readonly HeapType[]])[] = [
    [HEAP.eq, [HEAP.any]],
    [HEAP.i31, [HEAP.eq]],
    [HEAP.struct, [HEAP.eq]],
    [HEAP.array, [HEAP.eq]],
    [HEAP.none, [HEAP.i31, HEAP.struct, HEAP.array]],
    [HEAP.nofunc, [HEAP.func]],
    [HEAP.noextern, [HEAP.extern]],
    [HEAP.noexn, [HEAP.exn]],
    [HEAP.nocont, [HEAP.cont]],
  ];
  const matches = new Int32Array(heapRow(HEAP.cont) + 1);
  for (let bit = 0; bit < matches.length; bit++) matches[bit] = 1 << bit;
  for (const [below, aboves] of steps) {
    for (const above of aboves) matches[heapRow(below)] |= matches[heapRow(above)];
  }
  return matches;
}

/** Whether closed heap type `a` matches closed heap type `b`. */
export function heapMatches(a: HeapType, b: HeapType): boolean {
  if (a === b || a === HEAP_BOTTOM) return true;
  if (b === HEAP_BOTTOM) return false;
  if (a >= 0) {
    // An exact type has no subtype that is another type of objects.
    if (b >= 0) return !isExact(b) && isSubtypeId(inexact(a), b);
    return (ABSTRACT_MATCHES[heapRow(abstractOf(a))] & heapBit(b)) !== 0;
  }
  if (b < 0) return (ABSTRACT_MATCHES[heapRow(a)] & heapBit(b)) !== 0;
  return a === bottomOf(abstractOf(b));
}

/** The abstract heap type right above canonical type `id`: func, struct, array or cont. */
function abstractOf(id: number): HeapType {
  return HEAP[canonicalTypes[inexact(id)].composite.kind];
}

/** The top of the hierarchy of closed heap type `heap`: any, func, extern, exn or cont. */
export function topHeap(heap: HeapType): HeapType {
  const abstract = heap >= 0 ? abstractOf(heap) : heap;
  switch (abstract) {
    case HEAP.func:
    case HEAP.nofunc:
      return HEAP.func;
    case HEAP.extern:
    case HEAP.noextern:
      return HEAP.extern;
    case HEAP.exn:
    case HEAP.noexn:
      return HEAP.exn;
    case HEAP.cont:
    case HEAP.nocont:
      return HEAP.cont;
    default:
      return HEAP.any;
  }
}

/** The bottom of the hierarchy of closed heap type `heap`: none, nofunc, noextern, noexn or nocont. */
export function bottomOf(heap: HeapType): HeapType {
  switch (topHeap(heap)) {
    case HEAP.func:
      return HEAP.nofunc;
    case HEAP.extern:
      return HEAP.noextern;
    case HEAP.exn:
      return HEAP.noexn;
    case HEAP.cont:
      return HEAP.nocont;
    default:
      return HEAP.none;
  }
}

/** Whether closed value or storage type `a` matches closed type `b`. */
export function matchesValType(a: ValType, b: ValType): boolean {
  if (a === b || a === BOTTOM) return true;
  if (!isRef(a) || !isRef(b)) return false;
  if (isNullable(a) && !isNullable(b)) return false;
  return heapMatches(exactHeapOf(a), exactHeapOf(b));
}

/** Whether value type `a` matches `b`, both of one module whose canonical ids are `ids`. */
export function matchesIn(ids: Int32Array, a: ValType, b: ValType): boolean {
  if (a === b || a === BOTTOM) return true;
  if (!isRef(a) || !isRef(b)) return false;
  if (isNullable(a) && !isNullable(b)) return false;
  return heapMatches(closeHeapType(exactHeapOf(a), ids), closeHeapType(exactHeapOf(b), ids));
}

function matchesAll(a: readonly ValType[], b: readonly ValType[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (!matchesValType(a[i], b[i])) return false;
  return true;
}

/** Whether closed function type `a` matches `b` by structure. (For declared types compare ids with isSubtypeId.) */
export function matchesFuncType(a: FuncType, b: FuncType): boolean {
  return matchesAll(b.params, a.params) && matchesAll(a.results, b.results);
}

function matchesFieldType(a: FieldType, b: FieldType): boolean {
  if (a.mutable !== b.mutable) return false;
  return a.mutable ? a.storage === b.storage : matchesValType(a.storage, b.storage);
}

/** Whether closed composite type `a` matches `b` by structure (specification, 3.3.5). */
export function matchesCompositeType(a: CompositeType, b: CompositeType): boolean {
  if (a.kind === "func") return b.kind === "func" && matchesFuncType(a, b);
  if (a.kind === "array") return b.kind === "array" && matchesFieldType(a.field, b.field);
  if (a.kind === "cont") return b.kind === "cont" && isSubtypeId(a.func, b.func);
  if (b.kind !== "struct" || a.fields.length < b.fields.length) return false;
  for (let i = 0; i < b.fields.length; i++) if (!matchesFieldType(a.fields[i], b.fields[i])) return false;
  return true;
}

/** Whether limits `a` match `b`. For imports, `a.min` is the current size. */
export function matchesLimits(a: Limits, b: Limits): boolean {
  if (a.address !== b.address || a.min < b.min) return false;
  return b.max === undefined || (a.max !== undefined && a.max <= b.max);
}

/** Whether closed global type `a` matches `b`. */
export function matchesGlobalType(a: GlobalType, b: GlobalType): boolean {
  if (a.mutable !== b.mutable) return false;
  return a.mutable ? a.type === b.type : matchesValType(a.type, b.type);
}

/** Whether closed table type `a` matches `b`. */
export function matchesTableType(a: TableType, b: TableType): boolean {
  return a.element === b.element && matchesLimits(a.limits, b.limits);
}

/** Whether memory type `a` matches `b`. */
export function matchesMemoryType(a: MemoryType, b: MemoryType): boolean {
  return a.shared === b.shared && pageBytes(a) === pageBytes(b) && matchesLimits(a.limits, b.limits);
}

/**
 * Whether the tag type with canonical id `a` matches that with `b`: tags match in both directions, so the ids are
 * equal.
 */
export function matchesTagType(a: number, b: number): boolean {
  return a === b;
}
