/**
 * Type definitions, limits and the types of tables, memories, globals and tags in binary form (specification, 5.3),
 * read and written. Readers throw MalformedError; type indices are checked by validation. Value types themselves are
 * read by wasm/type_reader.ts.
 */
import type { ByteReader, ByteWriter } from "../base/bytes.ts";
import { EXACT_FUNC, EXTERN_KIND, type ImportDesc } from "../wasm/module.ts";
import { TYPE_FORM } from "../wasm/type_forms.ts";
import { readHeapType, readRefType, readStorageType, readValType } from "../wasm/type_reader.ts";
import { inexact, isExact } from "../wasm/exact_heap.ts";
import {
  type CompositeType,
  exactHeapOf,
  type FieldType,
  type GlobalType,
  type HeapType,
  I32,
  I64,
  isNullable,
  isRef,
  type Limits,
  type MemoryType,
  type SubType,
  type TableType,
  type TagType,
  type ValType,
} from "../wasm/types.ts";

const { FUNC, STRUCT, ARRAY, CONT, SUB, SUB_FINAL, DESCRIBES, DESCRIPTOR } = TYPE_FORM;
/** The first byte of a recursive group of several types. */
export const REC: number = TYPE_FORM.REC;

const EXACT_BYTE = 0x62;
const REF_BYTE = 0x64;
const REF_NULL_BYTE = 0x63;

/** Bits of the flags byte of limits. */
const HAS_MAX = 1;
const SHARED = 2;
const ADDRESS_64 = 4;
const HAS_PAGE_SIZE = 8;
/** The largest binary logarithm of a page size in the binary format; only 0 and 16 are valid. */
const MAX_PAGE_SIZE_LOG = 64;

/** Reads a vector of value types. */
function readValTypes(reader: ByteReader): ValType[] {
  const types: ValType[] = [];
  for (let left = reader.count(); left > 0; left--) types.push(readValType(reader));
  return types;
}

function readMutable(reader: ByteReader): boolean {
  const byte = reader.u8();
  if (byte > 1) reader.fail("malformed mutability", reader.pos - 1);
  return byte === 1;
}

function readFieldType(reader: ByteReader): FieldType {
  const storage = readStorageType(reader);
  return { storage, mutable: readMutable(reader) };
}

/** Reads a type index in the form of a heap type. */
function readTypeIndex(reader: ByteReader): number {
  const pos = reader.pos;
  const heap = readHeapType(reader);
  if (heap < 0 || isExact(heap)) reader.fail("malformed type index", pos);
  return heap;
}

function readCompositeType(reader: ByteReader): CompositeType {
  const form = reader.u8();
  switch (form) {
    case FUNC: {
      const params = readValTypes(reader);
      return { kind: "func", params, results: readValTypes(reader) };
    }
    case STRUCT: {
      const fields: FieldType[] = [];
      for (let left = reader.count(); left > 0; left--) fields.push(readFieldType(reader));
      return { kind: "struct", fields };
    }
    case ARRAY:
      return { kind: "array", field: readFieldType(reader) };
    case CONT:
      return { kind: "cont", func: readTypeIndex(reader) };
    default:
      if (form >= 0x80) reader.fail("integer representation too long", reader.pos - 1);
      reader.fail(`malformed definition type 0x${form.toString(16)}`, reader.pos - 1);
  }
}

/** Reads a subtype, in full or in the short form of a final type without supertypes. */
export function readSubType(reader: ByteReader): SubType {
  const form = reader.pos < reader.end ? reader.bytes[reader.pos] : 0;
  const supertypes: number[] = [];
  if (form !== SUB && form !== SUB_FINAL) return { final: true, supertypes, ...readDescribedType(reader) };
  reader.pos++;
  for (let left = reader.count(); left > 0; left--) supertypes.push(reader.u32());
  return { final: form === SUB_FINAL, supertypes, ...readDescribedType(reader) };
}

/** Reads a composite type with the clauses before it. */
function readDescribedType(reader: ByteReader): Pick<SubType, "describes" | "descriptor" | "composite"> {
  const describes = readClause(reader, DESCRIBES);
  const descriptor = readClause(reader, DESCRIPTOR);
  return {
    ...(describes === undefined ? {} : { describes }),
    ...(descriptor === undefined ? {} : { descriptor }),
    composite: readCompositeType(reader),
  };
}

/** Reads the type index of the clause `form`, if it is there. */
function readClause(reader: ByteReader, form: number): number | undefined {
  if (reader.pos >= reader.end || reader.bytes[reader.pos] !== form) return undefined;
  reader.pos++;
  return reader.u32();
}

/** Reads limits and their flags, of which `allowed` are permitted. */
function readLimits(reader: ByteReader, allowed: number): { limits: Limits; flags: number } {
  const flags = reader.u8();
  if ((flags & ~allowed) !== 0) reader.fail("malformed limits flags", reader.pos - 1);
  if ((flags & HAS_PAGE_SIZE) !== 0 && reader.left < 2) {
    reader.fail("malformed limits flags: no page size follows", reader.pos - 1);
  }
  const address = (flags & ADDRESS_64) !== 0 ? I64 : I32;
  const min = reader.u64BigInt();
  const limits: Limits = (flags & HAS_MAX) !== 0 ? { address, min, max: reader.u64BigInt() } : { address, min };
  return { limits, flags };
}

/** Reads a table type. */
export function readTableType(reader: ByteReader): TableType {
  const element = readRefType(reader);
  return { element, limits: readLimits(reader, HAS_MAX | ADDRESS_64).limits };
}

