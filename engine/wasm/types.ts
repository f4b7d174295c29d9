/**
 * Value, reference, function and limits types (specification, 2.3) and how they are printed.
 *
 * A value type is one int32, so that stacks of types are typed arrays and equality is `===`:
 * - number, vector and packed types are their binary code (0x7f i32 … 0x77 i16);
 * - a reference type has bit REF set, bit NULLABLE when null belongs to it, and its heap type in the low 24 bits,
 *   biased by HEAP_BIAS so that abstract heap types (negative, the binary format's s33 codes) and type indices (≥ 0)
 *   both fit; bit EXACT means that values are of that type itself, not of a subtype (custom descriptors);
 * - BOTTOM (0) is the type of operands in unreachable code.
 */

import { EXACT, inexact, isExact } from "./exact_heap.ts";

/** A value or storage type, packed as described at the top of this file. */
export type ValType = number;
/** A heap type: ≥ 0 is a type index, with bit EXACT if it is exact, < 0 one of {@linkcode HEAP}. */
export type HeapType = number;

export const BOTTOM: ValType = 0;
export const I32: ValType = 0x7f;
export const I64: ValType = 0x7e;
export const F32: ValType = 0x7d;
export const F64: ValType = 0x7c;
export const V128: ValType = 0x7b;
/** Packed storage types of fields; never on the operand stack. */
export const I8: ValType = 0x78;
export const I16: ValType = 0x77;

/** Abstract heap types: the binary format's codes as signed 7-bit numbers. */
export const HEAP = {
  nocont: -0x0b,
  noexn: -0x0c,
  nofunc: -0x0d,
  noextern: -0x0e,
  none: -0x0f,
  func: -0x10,
  extern: -0x11,
  any: -0x12,
  eq: -0x13,
  i31: -0x14,
  struct: -0x15,
  array: -0x16,
  exn: -0x17,
  cont: -0x18,
} as const;

export const REF = 1 << 28;
export const NULLABLE = 1 << 27;
export const HEAP_BIAS = 0x40;
const HEAP_MASK = 0xffffff;

/** The reference type `(ref null? heap)`. */
export function refType(nullable: boolean, heap: HeapType): ValType {
  return REF | (nullable ? NULLABLE : 0) | (heap + HEAP_BIAS);
}

export const FUNCREF: ValType = refType(true, HEAP.func);
export const EXTERNREF: ValType = refType(true, HEAP.extern);
export const EXNREF: ValType = refType(true, HEAP.exn);

/** Whether `type` is a reference type. */
export function isRef(type: ValType): boolean {
  return (type & REF) !== 0;
}

/** Whether a field of storage type `storage` is packed: an i8 or i16, which is an i32 on the operand stack. */
export function isPacked(storage: ValType): boolean {
  return storage === I8 || storage === I16;
}

/** Whether the reference type `type` includes null. */
export function isNullable(type: ValType): boolean {
  return (type & NULLABLE) !== 0;
}

/** The heap type of the reference type `type`, without its exactness. */
export function heapOf(type: ValType): HeapType {
  return (type & HEAP_MASK) - HEAP_BIAS;
}

/** The heap type of the reference type `type`, exact if that is. */
export function exactHeapOf(type: ValType): HeapType {
  return (type & (HEAP_MASK | EXACT)) - HEAP_BIAS;
}

/** Whether `type` has a default value (specification, 3.2.14). */
export function isDefaultable(type: ValType): boolean {
  return !isRef(type) || isNullable(type);
}

/** Size in bytes of a value or packed field of `type` in memory; references are 8. */
export function byteSize(type: ValType): number {
  switch (type) {
    case I8:
      return 1;
    case I16:
      return 2;
    case I32:
    case F32:
      return 4;
    case V128:
      return 16;
    default:
      return 8;
  }
}

const NUM_NAMES = new Map<ValType, string>([
  [BOTTOM, "bot"],
  [I32, "i32"],
  [I64, "i64"],
  [F32, "f32"],
  [F64, "f64"],
  [V128, "v128"],
  [I8, "i8"],
  [I16, "i16"],
]);

const HEAP_NAMES = new Map<number, string>(Object.entries(HEAP).map(([name, code]) => [code, name]));

