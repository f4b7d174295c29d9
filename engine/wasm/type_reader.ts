/**
 * Value, reference, heap and block types, and lists of locals, in binary form (specification, 5.3), read from a
 * ByteReader. Sections and instruction immediates share these readers.
 *
 * Establishes: a type index in a ValType fits its 24 bits. A larger index cannot exist in a module that this engine
 * accepts (limits.ts), so it is reported as an unknown type.
 */
import { type ByteReader, UNEXPECTED_END } from "../base/bytes.ts";
import { InvalidError } from "../base/errors.ts";
import { MAX_LOCALS } from "./limits.ts";
import { exactHeap } from "./exact_heap.ts";
import { HEAP, type HeapType, I16, I8, refType, V128, type ValType } from "./types.ts";

const LOWEST_HEAP = HEAP.cont;
const HIGHEST_HEAP = HEAP.nocont;
/** Bytes 0x68 … 0x75: abstract heap types, and as a value type the nullable reference to one. */
export const FIRST_HEAP_BYTE = LOWEST_HEAP & 0x7f;
export const LAST_HEAP_BYTE = HIGHEST_HEAP & 0x7f;

/** Begins an exact heap type; a type index as a u32 follows. */
export const EXACT_BYTE = 0x62;
/** The bytes before the heap type of a reference type. */
export const REF_BYTE = 0x64;
export const REF_NULL_BYTE = 0x63;

/** Type indices beyond this do not fit a packed reference type. */
export const MAX_TYPE_INDEX = 0xffffff - 0x40;

/**
 * A heap type: an abstract one as a single byte, a type index as a non-negative s33, or an exact one, whose index is a
 * u32, so that no abstract type can be exact.
 */
export function readHeapType(reader: ByteReader): HeapType {
  const pos = reader.pos;
  if (pos >= reader.end) reader.fail(UNEXPECTED_END);
  const byte = reader.bytes[pos];
  if (byte === EXACT_BYTE) {
    reader.pos = pos + 1;
    return exactHeap(checkedIndex(reader, reader.u32(), pos));
  }
  if ((byte & 0xc0) === 0x40) {
    if (byte < FIRST_HEAP_BYTE || byte > LAST_HEAP_BYTE) reader.fail("malformed heap type");
    reader.pos = pos + 1;
    return byte - 0x80;
  }
  const index = reader.s33();
  if (index < 0) reader.fail("malformed heap type", pos);
  return checkedIndex(reader, index, pos);
}

/** Type index `index`, read at `pos`, if it fits a packed reference type. */
function checkedIndex(reader: ByteReader, index: number, pos: number): number {
  if (index > MAX_TYPE_INDEX) throw new InvalidError(`unknown type ${index}`, { offset: reader.base + pos });
  return index;
}

/** A reference type. */
export function readRefType(reader: ByteReader): ValType {
  const byte = reader.pos < reader.end ? reader.bytes[reader.pos] : reader.u8();
  if (byte >= FIRST_HEAP_BYTE && byte <= LAST_HEAP_BYTE) {
    reader.pos++;
    return refType(true, byte - 0x80);
  }
  if (byte !== REF_BYTE && byte !== REF_NULL_BYTE) reader.fail("malformed reference type");
  reader.pos++;
  return refType(byte === REF_NULL_BYTE, readHeapType(reader));
}

/** A value type: number, vector or reference. */
export function readValType(reader: ByteReader): ValType {
  const byte = reader.pos < reader.end ? reader.bytes[reader.pos] : reader.u8();
  if (byte >= V128 && byte <= 0x7f) {
    reader.pos++;
    return byte;
  }
  if (!isRefByte(byte)) reader.fail("malformed value type");
  return readRefType(reader);
}

/** A storage type: a value type or one of the packed types. */
export function readStorageType(reader: ByteReader): ValType {
  const byte = reader.pos < reader.end ? reader.bytes[reader.pos] : reader.u8();
  if (byte === I8 || byte === I16) {
    reader.pos++;
    return byte;
  }
  if ((byte < V128 || byte > 0x7f) && !isRefByte(byte)) reader.fail("malformed storage type");
  return readValType(reader);
}

function isRefByte(byte: number): boolean {
  return (byte >= FIRST_HEAP_BYTE && byte <= LAST_HEAP_BYTE) || byte === REF_BYTE || byte === REF_NULL_BYTE;
}

/**
 * Reads the local declarations at the start of a function body and appends their types to `locals`, if given; returns
 * the number of locals. Runs whose sum exceeds the engine's limit fail before anything is appended for them.
 */
export function readLocals(reader: ByteReader, locals?: ValType[]): number {
  let total = 0;
  for (let runs = reader.count(); runs > 0; runs--) {
    const pos = reader.pos;
    const count = reader.u32();
    total += count;
    if (total > MAX_LOCALS) reader.fail(`too many locals: ${total}, at most ${MAX_LOCALS} are possible`, pos);
    const type = readValType(reader);
    if (locals !== undefined) { for (let k = 0; k < count; k++) locals.push(type); }
  }
  return total;
}