/** Reads a memory type. */
export function readMemoryType(reader: ByteReader): MemoryType {
  const { limits, flags } = readLimits(reader, HAS_MAX | SHARED | ADDRESS_64 | HAS_PAGE_SIZE);
  const shared = (flags & SHARED) !== 0;
  return (flags & HAS_PAGE_SIZE) === 0 ? { limits, shared } : { limits, shared, pageSize: readPageSize(reader) };
}

/** Reads the binary logarithm of a page size (custom page sizes, "Binary Encoding"). */
function readPageSize(reader: ByteReader): number {
  const at = reader.pos;
  const log = reader.u32();
  if (log > MAX_PAGE_SIZE_LOG) reader.fail(`invalid custom page size 2^${log}`, at);
  return 2 ** log;
}

/** Reads a global type. */
export function readGlobalType(reader: ByteReader): GlobalType {
  const type = readValType(reader);
  return { type, mutable: readMutable(reader) };
}

/** Reads a tag type: the attribute byte 0x00 and the index of a function type. */
export function readTagType(reader: ByteReader): TagType {
  if (reader.u8() !== 0) reader.fail("malformed tag attribute: zero byte expected", reader.pos - 1);
  return { typeIndex: reader.u32() };
}

/** Reads the type of an import: its kind and the type of that kind. */
export function readExternType(reader: ByteReader): ImportDesc {
  switch (reader.u8()) {
    case EXTERN_KIND.func:
      return { kind: "func", typeIndex: reader.u32() };
    case EXACT_FUNC:
      return { kind: "func", typeIndex: reader.u32(), exact: true };
    case EXTERN_KIND.table:
      return { kind: "table", type: readTableType(reader) };
    case EXTERN_KIND.memory:
      return { kind: "memory", type: readMemoryType(reader) };
    case EXTERN_KIND.global:
      return { kind: "global", type: readGlobalType(reader) };
    case EXTERN_KIND.tag:
      return { kind: "tag", type: readTagType(reader) };
    default:
      reader.fail("malformed import kind", reader.pos - 1);
  }
}

/** Writes a heap type. */
export function writeHeapType(writer: ByteWriter, heap: HeapType): void {
  if (heap < 0) writer.u8(heap & 0x7f);
  else if (isExact(heap)) {
    writer.u8(EXACT_BYTE);
    writer.u32(inexact(heap));
  } else writer.s33(heap);
}

/** Writes a value or storage type, in the short form if there is one. */
export function writeValType(writer: ByteWriter, type: ValType): void {
  if (!isRef(type)) {
    writer.u8(type);
    return;
  }
  const heap = exactHeapOf(type);
  if (heap >= 0 || !isNullable(type)) writer.u8(isNullable(type) ? REF_NULL_BYTE : REF_BYTE);
  writeHeapType(writer, heap);
}

function writeValTypes(writer: ByteWriter, types: readonly ValType[]): void {
  writer.u32(types.length);
  for (const type of types) writeValType(writer, type);
}

function writeFieldType(writer: ByteWriter, field: FieldType): void {
  writeValType(writer, field.storage);
  writer.u8(field.mutable ? 1 : 0);
}

/** Writes a subtype, in the short form if there is one. */
export function writeSubType(writer: ByteWriter, type: SubType): void {
  if (!type.final || type.supertypes.length > 0) {
    writer.u8(type.final ? SUB_FINAL : SUB);
    writer.u32(type.supertypes.length);
    for (const index of type.supertypes) writer.u32(index);
  }
  writeClause(writer, DESCRIBES, type.describes);
  writeClause(writer, DESCRIPTOR, type.descriptor);
  const composite = type.composite;
  switch (composite.kind) {
    case "func":
      writer.u8(FUNC);
      writeValTypes(writer, composite.params);
      writeValTypes(writer, composite.results);
      break;
    case "struct":
      writer.u8(STRUCT);
      writer.u32(composite.fields.length);
      for (const field of composite.fields) writeFieldType(writer, field);
      break;
    case "array":
      writer.u8(ARRAY);
      writeFieldType(writer, composite.field);
      break;
    case "cont":
      writer.u8(CONT);
      writer.s33(composite.func);
      break;
  }
}

/** Writes the clause `form` before a composite type, if there is one. */
function writeClause(writer: ByteWriter, form: number, index: number | undefined): void {
  if (index === undefined) return;
  writer.u8(form);
  writer.u32(index);
}

function writeLimits(writer: ByteWriter, limits: Limits, flags: number): void {
  writer.u8(flags | (limits.address === I64 ? ADDRESS_64 : 0) | (limits.max === undefined ? 0 : HAS_MAX));
  writer.u64BigInt(limits.min);
  if (limits.max !== undefined) writer.u64BigInt(limits.max);
}

/** Writes a table type. */
export function writeTableType(writer: ByteWriter, type: TableType): void {
  writeValType(writer, type.element);
  writeLimits(writer, type.limits, 0);
}

/** Writes a memory type. */
export function writeMemoryType(writer: ByteWriter, type: MemoryType): void {
  const { limits, shared, pageSize } = type;
  writeLimits(writer, limits, (shared ? SHARED : 0) | (pageSize === undefined ? 0 : HAS_PAGE_SIZE));
  if (pageSize !== undefined) writer.u32(Math.log2(pageSize));
}

/** Writes a global type. */
export function writeGlobalType(writer: ByteWriter, type: GlobalType): void {
  writeValType(writer, type.type);
  writer.u8(type.mutable ? 1 : 0);
}

/** Writes a tag type. */
export function writeTagType(writer: ByteWriter, type: TagType): void {
  writer.u8(0);
  writer.u32(type.typeIndex);
}
