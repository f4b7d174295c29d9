/**
 * Value types in the encoding of wasm/types.ts, and type matching. In: types and the module's table of types. Out:
 * properties of types and the results of matching; the file writes no memory.
 */
import {
  H_TYPES,
  TYPE_CANONICAL,
  TYPE_IS_ARRAY,
  TYPE_IS_CONT,
  TYPE_IS_FUNC,
  TYPE_IS_STRUCT,
  TYPE_KIND,
  TYPE_PARENT,
  TYPE_ROW,
} from "./layout.ts";
import { type i32, load32 } from "./memory.ts";

export const BOTTOM: i32 = 0;
export const I32: i32 = 0x7f;
export const I64: i32 = 0x7e;
export const F32: i32 = 0x7d;
export const F64: i32 = 0x7c;
export const V128: i32 = 0x7b;
/** Packed storage types of fields. */
const I8: i32 = 0x78;
const I16: i32 = 0x77;

const REF: i32 = 1 << 28;
const NULLABLE: i32 = 1 << 27;
const HEAP_BIAS: i32 = 0x40;
const HEAP_MASK: i32 = 0xffffff;
/** The bit of exact heap types, and of references to them (wasm/exact_heap.ts). */
const EXACT: i32 = 1 << 26;
export const MAX_TYPE_INDEX: i32 = 0xffffff - 0x40;

/** Bytes of the abstract heap types in the binary format. */
export const FIRST_HEAP_BYTE: i32 = 0x68;
export const LAST_HEAP_BYTE: i32 = 0x75;
/** Begins an exact heap type. */
export const EXACT_BYTE: i32 = 0x62;

// Abstract heap types: the binary format's codes as signed numbers.
export const HEAP_NOCONT: i32 = -0x0b;
export const HEAP_NOEXN: i32 = -0x0c;
const HEAP_NOFUNC: i32 = -0x0d;
const HEAP_NOEXTERN: i32 = -0x0e;
const HEAP_NONE: i32 = -0x0f;
export const HEAP_FUNC: i32 = -0x10;
export const HEAP_EXTERN: i32 = -0x11;
export const HEAP_ANY: i32 = -0x12;
export const HEAP_EQ: i32 = -0x13;
export const HEAP_I31: i32 = -0x14;
export const HEAP_STRUCT: i32 = -0x15;
export const HEAP_ARRAY: i32 = -0x16;
export const HEAP_EXN: i32 = -0x17;
export const HEAP_CONT: i32 = -0x18;
/** Subtype of all heap types: that of references in unreachable code. */
const HEAP_BOTTOM: i32 = -0x40;

export function refType(isNullable: i32, heap: i32): i32 {
  return REF | (isNullable !== 0 ? NULLABLE : 0) | (heap + HEAP_BIAS);
}

export const FUNCREF: i32 = REF | NULLABLE | (HEAP_FUNC + HEAP_BIAS);
export const EXTERNREF: i32 = REF | NULLABLE | (HEAP_EXTERN + HEAP_BIAS);
export const REF_BOTTOM: i32 = REF | (HEAP_BOTTOM + HEAP_BIAS);

export function isRef(type: i32): boolean {
  return (type & REF) !== 0;
}

export function isNullable(type: i32): boolean {
  return (type & NULLABLE) !== 0;
}

/** The heap type of the reference type `type`, exact if that is. */
export function heapOf(type: i32): i32 {
  return (type & (HEAP_MASK | EXACT)) - HEAP_BIAS;
}

/** The heap type `(exact index)`. */
export function exactHeap(index: i32): i32 {
  return index | EXACT;
}

/** Whether heap type `heap` is exact. */
export function isExact(heap: i32): boolean {
  return heap >= EXACT;
}

/** Heap type `heap` without its exactness: a type index, or an abstract heap type. */
export function inexact(heap: i32): i32 {
  return heap >= EXACT ? heap & ~EXACT : heap;
}

/** The non-nullable reference type with the same heap type. */
export function nonNull(type: i32): i32 {
  return type & ~NULLABLE;
}

/** The register bank of a type: 1 for vector registers, 0 for general registers. */
export function bankOf(type: i32): i32 {
  return type >= V128 && type <= F32 ? 1 : 0;
}

/** 1 if values of `type` take 64 bits of a general register, 0 for i32. */
export function isWide(type: i32): i32 {
  return type === I32 ? 0 : 1;
}

