/**
 * Objects of the garbage-collected heap as the runtime creates and reads them, for constant expressions, segments and
 * the JavaScript boundary. In: canonical type ids, and values as bits. Out: addresses of initialized objects
 * (gc_layout.ts).
 *
 * Invariant: addresses held only by JavaScript are not roots, so a caller that allocates several objects passes an
 * allocator that does not collect.
 */
import { type FieldLayout, layoutFields, OBJECT } from "../../abi/gc_layout.ts";
import { currentHost } from "../../host/current.ts";
import { canonicalType, fieldsBeforeDescriptor, matchesValType } from "../../wasm/subtype.ts";
import { byteSize, EXTERNREF, isRef, type ValType } from "../../wasm/types.ts";

/** The memory layout of a struct type. */
interface Layout extends FieldLayout {
  readonly storage: readonly ValType[];
}

/** Allocates an object of `bytes`, header included. Returns its address. */
type Allocate = (bytes: number) => number;

/** Layouts by canonical type id; both belong to the realm. */
const layouts: (Layout | undefined)[] = [];

function layoutOf(typeId: number): Layout {
  const known = layouts[typeId];
  if (known !== undefined) return known;
  const { composite } = canonicalType(typeId);
  const fields = composite.kind === "struct" ? composite.fields : [];
  const storage = fields.map((field) => field.storage);
  return layouts[typeId] = { ...layoutFields(storage.map(byteSize), fieldsBeforeDescriptor(typeId)), storage };
}

/** The storage type of the elements of array type `typeId`. */
function elementOf(typeId: number): ValType {
  const { composite } = canonicalType(typeId);
  return composite.kind === "array" ? composite.field.storage : 0;
}

/** The size in bytes of an element of array type `typeId`. */
export function elementBytes(typeId: number): number {
  return byteSize(elementOf(typeId));
}

function viewOf(address: number, bytes: number): DataView {
  return new DataView(currentHost().view(address, bytes));
}

/** Writes the low bits of `bits` as a field of type `storage`. */
function writeBits(view: DataView, at: number, storage: ValType, bits: bigint): void {
  switch (byteSize(storage)) {
    case 1:
      view.setUint8(at, Number(bits & 0xffn));
      return;
    case 2:
      view.setUint16(at, Number(bits & 0xffffn), true);
      return;
    case 4:
      view.setUint32(at, Number(bits & 0xffffffffn), true);
      return;
    case 16:
      view.setBigUint64(at + 8, BigInt.asUintN(64, bits >> 64n), true);
  }
  view.setBigUint64(at, BigInt.asUintN(64, bits), true);
}

function writeHeader(view: DataView, typeId: number, length: number): void {
  view.setUint32(OBJECT.TYPE_ID, typeId, true);
  view.setUint32(OBJECT.LENGTH, length, true);
}

/**
 * Creates a struct of type `typeId` with the given fields, or with all fields zero. `descriptor` is the reference to
 * its descriptor if the type has one.
 */
export function newStruct(
  allocate: Allocate,
  typeId: number,
  fields: readonly bigint[] | undefined,
  descriptor?: bigint,
): number {
  const { bytes, offsets, storage, descriptor: at } = layoutOf(typeId);
  const address = allocate(bytes);
  const view = viewOf(address, bytes);
  writeHeader(view, typeId, 0);
  fields?.forEach((bits, k) => writeBits(view, offsets[k], storage[k], bits));
  if (descriptor !== undefined) view.setBigUint64(at, descriptor, true);
  return address;
}

/** Creates an array of type `typeId` with `length` elements, all equal to `fill`. */
export function newFilledArray(allocate: Allocate, typeId: number, length: number, fill: bigint): number {
  const { address, view, storage, size } = newArray(allocate, typeId, length);
  if (fill !== 0n) { for (let k = 0; k < length; k++) writeBits(view, OBJECT.FIELDS + k * size, storage, fill); }
  return address;
}

