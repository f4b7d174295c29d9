/**
 * Offsets of declarations: each entry of a section is found where the decoder's reader finds it, for every encoding of
 * types, limits and initial values.
 */
import assert from "node:assert/strict";
import { ByteReader } from "../base/bytes.ts";
import { decodeModule } from "../binary/decode.ts";
import { readMemoryType, readSubType, readTableType, readTagType } from "../binary/types.ts";
import { parseModule } from "../text/parse_module.ts";
import type { Expr } from "../wasm/module.ts";
import { SECTION } from "../wasm/section_ids.ts";
import { TYPE_FORM } from "../wasm/type_forms.ts";
import { readValType } from "../wasm/type_reader.ts";
import { entryOffset, sectionOffset } from "./locate.ts";

const TEXT = `(module
  (type $none (func))
  (rec)
  (rec
    (type $base (sub (struct (field i8) (field (mut i16)) (field (ref null $leaf)))))
    (type $leaf (sub final $base (struct (field i8) (field (mut i16)) (field (ref null $leaf)) (field v128)))))
  (type $vector (array (mut (ref null (exact $leaf)))))
  (rec
    (type $object (sub (descriptor $middle) (struct (field i32))))
    (type $middle (sub (describes $object) (descriptor $last) (struct)))
    (type $last (describes $middle) (struct)))
  (rec (type $cont (cont $wide)) (type $wide (func (param (ref $cont) externref) (result (ref exn) i64))))
  (type $payload (func (param i32)))
  (import "m" "memory" (memory 1 (pagesize 1)))
  (import "m" "table" (table 1 funcref))
  (import "m" "f" (func (exact (type $none))))
  (import "m" "g" (global (ref (exact $leaf))))
  (import "m" "t" (tag (type $payload)))
  (func $f (type $none))
  (func (type $wide) (unreachable))
  (func (type $none))
  (table 1 funcref)
  (table 2 300 (ref null $vector))
  (table i64 2 (ref func) (ref.func $f))
  (table i64 1000 100000 (ref null (exact $object)))
  (table 0 (ref i31) (ref.i31 (i32.const 200)))
  (table 0 anyref)
  (memory 1)
  (memory 1 (pagesize 1))
  (memory 1000 70000 (pagesize 1))
  (memory i64 1 0x100000000 (pagesize 1))
  (memory 1 3 shared)
  (memory i64 1 200 shared (pagesize 1))
  (memory 1 (pagesize 65536))
  (memory i64 1)
  (tag (type $none))
  (tag (type $payload))
  (tag (type $none))
  (global i32 (i32.const 500))
  (global (mut (ref null (exact $leaf))) (ref.null none))
  (global (ref $vector) (array.new_fixed $vector 2 (ref.null none) (ref.null none)))
  (global v128 (v128.const i64x2 1 2)))`;

const { bytes } = parseModule(TEXT);
const module = decodeModule(bytes);

/** Offsets of the entries of section `id`, of which `read` reads one. */
function offsetsRead(id: number, read: (reader: ByteReader, index: number) => void): number[] {
  const start = sectionOffset(module, id)!;
  const reader = new ByteReader(bytes, start);
  const offsets: number[] = [];
  for (let left = reader.u32(), index = 0; left > 0; left--, index++) {
    offsets.push(reader.offset);
    read(reader, index);
  }
  return offsets;
}

function offsetsLocated(id: number, count: number): (number | undefined)[] {
  return Array.from({ length: count }, (_, index) => entryOffset(module, id, index));
}

function skipInitializer(reader: ByteReader, { bytes }: Expr): void {
  reader.pos += bytes.length;
}

Deno.test("memories are located behind maxima, page sizes and wide limits", () => {
  const read = offsetsRead(SECTION.memory, readMemoryType);
  assert.equal(read.length, 8);
  assert.deepEqual(offsetsLocated(SECTION.memory, 8), read);
});

Deno.test("tables are located behind initial values and every type of element", () => {
  const read = offsetsRead(SECTION.table, (reader, index) => {
    const { init } = module.tables[index];
    if (init !== undefined) reader.pos += 2;
    readTableType(reader);
    if (init !== undefined) skipInitializer(reader, init);
  });
  assert.equal(read.length, 6);
  assert.deepEqual(offsetsLocated(SECTION.table, 6), read);
});

Deno.test("functions, tags and globals are located", () => {
  const funcs = offsetsRead(SECTION.function, (reader) => reader.u32());
  assert.deepEqual(offsetsLocated(SECTION.function, 3), funcs);
  const tags = offsetsRead(SECTION.tag, readTagType);
  assert.deepEqual(offsetsLocated(SECTION.tag, 3), tags);
  const globals = offsetsRead(SECTION.global, (reader, index) => {
    readValType(reader);
    reader.u8();
    skipInitializer(reader, module.globals[index].init);
  });
  assert.equal(globals.length, 4);
  assert.deepEqual(offsetsLocated(SECTION.global, 4), globals);
});

Deno.test("types are located behind clauses, exact types, continuation types and groups", () => {
  const read: number[] = [];
  offsetsRead(SECTION.type, (reader) => {
    let count = 1;
    if (reader.bytes[reader.pos] === TYPE_FORM.REC) {
      reader.pos++;
      count = reader.u32();
    }
    for (; count > 0; count--) {
      read.push(reader.offset);
      readSubType(reader);
    }
  });
  assert.equal(read.length, module.types.length);
  assert.deepEqual(offsetsLocated(SECTION.type, read.length), read);
});
