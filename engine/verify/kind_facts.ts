/**
 * Facts by kind of value: functions that name the columns of Facts as each kind uses them.
 */
import { commonHeap } from "./references.ts";
import { HEAP, type HeapType } from "../wasm/types.ts";
import { type Facts, MAX32 } from "./facts.ts";
import { NUMBER_FACTS, REFERENCE_FACTS, VALUE } from "./value_kinds.ts";

/** Location `l` becomes a value without bounds, or the start of an object; `id`: which one of its kind, if any. */
export function setObject(facts: Facts, l: number, kind: number, id = 0, name = 0): void {
  facts.set(l, kind, id, 0, 0, name);
}

/** Location `l` becomes the address at `distance` in the stack or the image. */
export function setAddress(facts: Facts, l: number, kind: number, distance: number): void {
  facts.set(l, kind, 0, distance, distance, 0);
}

/** Location `l` becomes a value of `kind` that belongs to the record or object named `subject`. */
export function setAbout(facts: Facts, l: number, kind: number, subject: number, name = 0): void {
  facts.set(l, kind, subject, 0, 0, name);
}

/** Location `l` becomes the ancestor at `depth` of the type of the record or object named `subject`. */
export function setAncestor(facts: Facts, l: number, subject: number, depth: number): void {
  facts.set(l, VALUE.ANCESTOR, subject, depth, depth, 0);
}

/** Location `l` becomes the low bits, mask `mask`, of the reference named `subject`. */
export function setTagBits(facts: Facts, l: number, subject: number, mask: number, name: number): void {
  facts.set(l, VALUE.TAG_BITS, subject, mask, mask, name);
}

/** Location `l` becomes the outcome of the test whether the reference named `subject` is of type `heap`, not null. */
export function setTest(facts: Facts, l: number, kind: number, subject: number, heap: HeapType, name: number): void {
  facts.set(l, kind, subject, heap, heap, name);
}

/** Location `l` becomes a reference of heap type `heap`; `known`: REFERENCE_FACTS; `length`: the least of an array. */
export function setHeapReference(
  facts: Facts,
  l: number,
  heap: HeapType,
  known: number,
  length: number,
  name: number,
): void {
  facts.set(l, VALUE.REFERENCE, heap, known, length, name);
}

/** Location `l` becomes a free slot; `known`: SLOT_FACTS; `bytes`: its size if that is constant, otherwise 0. */
export function setSlot(
  facts: Facts,
  l: number,
  slotClass: number,
  known: number,
  bytes: number,
  name: number,
): void {
  facts.set(l, VALUE.FREE_SLOT, slotClass, known, bytes, name);
}

/** Location `l` becomes the address at `distance` from an element of an array of type `type`. */
export function setElementAddress(facts: Facts, l: number, type: HeapType, distance: number): void {
  facts.set(l, VALUE.ELEMENT, type, distance, distance, 0);
}

/** Location `l` becomes the length `limit` of a memory or table, at most `longest`. */
export function setLength(facts: Facts, l: number, limit: number, longest: number, name: number): void {
  facts.set(l, VALUE.LENGTH, limit, 0, longest, name);
}

/** Location `l` becomes the length of the array named `subject`. */
export function setArrayLength(facts: Facts, l: number, subject: number, name: number): void {
  facts.set(l, VALUE.ARRAY_LENGTH, subject, 0, MAX32, name);
}

/** Location `l` becomes zero, or ones in all of the low `bytes` bytes and zeros above. */
export function setMask(facts: Facts, l: number, bytes: number, name: number): void {
  facts.set(l, VALUE.MASK, 0, bytes, bytes, name);
}

/** Location `l` becomes an entry first … last of the jumps at `offset` of the image, or the address that one has. */
export function setJump(facts: Facts, l: number, kind: number, offset: number, first: number, last: number): void {
  facts.set(l, kind, offset, first, last, 0);
}

/** Facts about the number at location `l` (NUMBER_FACTS), with those that its bounds imply. */
export function numberFacts({ traits, low, high }: Facts, l: number): number {
  const { ODD, ZERO_OR_ODD } = NUMBER_FACTS;
  if (low[l] > 0 && (traits[l] & ZERO_OR_ODD) !== 0) return traits[l] | ODD;
  if (low[l] !== high[l]) return traits[l];
  return traits[l] | (low[l] === 0 ? ZERO_OR_ODD : low[l] % 2 === 1 ? ODD | ZERO_OR_ODD : 0);
}

/** Whether the number at location `l` is a reference to an integer, or null. */
function isInteger31(facts: Facts, l: number): boolean {
  return facts.high[l] <= MAX32 && (numberFacts(facts, l) & NUMBER_FACTS.ZERO_OR_ODD) !== 0;
}

/** The null reference, of any hierarchy. */
const NULL_HEAP = 0;

/** The heap type of the reference at location `l`; undefined for other values. */
export function referenceHeap(facts: Facts, l: number): number | undefined {
  const { kind, heap, low, high } = facts;
  if (kind[l] === VALUE.REFERENCE) return heap[l];
  if (kind[l] !== VALUE.NUMBER) return undefined;
  if (low[l] === 0 && high[l] === 0) return NULL_HEAP;
  return isInteger31(facts, l) ? HEAP.i31 : undefined;
}

export function commonHeapOf(x: number, y: number): number | undefined {
  return x === NULL_HEAP ? y : y === NULL_HEAP ? x : commonHeap(x, y);
}

export function referenceFacts(facts: Facts, l: number): number {
  const { kind, known, high } = facts;
  if (kind[l] === VALUE.REFERENCE) return known[l];
  if (kind[l] === VALUE.CONTEXT) return REFERENCE_FACTS.NOT_NULL;
  if (high[l] === 0) return REFERENCE_FACTS.OBJECT | REFERENCE_FACTS.OWN;
  return (numberFacts(facts, l) & NUMBER_FACTS.ODD) !== 0 ? REFERENCE_FACTS.NOT_NULL : 0;
}

export function leastLength({ kind, leastLength, high }: Facts, l: number): number {
  if (kind[l] === VALUE.REFERENCE) return leastLength[l];
  return kind[l] === VALUE.NUMBER && high[l] === 0 ? Infinity : 0;
}

/** Location `to` becomes one of the references in `to` and `from`, without a name; false if they are not references. */
export function joinReferences(facts: Facts, to: number, from: number): boolean {
  const x = referenceHeap(facts, to), y = referenceHeap(facts, from);
  const id = x === undefined || y === undefined ? undefined : commonHeapOf(x, y);
  if (id === undefined) return false;
  const low = referenceFacts(facts, to) & referenceFacts(facts, from) & (x === y ? -1 : ~REFERENCE_FACTS.FRESH);
  setHeapReference(facts, to, id, low, Math.min(leastLength(facts, to), leastLength(facts, from)), 0);
  return true;
}
