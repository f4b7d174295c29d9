/**
 * Bytes → Component (Binary): header, then sections in any order, each a vector of definitions. Core modules stay
 * bytes, which validation decodes; nested components are decoded here.
 *
 * Relies on nothing about the bytes. Establishes: definitions in order, whose indices are not yet checked; byte arrays
 * are views into `bytes`, which must not change while the component is in use. Errors are MalformedError (or
 * InvalidError for the limits of limits.ts) with an absolute offset.
 */
import { InvalidError, WaftError } from "@waft/engine/internal/errors";
import { readValType } from "@waft/engine/internal/wasm/type_reader";
import {
  type Canon,
  CANON_NAMES,
  CANON_ROWS,
  type CanonImmediates,
  type CanonOption,
  STRING_ENCODINGS,
} from "../model/canon.ts";
import type {
  Component,
  CoreInstanceExpr,
  CustomSection,
  Definition,
  InstanceExpr,
  NamedSortIndex,
} from "../model/definitions.ts";
import { ComponentReader } from "./component_reader.ts";
import { MAX_COMPONENT_BYTES, MAX_DEFINITIONS } from "./limits.ts";
import { readAlias } from "./read_alias.ts";
import { readCoreSort, readExternName, readSortIndex } from "./read_names.ts";
import { readCoreType, readExtern, readExternDesc, readResult, readType, readValTypeRef } from "./read_types.ts";
import { COMPONENT_HEADER, SECTION, SECTION_COUNT } from "./section_ids.ts";

/** Decodes a component in binary form. */
export function decodeComponent(bytes: Uint8Array): Component {
  if (bytes.length > MAX_COMPONENT_BYTES) {
    const message = `component of ${bytes.length} bytes is too large: at most ${MAX_COMPONENT_BYTES} are possible`;
    throw new InvalidError(message, { offset: 0 });
  }
  return readComponent(new ComponentReader(bytes));
}

/** The definitions of a component before its first fault, and the error; undefined for a whole component. */
export interface ComponentPrefix {
  readonly definitions: readonly Definition[];
  readonly customs: readonly CustomSection[];
  readonly fault?: WaftError;
}

/** Decodes a component up to its first fault, for tools that show damaged ones. Throws no errors of the format. */
export function decodeComponentUntilFault(bytes: Uint8Array): ComponentPrefix {
  const reader = new ComponentReader(bytes);
  const definitions: Definition[] = [];
  const customs: CustomSection[] = [];
  try {
    readHeader(reader);
    while (reader.left > 0) readSection(reader, definitions, customs);
  } catch (fault) {
    if (fault instanceof WaftError) return { definitions, customs, fault };
    throw fault;
  }
  return { definitions, customs };
}

/** Reads a component that extends to the reader's end. */
function readComponent(reader: ComponentReader): Component {
  const start = reader.pos;
  const definitions: Definition[] = [];
  const customs: CustomSection[] = [];
  readHeader(reader);
  while (reader.left > 0) readSection(reader, definitions, customs);
  return { definitions, customs, bytes: reader.bytes.subarray(start, reader.end), offset: reader.base + start };
}

function readHeader(reader: ComponentReader): void {
  const { pos } = reader;
  const header = reader.take(COMPONENT_HEADER.length);
  const differs = (from: number, to: number) => {
    for (let i = from; i < to; i++) if (header[i] !== COMPONENT_HEADER[i]) return true;
    return false;
  };
  if (differs(0, 4)) reader.fail("magic header not detected: bad magic number", pos);
  if (differs(6, 8)) {
    const core = header[6] === 0 && header[7] === 0;
    reader.fail(`expected a version header for a component${core ? ": this is a core module" : ""}`, pos + 4);
  }
  if (differs(4, 6)) reader.fail(`unknown binary version 0x${header[4].toString(16)}`, pos + 4);
}

/** Readers of the sections that are vectors, by id. */
const ENTRY_READERS: Readonly<Record<number, (reader: ComponentReader) => WithoutOffset<Definition>>> = {
  [SECTION["core instance"]]: (reader) => ({ kind: "core instance", expr: readCoreInstance(reader) }),
  [SECTION["core type"]]: (reader) => ({ kind: "core type", type: readCoreType(reader) }),
  [SECTION.instance]: (reader) => ({ kind: "instance", expr: readInstance(reader) }),
  [SECTION.alias]: (reader) => ({ kind: "alias", alias: readAlias(reader) }),
  [SECTION.type]: (reader) => ({ kind: "type", type: readType(reader) }),
  [SECTION.canon]: (reader) => ({ kind: "canon", canon: readCanon(reader) }),
  [SECTION.import]: (reader) => ({ kind: "import", ...readExtern(reader) }),
  [SECTION.export]: readExport,
  [SECTION.value]: readValue,
};

type WithoutOffset<T> = T extends unknown ? Omit<T, "offset"> : never;

