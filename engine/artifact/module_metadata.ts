/**
 * The metadata of a module: its binary form without the code section, which is all that instances need once there is machine code. In: a binary
 * form. Out: a shorter one, and from that a ValidModule whose bodies are empty and whose names and
 * data segments are read when they are asked for.
 *
 * Invariant: nothing that the metadata of a valid module says differs from what the module says, but for offsets in it.
 */
import { ByteReader, ByteWriter } from "../base/bytes.ts";
import { readNames } from "../binary/names.ts";
import { readModule } from "../binary/read_module.ts";
import { readDatas } from "../binary/sections.ts";
import { SECTION } from "../binary/section_ids.ts";
import type { FeatureSet } from "../features.ts";
import { annotateKnownValid } from "../validate/known_valid.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import { ConstantReader } from "../wasm/constant_reader.ts";
import { type DataSegment, emptyNames, type Names } from "../wasm/module.ts";

const HEADER_BYTES = 8;

/** `binary` without its code section, and where the content of that begins (0: there is none): what DWARF counts from. */
export function metadataOf(binary: Uint8Array): { bytes: Uint8Array; codeOffset: number } {
  const writer = new ByteWriter(1024);
  writer.raw(binary.subarray(0, HEADER_BYTES));
  const reader = new ByteReader(binary, HEADER_BYTES);
  let codeOffset = 0;
  while (reader.left > 0) {
    const start = reader.pos;
    const id = reader.u8();
    const size = reader.u32();
    if (id === SECTION.code) codeOffset = reader.pos;
    reader.take(size);
    if (id !== SECTION.code) writer.raw(binary.subarray(start, reader.pos));
  }
  return { bytes: writer.finish(), codeOffset };
}

/**
 * The module of the metadata, or of a whole binary form, that was found valid with these features; bodies are not looked at, and nothing is validated
 * again. Throws as decoding does.
 */
export function readMetadata(bytes: Uint8Array, features: FeatureSet): ValidModule {
  const valid = annotateKnownValid(readModule(new ConstantReader(bytes), true), features);
  defineLazily(valid, "names", () => namesOf(valid));
  defineLazily(valid, "datas", () => datasOf(bytes));
  return valid;
}

/** A property that is computed when it is read first. */
function defineLazily<Key extends "names" | "datas">(
  valid: ValidModule,
  key: Key,
  compute: () => ValidModule[Key],
): void {
  let value: ValidModule[Key] | undefined;
  Object.defineProperty(valid, key, { get: () => value ??= compute(), enumerable: true, configurable: true });
}

/** There may be a hundred thousand: they are most of what there is to decode. */
function datasOf(bytes: Uint8Array): DataSegment[] {
  const datas: DataSegment[] = [];
  const reader = new ByteReader(bytes, HEADER_BYTES);
  while (reader.left > 0) {
    const id = reader.u8();
    const size = reader.u32();
    if (id === SECTION.data) readDatas(new ConstantReader(bytes, reader.pos, reader.pos + size), datas);
    reader.take(size);
  }
  return datas;
}

function namesOf({ customs }: ValidModule): Names {
  const names = emptyNames();
  const section = customs.find(({ name }) => name === "name");
  if (section !== undefined) readNames(section.bytes, names);
  return names;
}