/** Bytes of a value's home in a frame. */
export function homeBytes(type: i32): i32 {
  return type === V128 ? 16 : 8;
}

export function isPacked(storage: i32): boolean {
  return storage === I8 || storage === I16;
}

/** The type of a field's value on the operand stack. */
export function unpacked(storage: i32): i32 {
  return isPacked(storage) ? I32 : storage;
}

/** log2 of the size of a value of `storage`. */
export function storageWidth(storage: i32): i32 {
  switch (storage) {
    case I8:
      return 0;
    case I16:
      return 1;
    case I32:
    case F32:
      return 2;
    case V128:
      return 4;
  }
  return 3;
}

/** Address of the row of type `index`. */
export function typeRow(index: i32): i32 {
  return load32(H_TYPES) + index * TYPE_ROW;
}

function canonicalId(index: i32): i32 {
  return load32(typeRow(index) + TYPE_CANONICAL);
}

/** Whether type `index` is equivalent to type `above` or a declared subtype of it. */
function isSubtypeIndex(index: i32, above: i32): boolean {
  const id = canonicalId(above);
  let k = index;
  while (k >= 0) {
    if (canonicalId(k) === id) return true;
    k = load32(typeRow(k) + TYPE_PARENT);
  }
  return false;
}

/** Whether `heap` is a type index of `kind`, exact or not. */
function isOfKind(heap: i32, kind: i32): boolean {
  return heap >= 0 && load32(typeRow(inexact(heap)) + TYPE_KIND) === kind;
}

/** The top heap type of the hierarchy of `heap`. */
export function topHeap(heap: i32): i32 {
  if (heap >= 0) {
    if (isOfKind(heap, TYPE_IS_FUNC)) return HEAP_FUNC;
    return isOfKind(heap, TYPE_IS_CONT) ? HEAP_CONT : HEAP_ANY;
  }
  switch (heap) {
    case HEAP_FUNC:
    case HEAP_NOFUNC:
      return HEAP_FUNC;
    case HEAP_EXTERN:
    case HEAP_NOEXTERN:
      return HEAP_EXTERN;
    case HEAP_EXN:
    case HEAP_NOEXN:
      return HEAP_EXN;
    case HEAP_CONT:
    case HEAP_NOCONT:
      return HEAP_CONT;
  }
  return HEAP_ANY;
}

function bottomHeap(top: i32): i32 {
  if (top === HEAP_FUNC) return HEAP_NOFUNC;
  if (top === HEAP_EXTERN) return HEAP_NOEXTERN;
  if (top === HEAP_EXN) return HEAP_NOEXN;
  return top === HEAP_CONT ? HEAP_NOCONT : HEAP_NONE;
}

/** Whether null is the only value of an abstract heap type. */
export function isBottomHeap(heap: i32): boolean {
  return heap === HEAP_NONE || heap === HEAP_NOFUNC || heap === HEAP_NOEXTERN || heap === HEAP_NOEXN ||
    heap === HEAP_NOCONT;
}

export function heapMatches(a: i32, b: i32): boolean {
  if (a === b || a === HEAP_BOTTOM) return true;
  if (b === HEAP_BOTTOM) return false;
  if (a >= 0 && b >= 0) {
    if (!isExact(b)) return isSubtypeIndex(inexact(a), b);
    return isExact(a) && canonicalId(inexact(a)) === canonicalId(inexact(b));
  }
  const top = topHeap(a);
  if (top !== topHeap(b)) return false;
  if (b === top || a === bottomHeap(top)) return true;
  if (top !== HEAP_ANY || b >= 0) return false;
  const isStruct = a === HEAP_STRUCT || isOfKind(a, TYPE_IS_STRUCT);
  const isArray = a === HEAP_ARRAY || isOfKind(a, TYPE_IS_ARRAY);
  if (b === HEAP_EQ) return isStruct || isArray || a === HEAP_I31;
  return (b === HEAP_STRUCT && isStruct) || (b === HEAP_ARRAY && isArray);
}

/** Whether value type `a` is a subtype of value type `b`. */
export function matches(a: i32, b: i32): boolean {
  if (a === b || a === BOTTOM) return true;
  if (!isRef(a) || !isRef(b)) return false;
  if (isNullable(a) && !isNullable(b)) return false;
  return heapMatches(heapOf(a), heapOf(b));
}
