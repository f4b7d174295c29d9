/**
 * Value types of the fuzzer's modules as strings, so that equal types are equal strings; type definitions; type
 * matching (specification, 3.3). In: strings. Out: bytes and answers. Deliberately independent of the engine.
 *
 * Concrete types are named by their index in the case's list of definitions, which all its modules share: "(ref null
 * 3)".
 */
import type { Bytes } from "./module_bytes.ts";

/** The byte of every value type with a one-byte encoding. */
const SHORT = {
  i32: 0x7f,
  i64: 0x7e,
  f32: 0x7d,
  f64: 0x7c,
  v128: 0x7b,
  funcref: 0x70,
  externref: 0x6f,
  exnref: 0x69,
} as const;

/** The byte of every abstract heap type. */
const HEAP = {
  func: 0x70,
  extern: 0x6f,
  any: 0x6e,
  eq: 0x6d,
  i31: 0x6c,
  struct: 0x6b,
  array: 0x6a,
  exn: 0x69,
  noexn: 0x74,
  nofunc: 0x73,
  noextern: 0x72,
  none: 0x71,
} as const;
type HeapName = keyof typeof HEAP;

/** A value type, as in the text format. */
export type TypeName = keyof typeof SHORT | `(ref ${string})`;

export interface Signature {
  readonly params: readonly TypeName[];
  readonly results: readonly TypeName[];
}

/** A field of a structure or the elements of an array. */
export interface Field {
  readonly storage: TypeName | "i8" | "i16";
  readonly mutable: boolean;
}

/** One entry of the list of definitions. */
export interface Definition {
  readonly index: number;
  readonly kind: "struct" | "array" | "func";
  /** The fields of a structure; an array has exactly one. */
  readonly fields: readonly Field[];
  readonly signature: Signature | undefined;
  readonly final: boolean;
  readonly above: number | undefined;
  /** Definitions with the same number form one recursion group. */
  readonly group: number;
}

export function isReference(type: TypeName): boolean {
  return type.length > 4;
}

export function isFloat(type: TypeName): boolean {
  return type === "f32" || type === "f64";
}

/** The type of a field's value on the stack. */
export function unpacked(storage: Field["storage"]): TypeName {
  return storage === "i8" || storage === "i16" ? "i32" : storage;
}

/** A reference type: `heap` is an abstract heap type or the index of a definition. */
export function refType(heap: string | number, nullable: boolean): TypeName {
  if (nullable && (heap === "func" || heap === "extern" || heap === "exn")) return `${heap}ref`;
  return nullable ? `(ref null ${heap})` : `(ref ${heap})`;
}

/** Whether null is a value of the reference type `type`. */
export function isNullable(type: TypeName): boolean {
  return type.endsWith("ref") || type.startsWith("(ref null");
}

/** The heap type of a reference type: an abstract heap type, or a definition's index as text. */
export function heapOf(type: TypeName): string {
  if (type.endsWith("ref")) return type.slice(0, -3);
  return type.slice(type.startsWith("(ref null") ? 10 : 5, -1);
}

/** The definition that a heap type names, if any. */
export function definitionOf(heap: string, definitions: readonly Definition[]): Definition | undefined {
  return heap >= "0" && heap <= "9~" ? definitions[Number(heap)] : undefined;
}

/** The top type of a heap type's hierarchy. */
export function topOf(heap: string, definitions: readonly Definition[]): "any" | "func" | "extern" | "exn" {
  const definition = definitionOf(heap, definitions);
  if (definition !== undefined) return definition.kind === "func" ? "func" : "any";
  if (heap === "func" || heap === "nofunc") return "func";
  if (heap === "extern" || heap === "noextern") return "extern";
  return heap === "exn" || heap === "noexn" ? "exn" : "any";
}

function heapMatches(sub: string, over: string, definitions: readonly Definition[]): boolean {
  if (sub === over) return true;
  const top = topOf(over, definitions);
  if (topOf(sub, definitions) !== top) return false;
  if (over === top) return true;
  if (sub === "none" || sub === "nofunc" || sub === "noextern" || sub === "noexn") return true;
  if (over === "eq") return sub !== "any";
  const definition = definitionOf(sub, definitions);
  if (definition === undefined) return false;
  if (over === definition.kind) return true;
  return definition.above !== undefined && heapMatches(`${definition.above}`, over, definitions);
}

/** Whether every value of `sub` is a value of `over`. */
export function matches(sub: TypeName, over: TypeName, definitions: readonly Definition[]): boolean {
  if (sub === over) return true;
  if (!isReference(sub) || !isReference(over)) return false;
  if (isNullable(sub) && !isNullable(over)) return false;
  return heapMatches(heapOf(sub), heapOf(over), definitions);
}

/** Writes a heap type; the first definition has type index `shift`. */
export function writeHeap(out: Bytes, heap: string, shift: number): void {
  if (heap >= "0" && heap <= "9~") out.s32(Number(heap) + shift);
  else out.byte(HEAP[heap as HeapName]);
}

/** Writes a value type; the first definition has type index `shift`. */
export function writeType(out: Bytes, type: TypeName | "i8" | "i16", shift: number): void {
  if (type === "i8" || type === "i16") out.byte(type === "i8" ? 0x78 : 0x77);
  else if (type in SHORT) out.byte(SHORT[type as keyof typeof SHORT]);
  else {
    const heap = heapOf(type as TypeName);
    if (isNullable(type as TypeName) && heap in HEAP) out.byte(HEAP[heap as HeapName]);
    else writeHeap(out.byte(isNullable(type as TypeName) ? 0x63 : 0x64), heap, shift);
  }
}

/** Reads a value type: `byte` returns the next byte, `signed` a signed LEB. */
export function readType(byte: () => number, signed: () => number): TypeName | undefined {
  const first = byte();
  for (const [name, code] of Object.entries(SHORT)) if (code === first) return name as TypeName;
  const heapName = (code: number) => Object.entries(HEAP).find(([, value]) => value === code)?.[0];
  if (first !== 0x63 && first !== 0x64) {
    const heap = heapName(first);
    return heap === undefined ? undefined : refType(heap, true);
  }
  const heap = signed();
  return refType(heap >= 0 ? heap : heapName(heap & 127) ?? "any", first === 0x63);
}
