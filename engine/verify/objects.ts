/**
 * Rules for references and objects of the collected heap. In: an address in an object, a value that is stored or
 * passed, the outcome of a test. Out: proof of the access or a failure, and the type of the value.
 *
 *     fields      at an offset and of a size that the type of the object has; null faults in the first page
 *     elements    array + index × size + header, with an index below the length; loads of the length fault for null
 *     stores      to mutable fields, of values that match the field's type
 *     tests       null, low bits, type ids and kinds refine every location that has the reference
 */
import { RECORD } from "../abi/context_layout.ts";
import { OBJECT, REF_TAG, TYPE_KIND } from "../abi/gc_layout.ts";
import { TY, TY_BANK } from "../ir/types.ts";
import { bottomOf, heapMatches, topHeap } from "../wasm/subtype.ts";
import { HEAP, heapOf, type HeapType, isNullable, isRef, type ValType } from "../wasm/types.ts";
import { type Analysis, REASON } from "./analysis.ts";
import { ZERO_NAME } from "./ranges.ts";
import { type Facts, MAX32, PLACE } from "./facts.ts";
import { numberFacts, setAbout, setArrayLength, setElementAddress, setHeapReference } from "./kind_facts.ts";
import { elementLimit, isArrayLimit, isProductLimit, limitName, limitShift } from "./limits.ts";
import { NUMBER_FACTS, REFERENCE_FACTS, VALUE } from "./value_kinds.ts";
import {
  elementOf,
  elementShift,
  fieldAt,
  HEADER_BYTES,
  isAddress,
  machineHeap,
  storageMatches,
} from "./references.ts";

/** Accesses to addresses below this fault. */
export const NULL_PAGE = 4096;
const { ADDRESS, RESULT } = PLACE;
const { NOT_NULL, OBJECT: IS_OBJECT } = REFERENCE_FACTS;

/** Location `l` becomes a reference of value type `type`, named `name`. */
export function setReference(a: Analysis, l: number, type: ValType, name: number): void {
  setHeapReference(a.facts, l, machineHeap(heapOf(type)), isNullable(type) ? 0 : NOT_NULL, 0, name);
}

/** Whether the value of location `l` is proven to be of value type `type`; true for types of numbers and vectors. */
export function isOfType(a: Analysis, l: number, type: ValType): boolean {
  if (!isRef(type)) return true;
  const { facts } = a;
  const heap = machineHeap(heapOf(type));
  switch (facts.kind[l]) {
    case VALUE.NUMBER:
      if (facts.high[l] === 0) return isNullable(type);
      return isInteger31(facts, l, isNullable(type)) && heapMatches(HEAP.i31, heap);
    case VALUE.REFERENCE:
      return heapMatches(facts.heap[l], heap) && (isNullable(type) || (facts.known[l] & NOT_NULL) !== 0);
    case VALUE.CONTEXT:
      return isFunctionOf(a, l, heap);
  }
  return false;
}

/** Whether the number at location `l` is a reference to an integer, which may be null with `orNull`. */
function isInteger31(facts: Facts, l: number, orNull: boolean): boolean {
  const wanted = orNull ? NUMBER_FACTS.ZERO_OR_ODD : NUMBER_FACTS.ODD;
  return facts.high[l] <= MAX32 && (numberFacts(facts, l) & wanted) !== 0;
}

/** Whether the location is the address of the record of a function of type `heap`. */
function isFunctionOf({ facts, module }: Analysis, l: number, heap: HeapType): boolean {
  const { layout } = module.code;
  const at = facts.low[l], index = (at - layout.importsOffset) / RECORD.SIZE;
  if (at !== facts.high[l] || !Number.isInteger(index) || index < 0 || index >= module.functionTypeId.length) {
    return false;
  }
  return heapMatches(module.functionTypeId[index], heap);
}

/** The least length of the array in location `l`, in elements. */
function leastLengthOf({ facts }: Analysis, l: number): number {
  return facts.kind[l] === VALUE.REFERENCE ? facts.leastLength[l] : 0;
}

