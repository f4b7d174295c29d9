/**
 * Reference types as machine code sees them. In: closed heap types and value types (wasm/subtype.ts). Out: the
 * relations and layouts that the rules need. An externref and an anyref have the same representation, and a conversion
 * between them has no code; therefore `extern` is read as `any` everywhere.
 */
import { type FieldLayout, layoutFields, OBJECT } from "../abi/gc_layout.ts";
import { canonicalType, fieldsBeforeDescriptor, heapMatches, supertypeId } from "../wasm/subtype.ts";
import {
  byteSize,
  type FieldType,
  HEAP,
  heapOf,
  type HeapType,
  isNullable,
  isRef,
  refType,
  type ValType,
} from "../wasm/types.ts";

/** The heap type whose values have the representation of `heap`. */
export function machineHeap(heap: HeapType): HeapType {
  return heap === HEAP.extern ? HEAP.any : heap === HEAP.noextern ? HEAP.none : heap;
}

/** The next larger heap type: a declared supertype, or the abstract one above. HEAP.any for the tops. */
function above(heap: HeapType): HeapType {
  if (heap >= 0) {
    const declared = supertypeId(heap);
    return declared !== 0 ? declared : HEAP[canonicalType(heap).composite.kind];
  }
  return heap === HEAP.struct || heap === HEAP.array || heap === HEAP.i31 ? HEAP.eq : HEAP.any;
}

/** A heap type that both heap types match; undefined for types of different hierarchies. */
export function commonHeap(x: HeapType, y: HeapType): HeapType | undefined {
  for (;;) {
    if (heapMatches(y, x)) return x;
    if (heapMatches(x, y)) return y;
    if (x === HEAP.any || x === HEAP.func || x === HEAP.exn) return undefined;
    x = above(x);
  }
}

/** Whether every non-null reference of this type is an address. */
export function isAddress(heap: HeapType): boolean {
  return heap >= 0 || heap === HEAP.struct || heap === HEAP.array || heap === HEAP.func;
}

/** The element type of array type `heap`; undefined for other types. */
export function elementOf(heap: HeapType): FieldType | undefined {
  const composite = heap < 0 ? undefined : canonicalType(heap).composite;
  return composite?.kind === "array" ? composite.field : undefined;
}

/** log2 of the bytes of an element of `storage`. */
export function elementShift(storage: ValType): number {
  return Math.log2(byteSize(storage));
}

/** Bytes of an element of array type `heap`, 0 for other types. */
export function elementBytes(heap: HeapType): number {
  const field = elementOf(heap);
  return field === undefined ? 0 : byteSize(field.storage);
}

/** Offsets of fields by structure type; layouts are the same for the whole process. */
const LAYOUTS = new Map<HeapType, FieldLayout>();

function layoutOf(heap: HeapType, fields: readonly FieldType[]): FieldLayout {
  let layout = LAYOUTS.get(heap);
  if (layout === undefined) {
    layout = layoutFields(fields.map(({ storage }) => byteSize(storage)), fieldsBeforeDescriptor(heap));
    LAYOUTS.set(heap, layout);
  }
  return layout;
}

/**
 * The field of `size` bytes at offset `at` of structure type `heap`, which may be the reference to the descriptor;
 * undefined if there is none.
 */
export function fieldAt(heap: HeapType, at: number, size: number): FieldType | undefined {
  if (heap < 0) return undefined;
  const { composite, descriptor } = canonicalType(heap);
  if (composite.kind !== "struct") return undefined;
  const layout = layoutOf(heap, composite.fields);
  if (descriptor !== undefined && at === layout.descriptor) {
    return size === 8 ? { storage: refType(false, descriptor), mutable: false } : undefined;
  }
  const k = layout.offsets.indexOf(at);
  const field = k < 0 ? undefined : composite.fields[k];
  return field !== undefined && byteSize(field.storage) === size ? field : undefined;
}

/** Bytes of an object of structure type `heap`; 0 for other types. */
export function structBytes(heap: HeapType): number {
  const { composite } = canonicalType(heap);
  return composite.kind === "struct" ? layoutOf(heap, composite.fields).bytes : 0;
}

/** Whether storage type `from` holds only values of storage type `to`, in the same representation. */
export function storageMatches(from: ValType, to: ValType): boolean {
  if (!isRef(from) || !isRef(to)) return from === to;
  return (isNullable(to) || !isNullable(from)) && heapMatches(machineHeap(heapOf(from)), machineHeap(heapOf(to)));
}

/** Bytes of the header of an object. */
export const HEADER_BYTES = OBJECT.FIELDS;