function readSection(reader: ComponentReader, definitions: Definition[], customs: CustomSection[]): void {
  const begin = reader.pos;
  const id = reader.u8();
  if (id >= SECTION_COUNT) reader.fail(`malformed section id ${id}`, begin);
  const size = reader.u32();
  reader.within(size, `section ${id}`, () => {
    const offset = reader.offset;
    switch (id) {
      case SECTION.custom: {
        const name = reader.name();
        const content = reader.offset;
        customs.push({ name, bytes: reader.take(reader.left), offset: content, after: definitions.length });
        return;
      }
      case SECTION["core module"]:
        definitions.push({ kind: "core module", bytes: reader.take(reader.left), offset });
        return;
      case SECTION.component:
        definitions.push({ kind: "component", component: reader.nested(() => readComponent(reader)), offset });
        return;
      case SECTION.start:
        definitions.push({ ...readStart(reader), offset });
        return;
      default:
        readEntries(reader, ENTRY_READERS[id], definitions);
    }
  });
}

function readEntries(
  reader: ComponentReader,
  read: (reader: ComponentReader) => WithoutOffset<Definition>,
  definitions: Definition[],
): void {
  reader.items("definitions", () => {
    const offset = reader.offset;
    if (definitions.length >= MAX_DEFINITIONS) {
      throw new InvalidError(`too many definitions: at most ${MAX_DEFINITIONS} are possible`, { offset });
    }
    definitions.push({ ...read(reader), offset });
  }, MAX_DEFINITIONS);
}

function readCoreInstance(reader: ComponentReader): CoreInstanceExpr {
  switch (reader.u8()) {
    case 0x00: {
      const module = reader.u32();
      const args = reader.items("arguments", () => {
        const name = reader.name();
        if (reader.u8() !== 0x12) reader.badByte("instantiation arg kind");
        return { name, instance: reader.u32() };
      });
      return { kind: "instantiate", module, args };
    }
    case 0x01:
      return {
        kind: "exports",
        exports: reader.items(
          "exports",
          () => ({ name: reader.name(), sort: readCoreSort(reader), index: reader.u32() }),
        ),
      };
    default:
      return reader.badByte("core instance");
  }
}

function readInstance(reader: ComponentReader): InstanceExpr {
  switch (reader.u8()) {
    case 0x00: {
      const component = reader.u32();
      const args = reader.items("arguments", () => ({ name: reader.name(), ...readSortIndex(reader) }));
      return { kind: "instantiate", component, args };
    }
    case 0x01:
      return { kind: "exports", exports: reader.items("exports", () => readInlineExport(reader)) };
    default:
      return reader.badByte("instance");
  }
}

function readInlineExport(reader: ComponentReader): NamedSortIndex {
  return { ...readExternName(reader), ...readSortIndex(reader) };
}

function readExport(reader: ComponentReader): WithoutOffset<Definition> {
  const entry = readInlineExport(reader);
  const type = reader.optional("optional component export type", () => readExternDesc(reader));
  return type === undefined ? { kind: "export", ...entry } : { kind: "export", ...entry, type };
}

function readStart(reader: ComponentReader): WithoutOffset<Definition> {
  const func = reader.u32();
  const args = reader.items("arguments", () => reader.u32());
  return { kind: "start", func, args, results: reader.u32() };
}

function readValue(reader: ComponentReader): WithoutOffset<Definition> {
  const type = readValTypeRef(reader);
  return { kind: "value", type, bytes: reader.take(reader.u32()) };
}

/** Readers of the immediates of canonical definitions. */
const IMMEDIATES: { readonly [K in keyof CanonImmediates]: (reader: ComponentReader) => CanonImmediates[K] } = {
  type: (reader) => reader.u32(),
  func: (reader) => reader.u32(),
  options: (reader) => reader.items("canonical options", () => readOption(reader)),
  result: readResult,
  async: (reader) => reader.flag("async"),
  cancellable: (reader) => reader.flag("cancellable"),
  memory: (reader) => reader.u32(),
  slotType: (reader) => readValType(reader),
  slot: (reader) => reader.u32(),
  coreType: (reader) => reader.u32(),
  table: (reader) => reader.u32(),
  shared: (reader) => reader.flag("shared"),
};

function readCanon(reader: ComponentReader): Canon {
  const name = CANON_NAMES.get(reader.u8()) ?? reader.badByte("canonical function");
  if (name === "lift" || name === "lower") reader.zero(`canonical function ${name}`);
  const canon: Record<string, unknown> = { name };
  for (const immediate of CANON_ROWS[name][1]) canon[immediate] = IMMEDIATES[immediate](reader);
  return canon as unknown as Canon;
}

function readOption(reader: ComponentReader): CanonOption {
  const code = reader.u8();
  switch (code) {
    case 0x00:
    case 0x01:
    case 0x02:
      return { kind: "string-encoding", encoding: STRING_ENCODINGS[code] };
    case 0x03:
      return { kind: "memory", index: reader.u32() };
    case 0x04:
      return { kind: "realloc", index: reader.u32() };
    case 0x05:
      return { kind: "post-return", index: reader.u32() };
    case 0x06:
      return { kind: "async" };
    case 0x07:
      return { kind: "callback", index: reader.u32() };
    default:
      return reader.badByte("canonical option");
  }
}