/** Proves an access to an object at a constant distance; the reference is in register `a.referent`. */
export function accessReference(a: Analysis, at: number, size: number, isStore: boolean): void {
  const { facts, referent } = a;
  const heap = facts.heap[referent], known = facts.known[referent];
  if (!isAddress(heap) && (known & IS_OBJECT) === 0 && heap !== bottomOf(heap)) return a.fail(REASON.OBJECT);
  if (at < 0 || ((known & NOT_NULL) === 0 && at + size > NULL_PAGE)) return a.fail(REASON.OBJECT);
  if (heap === bottomOf(heap) && at + size <= NULL_PAGE) return accessNull(a);
  if ((known & NOT_NULL) === 0) passNull(a, at);
  if (topHeap(heap) === HEAP.func) return accessRecord(a, at, size, isStore);
  if (!isStore && at === OBJECT.TYPE_ID && size === 4) {
    return setAbout(facts, RESULT, VALUE.TYPE_ID, facts.name[referent], a.name());
  }
  const isArray = heapMatches(heap, HEAP.array);
  if (isArray && !isStore && at === OBJECT.LENGTH && size === 4) {
    return setArrayLength(facts, RESULT, facts.name[referent], a.name());
  }
  const element = elementOf(heap);
  if (element !== undefined) {
    if (!isInside(at, size, elementShift(element.storage), leastLengthOf(a, referent))) return a.fail(REASON.OBJECT);
    return accessSlot(a, element.storage, element.mutable || isFresh(a, facts.name[referent]), size, isStore);
  }
  const field = fieldAt(heap, at, size);
  if (field !== undefined) {
    return accessSlot(a, field.storage, field.mutable || isFresh(a, facts.name[referent]), size, isStore);
  }
  a.fail(REASON.OBJECT);
}

/** A reference of a bottom type is null, and the access faults. */
function accessNull(a: Analysis): void {
  a.requireContext();
  a.faults = true;
}

/** The access at distance `at` of the object in `a.referent` faults for null, so the reference is not null after it. */
function passNull(a: Analysis, at: number): void {
  a.requireContext();
  noteNull(a, a.facts.name[a.referent], false);
  // The address has the reference's kind and name, but a distance where that has its facts.
  a.facts.low[ADDRESS] = at;
}

/** Whether the distance is that of one of the first `count` elements of `size` bytes. */
function isInside(at: number, size: number, shift: number, count: number): boolean {
  const offset = at - HEADER_BYTES;
  return size === 1 << shift && offset >= 0 && offset % size === 0 && offset / size < count;
}

/** Whether the object named `name` was allocated here: its type is known exactly, so immutable fields may be stored. */
function isFresh(a: Analysis, name: number): boolean {
  let isFresh = false;
  eachReference(a, name, (l) => isFresh ||= (a.facts.known[l] & REFERENCE_FACTS.FRESH) !== 0);
  return isFresh;
}

/** A load or store of a field or element of type `storage`. */
function accessSlot(a: Analysis, storage: ValType, mutable: boolean, size: number, isStore: boolean): void {
  if (!isStore) {
    if (isRef(storage)) setReference(a, RESULT, storage, a.name());
    return;
  }
  if (!isRef(storage)) return;
  // A subtype's immutable field may have a smaller type.
  if (!mutable || size !== 8 || a.stored < 0 || !isOfType(a, a.stored, storage)) a.fail(REASON.REFERENCE);
}

function accessRecord(a: Analysis, at: number, size: number, isStore: boolean): void {
  const { facts, referent } = a;
  const name = facts.name[referent];
  if (isStore) return a.fail(REASON.OBJECT);
  if (at === RECORD.CONTEXT && size === 8) return setAbout(facts, RESULT, VALUE.RECORD_CONTEXT, name, a.name());
  if (at === RECORD.TYPE_ID && size === 4) return setAbout(facts, RESULT, VALUE.TYPE_ID, name, a.name());
  if (at !== RECORD.CODE || size !== 8) return a.fail(REASON.OBJECT);
  setAbout(facts, RESULT, VALUE.RECORD_CODE, name, a.name());
}