/** Text shorthands of nullable abstract reference types: `funcref`, `nullexternref`, … by heap code. */
export const REF_SHORTHANDS: ReadonlyMap<HeapType, string> = new Map<HeapType, string>([
  [HEAP.func, "funcref"],
  [HEAP.extern, "externref"],
  [HEAP.any, "anyref"],
  [HEAP.eq, "eqref"],
  [HEAP.i31, "i31ref"],
  [HEAP.struct, "structref"],
  [HEAP.array, "arrayref"],
  [HEAP.exn, "exnref"],
  [HEAP.noexn, "nullexnref"],
  [HEAP.none, "nullref"],
  [HEAP.nofunc, "nullfuncref"],
  [HEAP.noextern, "nullexternref"],
  [HEAP.cont, "contref"],
  [HEAP.nocont, "nullcontref"],
]);

/** `func`, `extern`, … or the type index, as in the text format. */
export function heapTypeName(heap: HeapType): string {
  if (isExact(heap)) return `(exact ${inexact(heap)})`;
  return heap >= 0 ? String(heap) : HEAP_NAMES.get(heap) ?? `heap(${heap})`;
}

/** The text format's name of a value type, shortest form. */
export function valTypeName(type: ValType): string {
  if (!isRef(type)) return NUM_NAMES.get(type) ?? `type(${type})`;
  const heap = exactHeapOf(type);
  if (isNullable(type) && heap < 0) return REF_SHORTHANDS.get(heap)!;
  return `(ref ${isNullable(type) ? "null " : ""}${heapTypeName(heap)})`;
}

/** `[i32 i64] -> [f32]`, for messages. */
export function funcTypeName(type: { params: readonly ValType[]; results: readonly ValType[] }): string {
  return `[${type.params.map(valTypeName).join(" ")}] -> [${type.results.map(valTypeName).join(" ")}]`;
}

export interface FuncType {
  kind: "func";
  params: ValType[];
  results: ValType[];
}

export interface FieldType {
  /** A value type or the packed I8 / I16. */
  storage: ValType;
  mutable: boolean;
}

export interface StructType {
  kind: "struct";
  fields: FieldType[];
}

export interface ArrayType {
  kind: "array";
  field: FieldType;
}

/** The type of continuations of a function type (stack switching). */
export interface ContType {
  kind: "cont";
  /** The index of the function type; a canonical id in a closed type (subtype.ts). */
  func: number;
}

export type CompositeType = FuncType | StructType | ArrayType | ContType;

/** One entry of the type index space (specification, 2.3.9). */
export interface SubType {
  final: boolean;
  /** Type indices of declared supertypes; the binary format allows several, validation at most one. */
  supertypes: number[];
  /** The index of the type whose objects have those of this type as descriptors (custom descriptors). */
  describes?: number;
  /** The index of the type of the descriptors that objects of this type have. */
  descriptor?: number;
  composite: CompositeType;
}

/** Address type of a memory or table. */
export type AddressType = typeof I32 | typeof I64;

export interface Limits {
  /** I32 or I64. */
  address: AddressType;
  /** Pages or elements; bigint because memory64 and table64 reach 2^64 − 1. */
  min: bigint;
  max?: bigint;
}

export interface MemoryType {
  limits: Limits;
  shared: boolean;
  /** Bytes of a page, if the type states them (custom page sizes): a power of two; 1 or 65,536 in a valid module. */
  pageSize?: number;
}

/** Bytes of a page in memories whose types do not state them (specification, 4.2.8). */
export const PAGE_BYTES = 0x10000;

/** Bytes of a page in memories of a type. */
export function pageBytes({ pageSize }: MemoryType): number {
  return pageSize ?? PAGE_BYTES;
}

/**
 * Whether guard pages can bound the accesses to memories of a type: 32-bit addresses, and a length that is always a
 * multiple of the host's pages.
 */
export function isGuardable(type: MemoryType): boolean {
  return type.limits.address !== I64 && pageBytes(type) === PAGE_BYTES;
}

export interface TableType {
  limits: Limits;
  element: ValType;
}

export interface GlobalType {
  type: ValType;
  mutable: boolean;
}

/**
 * A tag's type: the index of a function type whose parameters are the payload. Its results, which only tags of stack
 * switching have, are the values with which a computation that has suspended is resumed.
 */
export interface TagType {
  typeIndex: number;
}