/** Creates an array with the given elements. */
export function newFixedArray(allocate: Allocate, typeId: number, elements: readonly bigint[]): number {
  const { address, view, storage, size } = newArray(allocate, typeId, elements.length);
  elements.forEach((bits, k) => writeBits(view, OBJECT.FIELDS + k * size, storage, bits));
  return address;
}

/** Creates an array whose elements have the raw contents `bytes`. */
export function newArrayOfBytes(allocate: Allocate, typeId: number, length: number, bytes: Uint8Array): number {
  const { address, view } = newArray(allocate, typeId, length);
  new Uint8Array(view.buffer, OBJECT.FIELDS).set(bytes);
  return address;
}

/** Creates an array of references. */
export function newArrayOfWords(allocate: Allocate, typeId: number, words: readonly number[]): number {
  const { address } = newArray(allocate, typeId, words.length);
  writeWords(address, 0, words);
  return address;
}

function newArray(allocate: Allocate, typeId: number, length: number) {
  const storage = elementOf(typeId);
  const size = byteSize(storage);
  const bytes = OBJECT.FIELDS + length * size;
  const address = allocate(bytes);
  const view = viewOf(address, bytes);
  writeHeader(view, typeId, length);
  return { address, view, storage, size };
}

/** Writes raw elements of the array at `address`, starting at byte offset `at` of its elements. */
export function writeBytes(address: number, at: number, bytes: Uint8Array): void {
  if (bytes.length === 0) return;
  new Uint8Array(currentHost().view(address + OBJECT.FIELDS + at, bytes.length)).set(bytes);
}

/** Writes references to the array at `address`, starting at element `first`. */
export function writeWords(address: number, first: number, words: readonly number[]): void {
  if (words.length === 0) return;
  const u32 = new Uint32Array(currentHost().view(address + OBJECT.FIELDS + first * 8, words.length * 8));
  words.forEach((word, k) => {
    u32[2 * k] = word;
    u32[2 * k + 1] = word / 0x1_0000_0000;
  });
}

/** The contents of an object. */
interface Shape {
  /** The size in bytes, header included. */
  readonly bytes: number;
  /** The offsets of its references; undefined if everything after the header is references. */
  readonly references: readonly number[] | undefined;
}

/** The contents of an object of type `typeId`, which has `length` elements if it is an array. */
export function objectShape(typeId: number, length: number): Shape {
  if (canonicalType(typeId).composite.kind === "struct") return structShape(typeId);
  return {
    bytes: OBJECT.FIELDS + length * elementBytes(typeId),
    references: isRef(elementOf(typeId)) ? undefined : [],
  };
}

/** By canonical type id of a struct type. */
const structShapes: (Shape | undefined)[] = [];

function structShape(typeId: number): Shape {
  const { bytes, offsets, storage, descriptor } = layoutOf(typeId);
  return structShapes[typeId] ??= {
    bytes,
    references: [...offsets.filter((_, k) => isRef(storage[k])), ...(descriptor === 0 ? [] : [descriptor])],
  };
}

/**
 * The reference from which the object at `address` has its prototype in JavaScript: the first field of its descriptor,
 * if that is an immutable externref (custom descriptors, "JS Prototypes"). 0 for all other objects.
 */
export function prototypeWord(address: number): number {
  const typeId = typeIdAt(address);
  const { descriptor } = canonicalType(typeId);
  if (descriptor === undefined) return 0;
  const { composite } = canonicalType(descriptor);
  const first = composite.kind === "struct" ? composite.fields[0] : undefined;
  if (first === undefined || first.mutable || !matchesValType(first.storage, EXTERNREF)) return 0;
  return wordAt(wordAt(address + layoutOf(typeId).descriptor) + layoutOf(descriptor).offsets[0]);
}

function wordAt(address: number): number {
  return Number(viewOf(address, 8).getBigUint64(0, true));
}

/** The canonical type id of the object at `address`. */
export function typeIdAt(address: number): number {
  return viewOf(address, 8).getUint32(OBJECT.TYPE_ID, true);
}
