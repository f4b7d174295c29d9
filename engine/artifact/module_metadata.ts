/**
 * Module metadata: the binary form without its code section, which suffices to instantiate a module that has machine
 * code. In: a binary form. Out: a shorter one; and from that, a ValidModule with empty bodies whose names and data
 * segments are read on first use.
 *
 * Invariant: the metadata of a valid module describes the same module, except for offsets into the binary form.
 */
import { ByteReader, ByteWriter } from "../base/bytes.ts";
import { readNames } from "../binary/names.ts";
import { readModule } from "../binary/read_module.ts";
import { readDatas } from "../binary/sections.ts";
import { SECTION } from "../wasm/section_ids.ts";
import type { FeatureSet } from "../settings/features.ts";
import { annotateKnownValid } from "../validate/known_valid.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import { ConstantReader } from "../wasm/constant_reader.ts";
import { type DataSegment, emptyNames, type Names } from "../wasm/module.ts";

const HEADER_BYTES = 8;

/**
 * Removes the code section from `binary`. `codeOffset` is the offset of the section's contents, the base of DWARF
 * addresses; 0 if there is no code section.
 */
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
 * Decodes metadata, or a complete binary form, that was validated with these features. Bodies are not read and nothing
 * is validated again. Throws the errors of decoding.
 */
export function readMetadata(bytes: Uint8Array, features: FeatureSet): ValidModule {
  const valid = annotateKnownValid(readModule(new ConstantReader(bytes), true), features);
  defineLazily(valid, "names", () => namesOf(valid));
  defineLazily(valid, "datas", () => datasOf(bytes));
  return valid;
}

/** Defines a property that is computed on first use. */
function defineLazily<Key extends "names" | "datas">(
  valid: ValidModule,
  key: Key,
  compute: () => ValidModule[Key],
): void {
  let value: ValidModule[Key] | undefined;
  Object.defineProperty(valid, key, { get: () => value ??= compute(), enumerable: true, configurable: true });
}

/** Reads the data segments of a binary form. A module may have 100,000 of them, which dominate the decoding time. */
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

/** Reads the name section. */
function namesOf({ customs }: ValidModule): Names {
  const names = emptyNames();
  const section = customs.find(({ name }) => name === "name");
  if (section !== undefined) readNames(section.bytes, names);
  return names;
}
