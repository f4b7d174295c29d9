/**
 * Offsets of declarations, for messages. In: a section id and an index. Out: the absolute offset of that entry in the
 * binary form. Modules do not store the offset of each type, table, memory, tag and global; errors and first uses of a
 * feature are rare enough to read the section again.
 *
 * Relies on the bytes having been decoded before. For a module without bytes the result is undefined.
 */
import { ByteReader } from "../base/bytes.ts";
import type { Module } from "../wasm/module.ts";
import { HEADER, SECTION } from "../wasm/section_ids.ts";
import { TYPE_FORM } from "../wasm/type_forms.ts";
import { readStorageType, readValType } from "../wasm/type_reader.ts";

/** A reader of the content of section `id`, or undefined if there is none. */
function openSection(bytes: Uint8Array, id: number): ByteReader | undefined {
  const reader = new ByteReader(bytes, HEADER.length);
  while (reader.left > 0) {
    const found = reader.u8();
    const size = reader.u32();
    if (found === id) return new ByteReader(bytes, reader.pos, reader.pos + size);
    reader.pos += size;
  }
  return undefined;
}

/** Absolute offset of the content of section `id`. */
export function sectionOffset(module: Module, id: number): number | undefined {
  return openSection(module.bytes, id)?.offset;
}

/** Absolute offset of entry `index` (imports not counted) of section `id`. */
export function entryOffset(module: Module, id: number, index: number): number | undefined {
  const reader = openSection(module.bytes, id);
  if (reader === undefined) return undefined;
  reader.u32();
  if (id === SECTION.type) return typeOffset(reader, index);
  for (let i = 0; i < index; i++) {
    const init = id === SECTION.global ? module.globals[i].init : id === SECTION.table ? module.tables[i].init : null;
    if (init) reader.pos = init.offset + init.bytes.length;
    else skipEntry(reader, id);
  }
  return reader.offset;
}

function skipEntry(reader: ByteReader, id: number): void {
  switch (id) {
    case SECTION.function:
      reader.u32();
      break;
    case SECTION.table:
      readValType(reader);
      skipLimits(reader);
      break;
    case SECTION.memory:
      skipLimits(reader);
      break;
    case SECTION.tag:
      reader.u8();
      reader.u32();
      break;
  }
}

/** Bits of the flags byte of limits after which more follows; the others only qualify the limits. */
const HAS_MAX = 1;
const HAS_PAGE_SIZE = 8;

function skipLimits(reader: ByteReader): void {
  const flags = reader.u8();
  reader.u64();
  if ((flags & HAS_MAX) !== 0) reader.u64();
  if ((flags & HAS_PAGE_SIZE) !== 0) reader.u32();
}

const { REC, SUB, SUB_FINAL, DESCRIBES, DESCRIPTOR, FUNC, STRUCT, CONT } = TYPE_FORM;

/** Types are counted through recursive groups. */
function typeOffset(reader: ByteReader, index: number): number {
  for (let i = 0; i < index || isForm(reader, REC);) {
    if (isForm(reader, REC)) {
      reader.pos++;
      reader.u32();
    } else {
      skipSubType(reader);
      i++;
    }
    if (reader.left === 0) break;
  }
  return reader.offset;
}

function isForm(reader: ByteReader, form: number): boolean {
  return reader.bytes[reader.pos] === form;
}

function skipSubType(reader: ByteReader): void {
  if (isForm(reader, SUB) || isForm(reader, SUB_FINAL)) {
    reader.pos++;
    for (let left = reader.u32(); left > 0; left--) reader.u32();
  }
  for (const clause of [DESCRIBES, DESCRIPTOR]) {
    if (!isForm(reader, clause)) continue;
    reader.pos++;
    reader.u32();
  }
  const form = reader.u8();
  if (form === FUNC) {
    for (let lists = 2; lists > 0; lists--) {
      for (let left = reader.u32(); left > 0; left--) readValType(reader);
    }
    return;
  }
  if (form === CONT) {
    reader.s33();
    return;
  }
  for (let left = form === STRUCT ? reader.u32() : 1; left > 0; left--) {
    readStorageType(reader);
    reader.u8();
  }
}
