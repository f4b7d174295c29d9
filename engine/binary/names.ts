/**
 * The name section (specification, appendix A.4.1), read and written. In: the content of the section. Out: names by
 * index; and vice versa. Reading is lenient: a damaged subsection is ignored and never makes a module malformed. Names
 * appear in text, error messages and stack traces; they never affect execution.
 */
import { ByteReader, ByteWriter } from "../base/bytes.ts";
import { MalformedError } from "../base/errors.ts";
import { MAX_NAMES } from "../wasm/limits.ts";
import type { Names } from "../wasm/module.ts";

type NameMap = Map<number, string>;
type IndirectNameMap = Map<number, NameMap>;

/** Fields of Names by subsection id; 0 is the module's name. */
const MAPS = {
  1: "funcs",
  4: "types",
  5: "tables",
  6: "memories",
  7: "globals",
  8: "elems",
  9: "datas",
  11: "tags",
} as const satisfies Record<number, keyof Names>;
const INDIRECT_MAPS = { 2: "locals", 3: "labels", 10: "fields" } as const satisfies Record<number, keyof Names>;
const SUBSECTIONS = 12;

/** Reads a name section, and counts its names. */
class NameReader extends ByteReader {
  #left = MAX_NAMES;

  /** The length of a map, whose entries count as names. */
  entries(): number {
    const count = this.count();
    if (count > this.#left) this.fail(`too many names: at most ${MAX_NAMES} are possible`);
    this.#left -= count;
    return count;
  }
}

function readNameMap(reader: NameReader): NameMap {
  const map: NameMap = new Map();
  for (let left = reader.entries(); left > 0; left--) {
    const index = reader.u32();
    map.set(index, reader.name());
  }
  return map;
}

function readIndirectNameMap(reader: NameReader): IndirectNameMap {
  const map: IndirectNameMap = new Map();
  for (let left = reader.entries(); left > 0; left--) {
    const index = reader.u32();
    map.set(index, readNameMap(reader));
  }
  return map;
}

function readSubsection(id: number, reader: NameReader, names: Names): void {
  if (id === 0) names.module = reader.name();
  else if (id in MAPS) names[MAPS[id as keyof typeof MAPS]] = readNameMap(reader);
  else if (id in INDIRECT_MAPS) names[INDIRECT_MAPS[id as keyof typeof INDIRECT_MAPS]] = readIndirectNameMap(reader);
}

/**
 * Adds the names of a name section to `names`. A damaged subsection is ignored; damage to the list of subsections, or
 * an id that does not exceed the one before, ends the reading, so there are at most 256 attempts. A subsection with
 * more names than MAX_NAMES leaves counts as damaged.
 */
export function readNames(bytes: Uint8Array, names: Names): void {
  const reader = new NameReader(bytes);
  for (let last = -1; reader.left >= 2;) {
    let next = bytes.length;
    try {
      const id = reader.u8();
      if (id <= last) return;
      last = id;
      const size = reader.u32();
      if (size > reader.left) return;
      next = reader.pos + size;
      reader.end = next;
      readSubsection(id, reader, names);
    } catch (error) {
      if (!(error instanceof MalformedError)) throw error;
    }
    reader.pos = next;
    reader.end = bytes.length;
  }
}

function ascending<T>(map: ReadonlyMap<number, T>): [number, T][] {
  return [...map].sort((a, b) => a[0] - b[0]);
}

function writeNameMap(writer: ByteWriter, map: NameMap): void {
  writer.u32(map.size);
  for (const [index, name] of ascending(map)) {
    writer.u32(index);
    writer.name(name);
  }
}

function writeIndirectNameMap(writer: ByteWriter, map: IndirectNameMap): void {
  const filled = ascending(map).filter(([, names]) => names.size > 0);
  writer.u32(filled.length);
  for (const [index, names] of filled) {
    writer.u32(index);
    writeNameMap(writer, names);
  }
}

/** Writes the content of a subsection. Returns false, and writes nothing, if it has no names. */
function writeSubsection(id: number, writer: ByteWriter, names: Names): boolean {
  if (id === 0) {
    if (names.module === undefined) return false;
    writer.name(names.module);
  } else if (id in MAPS) {
    const map = names[MAPS[id as keyof typeof MAPS]];
    if (map.size === 0) return false;
    writeNameMap(writer, map);
  } else {
    const map = names[INDIRECT_MAPS[id as keyof typeof INDIRECT_MAPS]];
    if (![...map.values()].some((inner) => inner.size > 0)) return false;
    writeIndirectNameMap(writer, map);
  }
  return true;
}

/** The content of a name section with `names`; empty if there are none. */
export function writeNames(names: Names): Uint8Array {
  const writer = new ByteWriter(256);
  for (let id = 0; id < SUBSECTIONS; id++) {
    const begin = writer.length;
    writer.u8(id);
    const mark = writer.beginSized();
    if (writeSubsection(id, writer, names)) writer.endSized(mark);
    else writer.length = begin;
  }
  return writer.finish();
}