/**
 * Location `to` becomes the address of the array in location `array` plus `index` × 2^scale bytes if that is an
 * element's; otherwise it is forgotten.
 */
export function makeElement(a: Analysis, to: number, array: number, index: number, scale: number): void {
  const { facts } = a;
  const type = facts.heap[array], field = elementOf(type);
  const limit = elementLimit(facts.name[array], 0);
  if (field === undefined || limit < 0 || !isCount(facts, index)) return facts.forget(to);
  const shift = elementShift(field.storage);
  const least = leastLengthOf(a, array);
  if (facts.isConstant(index)) return setElement(a, to, type, facts.low[index] * 2 ** scale, limit, least);
  const of = facts.of[index];
  if (facts.high[index] > MAX32 * 16 || limitShift(of) + scale !== shift) return facts.forget(to);
  const isBounded = isArrayLimit(of) && limitName(of) === facts.name[array];
  const room = Math.max(isBounded ? facts.room[index] : -Infinity, least - facts.high[index] / 2 ** limitShift(of));
  const isProduct = isProductLimit(of);
  if (isProduct && facts.room[index] !== 0) return facts.forget(to);
  const { name, delta } = countOf(a, index, limitShift(of));
  const isLength = name !== 0 && a.ranges.holdsNames(ZERO_NAME, 0, name, delta, limit);
  setElement(a, to, type, 0, limit, isLength ? Math.max(room, 0) : room);
  // Only the index of an element at a constant distance has no name.
  facts.name[to] = name || a.name();
  facts.delta[to] = name === 0 ? 0 : delta;
}

/** Whether the value of location `l` may be an index: a number, or a length. */
function isCount({ kind }: Facts, l: number): boolean {
  return kind[l] === VALUE.NUMBER || kind[l] === VALUE.ARRAY_LENGTH || kind[l] === VALUE.LENGTH;
}

/**
 * Location `to`, the address of an element, grows by the number in location `index`, shifted left by `scale`; it is
 * forgotten unless that is the address of an element, or of the end of the array.
 */
export function moveElement(a: Analysis, to: number, index: number, scale: number): void {
  const { facts, ranges } = a;
  const type = facts.arrayType[to], limit = facts.of[to], at = facts.low[to];
  const field = elementOf(type);
  if (field === undefined || !facts.isNumber(index)) return facts.forget(to);
  if (facts.isConstant(index)) return facts.shift(to, facts.low[index] * 2 ** scale);
  const shift = elementShift(field.storage), { name, delta } = countOf(a, index, shift - scale);
  const start = facts.name[to] || ZERO_NAME, startDelta = facts.name[to] === 0 ? 0 : facts.delta[to];
  const isEnd = name !== 0 && ranges.holdsNames(start, startDelta, name, delta, limit);
  if (!isEnd) return facts.forget(to);
  setElement(a, to, type, at, limit, 0);
  facts.name[to] = a.name();
}

/** The name and delta of the number of elements whose bytes, 1 << `shift` each, are in location `l`; name 0: none. */
function countOf({ facts, ranges }: Analysis, l: number, shift: number): { name: number; delta: number } {
  const of = facts.of[l];
  if (shift === 0) return { name: facts.name[l], delta: facts.delta[l] };
  if (isProductLimit(of)) {
    return { name: limitShift(of) === shift && facts.room[l] === 0 ? limitName(of) : 0, delta: 0 };
  }
  return { name: facts.delta[l] === 0 ? ranges.indexOf(facts.name[l], shift) : 0, delta: 0 };
}

function setElement({ facts }: Analysis, to: number, type: number, at: number, limit: number, room: number): void {
  setElementAddress(facts, to, type, at);
  facts.of[to] = limit;
  facts.room[to] = room;
}

