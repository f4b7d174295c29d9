/**
 * Bytes → Module (specification, 5.5): the header, then sections in their order, each read by its row of sections.ts,
 * then the checks that span sections. In: a reader, which decodes all instructions (decode.ts) or only constant ones
 * (artifact/module_metadata.ts). Out: a Module whose RawBytes are views into the reader's bytes.
 */
import { UNEXPECTED_END } from "../base/bytes.ts";
import { InvalidError, MalformedError } from "../base/errors.ts";
import { MAX_MODULE_BYTES } from "../wasm/limits.ts";
import { emptyModule, type Module } from "../wasm/module.ts";
import { readNames } from "./names.ts";
import { HEADER, SECTION, SECTION_RANK } from "../wasm/section_ids.ts";
import { checkEntries, type Decoding, type ModuleReader, SECTION_READERS } from "./sections.ts";

const NAME_SECTION = "name";

/** The upper half of the version field is the layer: 1 for components. */
const COMPONENT_LAYER = 1;

export function readHeader(reader: ModuleReader): void {
  const { bytes } = reader;
  if (bytes.length === 0) reader.fail(`${UNEXPECTED_END}: there are no bytes`);
  for (let i = 0; i < 4; i++) {
    if (bytes.length >= 4 && bytes[i] !== HEADER[i]) {
      const text = bytes[0] === 0x28 || bytes[0] === 0x3b; // "(" or ";"
      reader.fail(`magic header not detected${text ? ": this looks like the text format" : ""}`);
    }
  }
  reader.bits32();
  reader.bits32();
  if (reader.lo === 1) return;
  const layer = reader.lo >>> 16;
  if (layer === COMPONENT_LAYER) reader.fail("unknown binary version: this is a component, not a core module", 4);
  reader.fail(`unknown binary version ${reader.lo >>> 0}`, 4);
}

function readCustom(reader: ModuleReader, decoding: Decoding, after: number): void {
  const { module } = decoding;
  const name = reader.name();
  const offset = reader.offset;
  const bytes = reader.take(reader.left);
  if (name === NAME_SECTION && !decoding.named && !decoding.metadata) {
    decoding.named = true;
    readNames(bytes, module.names);
  }
  module.customs.push({ name, bytes, offset, after });
  checkEntries(reader, "custom sections", module.customs.length, reader.pos);
}

/** Reports a section that is larger than the rest of the module, or a fault in the part that there is. */
function failOversized(reader: ModuleReader, decoding: Decoding, id: number, size: number, begin: number): never {
  const message = `${UNEXPECTED_END}: length out of bounds: section ${id} of ${size} bytes with ${reader.left} left`;
  try {
    SECTION_READERS[id]?.(reader, decoding);
  } catch (error) {
    if (!(error instanceof MalformedError) || !error.message.startsWith(UNEXPECTED_END)) throw error;
  }
  reader.fail(message, begin);
}

/** Reads one section; returns its id. `last` is the id of the non-custom section before it, 0 for none. */
export function readSection(reader: ModuleReader, decoding: Decoding, last: number): number {
  const begin = reader.pos;
  const id = reader.u8();
  if (id >= SECTION_RANK.length) reader.fail(`malformed section id ${id}`, begin);
  const size = reader.u32();
  if (size > reader.left) failOversized(reader, decoding, id, size, begin);
  if (id !== SECTION.custom && SECTION_RANK[id] <= SECTION_RANK[last]) {
    reader.fail(`unexpected content after last section: section ${id} after section ${last}`, begin);
  }
  const moduleEnd = reader.end;
  reader.end = reader.pos + size;
  if (id === SECTION.custom) readCustom(reader, decoding, last);
  else if (decoding.metadata && (id === SECTION.code || id === SECTION.data)) reader.pos = reader.end;
  else SECTION_READERS[id]!(reader, decoding);
  if (reader.left > 0) reader.fail(`section size mismatch: ${reader.left} bytes of section ${id} are left over`);
  reader.end = moduleEnd;
  return id;
}

/** Pairs the function section with the code section, and checks the counts that span sections. */
function joinSections(reader: ModuleReader, { module, funcTypes, bodies, metadata, prefix }: Decoding): void {
  if (metadata) {
    const body = { bytes: new Uint8Array(0), offset: 0 };
    for (const typeIndex of funcTypes) module.funcs.push({ typeIndex, body });
  } else if (funcTypes.length !== bodies.length) {
    const counts = `${funcTypes.length} and ${bodies.length}`;
    reader.fail(`function and code section have inconsistent lengths: ${counts}`);
  }
  for (let i = 0; i < bodies.length && !metadata; i++) {
    module.funcs.push({ typeIndex: funcTypes[i], body: bodies[i] });
  }
  if (!metadata && !prefix && module.dataCount !== undefined && module.dataCount !== module.datas.length) {
    const counts = `${module.dataCount} and ${module.datas.length}`;
    reader.fail(`data count and data section have inconsistent lengths: ${counts}`);
  }
}

/**
 * Reads a module to the end of the bytes. With `metadata`, for modules that are compiled already, the code section may
 * be missing and is skipped, bodies are empty, and names and data segments are not read. With `prefix` the data section
 * may be missing.
 */
export function readModule(reader: ModuleReader, metadata: boolean, prefix = false): Module {
  const decoding: Decoding = {
    module: emptyModule(reader.bytes),
    funcTypes: [],
    bodies: [],
    locals: 0,
    named: false,
    metadata,
    prefix,
  };
  if (reader.bytes.length > MAX_MODULE_BYTES) {
    const { length } = reader.bytes;
    throw new InvalidError(`module of ${length} bytes is too large: at most ${MAX_MODULE_BYTES} are possible`, {
      offset: reader.base,
    });
  }
  readHeader(reader);
  for (let last: number = SECTION.custom; reader.left > 0;) {
    last = readSection(reader, decoding, last) || last;
  }
  joinSections(reader, decoding);
  return decoding.module;
}