/** Proves an access at the address of an element. */
export function accessElement(a: Analysis, size: number, isStore: boolean): void {
  const { facts } = a;
  const field = elementOf(facts.arrayType[ADDRESS]);
  const isFixed = facts.low[ADDRESS] === facts.high[ADDRESS];
  if (field === undefined || !isFixed) return a.fail(REASON.OBJECT);
  if (!isInside(facts.low[ADDRESS], size, elementShift(field.storage), facts.room[ADDRESS])) {
    return a.fail(REASON.OBJECT);
  }
  accessSlot(a, field.storage, field.mutable || isFresh(a, limitName(facts.of[ADDRESS])), size, isStore);
}

/** Whether elements may be copied from the address in location `from` to that in `to`. */
export function areCopied(a: Analysis, to: number, from: number): boolean {
  const { facts } = a;
  if (facts.kind[to] !== VALUE.ELEMENT || facts.kind[from] !== VALUE.ELEMENT) return false;
  const target = elementOf(facts.arrayType[to]), source = elementOf(facts.arrayType[from]);
  if (target === undefined || source === undefined) return false;
  return storageMatches(source.storage, target.storage) && isWritable(a, to);
}

/** Whether values of type `from` may be written to elements of arrays of type `heap`, which are new if `isNew`. */
export function isElement(heap: HeapType | undefined, from: ValType | undefined, isNew: boolean): boolean {
  const field = heap === undefined ? undefined : elementOf(heap);
  if (field === undefined || (!field.mutable && !isNew)) return false;
  return from === undefined ? !isRef(field.storage) : storageMatches(from, field.storage);
}

/** Whether bytes may be set at the address of an element in location `to`. */
export function areFilled(a: Analysis, to: number): boolean {
  const field = elementOf(a.facts.arrayType[to]);
  return field !== undefined && !isRef(field.storage);
}

/** Whether references may be written to the array in location `l`: see accessSlot. */
function isWritable(a: Analysis, l: number): boolean {
  const field = elementOf(a.facts.arrayType[l]);
  return field !== undefined && (!isRef(field.storage) || field.mutable || isFresh(a, limitName(a.facts.of[l])));
}

/**
 * Whether the bytes in register `count` are those of elements of the array that begin at the address in location `l`.
 */
export function isElementRange(a: Analysis, l: number, count: number): boolean {
  const { facts, ranges } = a;
  const field = elementOf(facts.arrayType[l]);
  const at = facts.low[l] - HEADER_BYTES;
  if (field === undefined || at < 0 || facts.low[l] !== facts.high[l]) return false;
  if (at % 2 ** elementShift(field.storage) !== 0) return false;
  const of = facts.of[count], shift = elementShift(field.storage);
  if (facts.isConstant(count) && facts.low[count] % 2 ** shift === 0) {
    return facts.room[l] * 2 ** shift >= facts.low[l] - HEADER_BYTES + facts.low[count];
  }
  // Without a name, the index is a constant.
  const constant = facts.name[l] === 0 ? at >> shift : 0;
  if (facts.name[l] !== 0 && at !== 0) return false;
  const limit = facts.of[l];
  const holds = (name: number, delta: number) =>
    ranges.holdsNames(facts.name[l] || ZERO_NAME, facts.delta[l], name, delta + constant, limit);
  if (shift === 0) return holds(facts.name[count], facts.delta[count]);
  if (isProductLimit(of)) return limitShift(of) === shift && facts.room[count] === 0 && holds(limitName(of), 0);
  const index = ranges.indexOf(facts.name[count], shift);
  return index !== 0 && facts.delta[count] === 0 && holds(index, 0);
}

/** Calls `action` with every location that has the reference named `name`. */
export function eachReference({ facts }: Analysis, name: number, action: (l: number) => void): void {
  if (name === 0) return;
  for (let l = 0; l < facts.count; l++) {
    if (facts.kind[l] === VALUE.REFERENCE && facts.name[l] === name) action(l);
  }
}

/** The reference named `name` is of heap type `heap`, and not null: impossible if it is of another type. */
export function noteType(a: Analysis, name: number, heap: HeapType): void {
  const { facts } = a;
  eachReference(a, name, (l) => {
    if (!heapMatches(facts.heap[l], heap)) {
      if (!heapMatches(heap, facts.heap[l])) a.isImpossible = true;
      facts.heap[l] = heap;
    }
    facts.known[l] |= NOT_NULL;
  });
}

/** The reference named `name` is of heap type `heap`, or null. */
export function noteHeap(a: Analysis, name: number, heap: HeapType): void {
  const { facts } = a;
  eachReference(a, name, (l) => {
    if (!heapMatches(facts.heap[l], heap)) facts.heap[l] = heap;
  });
}

/** The reference named `name` is null, or is not. */
export function noteNull(a: Analysis, name: number, isNull: boolean): void {
  const { facts } = a;
  eachReference(a, name, (l) => {
    if (isNull) facts.heap[l] = bottomOf(facts.heap[l]);
    else facts.known[l] |= NOT_NULL;
  });
}

/** The low bits of the reference named `name` under `mask` are `bits`, or are not. */
export function noteTag(a: Analysis, name: number, mask: number, bits: number, isEqual: boolean): void {
  const { facts } = a;
  if (mask === REF_TAG.I31 && (bits !== 0) === isEqual) return noteType(a, name, HEAP.i31);
  if (mask !== 3) return;
  eachReference(a, name, (l) => {
    // The low bits of an exception's reference are zero, too.
    if (isEqual && bits === 0 && topHeap(facts.heap[l]) === HEAP.any) facts.known[l] |= IS_OBJECT;
    if (!isEqual && bits === REF_TAG.HOST && facts.heap[l] === HEAP.any) facts.heap[l] = HEAP.eq;
  });
}

/** The object named `name` is a structure or array, by its TYPE_KIND. */
export function noteKind(a: Analysis, name: number, kind: number): void {
  if (kind === TYPE_KIND.STRUCT) noteType(a, name, HEAP.struct);
  else if (kind === TYPE_KIND.ARRAY) noteType(a, name, HEAP.array);
}

/** The array named `name` has at least `length` elements. */
export function noteLength(a: Analysis, name: number, length: number): void {
  const { facts } = a;
  eachReference(a, name, (l) => {
    facts.known[l] |= NOT_NULL;
    if (length > facts.leastLength[l]) facts.leastLength[l] = length;
  });
}

/** Calls `action` with each reference type in `types` and the location of its value; −1: none is known. */
function eachPassed(
  a: Analysis,
  types: readonly ValType[],
  tys: Uint8Array,
  registers: readonly number[],
  action: (type: ValType, l: number, k: number) => void,
): void {
  let next = 0;
  for (const [k, type] of types.entries()) {
    const r = TY_BANK[tys[k]] === TY_BANK[TY.REF] ? registers[next++] : -1;
    if (isRef(type)) action(type, r ?? a.overflowSlot(k), k);
  }
}

/** Fails unless values of reference types, in registers and the overflow buffer, have their types. */
export function checkReferences(
  a: Analysis,
  types: readonly ValType[],
  tys: Uint8Array,
  registers: readonly number[],
): void {
  eachPassed(a, types, tys, registers, (type, l) => {
    if (l < 0 || !isOfType(a, l, type)) a.fail(REASON.REFERENCE);
  });
}

/** Values of reference types, in registers and the overflow buffer, have their types. `nameOf` names them. */
export function passReferences(
  a: Analysis,
  types: readonly ValType[],
  tys: Uint8Array,
  registers: readonly number[],
  nameOf: (r: number) => number,
): void {
  eachPassed(a, types, tys, registers, (type, l, k) => {
    if (l >= 0 && l < PLACE.LEFT) return setReference(a, l, type, nameOf(l));
    const slot = a.newOverflowSlot(k);
    if (slot > 0) setReference(a, slot, type, 0);
  });
}
