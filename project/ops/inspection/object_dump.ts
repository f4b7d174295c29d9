/**
 * The binaries in a file, section by section, for `waft objdump`. In: a module or component in binary form, which may
 * be damaged. Out: a part for the file and one for each core module and component in it, in the order of the file, and
 * the error with the lowest offset, if there is one. Invariant: offsets are those of the file; all of the file before
 * the fault is in the parts.
 */
import { decodeUntilFault } from "@waft/engine/internal/binary/read_prefix";
import type { WaftError } from "@waft/engine/internal/errors";
import { type ListedBody, type PartTexts, partTexts, withShortNames } from "@waft/engine/internal/text/print";
import { SECTION } from "@waft/engine/internal/wasm/section_ids";
import { decodeComponentUntilFault } from "@waft/component/internal/binary/decode";
import { isComponent, SECTION as COMPONENT_SECTION } from "@waft/component/internal/binary/section_ids";
import { componentEntries } from "./component_entries.ts";
import { type DumpedModule, moduleEntries } from "./module_entries.ts";
import { countOf, type Frame, readFrames } from "./section_frames.ts";

/** A section. Its content follows id and size. */
export interface DumpedSection {
  readonly id: number;
  /** As wasm-objdump prints it in a module, and as the component model names it in a component. */
  readonly name: string;
  /** Of a custom section. */
  readonly customName?: string;
  /** Offset of the content. */
  readonly offset: number;
  readonly bytes: number;
  /** The declared number of entries; absent for sections without entries. */
  readonly count?: number;
  readonly content: Uint8Array;
  /** The entries that could be read, a line or several for each. */
  readonly entries: () => Iterable<string>;
}

/** A function with its code. */
export interface DumpedFunction {
  readonly index: number;
  readonly name?: string;
  /** Offset of the body, which begins with the declarations of locals. */
  readonly offset: number;
  readonly bytes: Uint8Array;
  readonly code: ListedBody;
}

/** A module or component in a file. */
export interface DumpedPart {
  readonly kind: "core module" | "component";
  /** Indices of the components around it and its own, each among its kind; empty for the file itself. */
  readonly path: readonly number[];
  readonly offset: number;
  readonly bytes: number;
  /** The field after the magic bytes. */
  readonly version: number;
  readonly sections: readonly DumpedSection[];
  /** Disassembles the functions one by one. */
  readonly functions: () => Iterable<DumpedFunction>;
}

/** All parts of a file, and its first fault. */
export interface ObjectDump {
  readonly parts: readonly DumpedPart[];
  readonly fault?: WaftError;
}

const HEADER_BYTES = 8;
/** Components that are nested more deeply are faults. */
const MAX_DEPTH = 100;

/** Names of sections as wasm-objdump prints them. */
const MODULE_NAMES: readonly string[] = [
  "Custom",
  "Type",
  "Import",
  "Function",
  "Table",
  "Memory",
  "Global",
  "Export",
  "Start",
  "Elem",
  "Code",
  "Data",
  "DataCount",
  "Tag",
];
const COMPONENT_NAMES = new Map<number, string>(Object.entries(COMPONENT_SECTION).map(([name, id]) => [id, name]));
/** Sections that do not begin with the number of their entries. */
const UNCOUNTED: Readonly<Record<DumpedPart["kind"], readonly number[]>> = {
  "core module": [SECTION.custom, SECTION.start],
  "component": [
    COMPONENT_SECTION.custom,
    COMPONENT_SECTION["core module"],
    COMPONENT_SECTION.component,
    COMPONENT_SECTION.start,
  ],
};

/** Reads the parts of a file. Throws no errors of the format. */
export function dumpObject(bytes: Uint8Array): ObjectDump {
  const parts: DumpedPart[] = [];
  const faults: WaftError[] = [];
  addPart({ bytes, base: 0, path: [] }, parts, faults);
  const fault = faults.sort((a, b) => (a.place.offset ?? 0) - (b.place.offset ?? 0))[0];
  return { parts, ...(fault === undefined ? {} : { fault }) };
}

/** The error with offsets of the file, of which the bytes begin at `base`. */
export function atFileOffset(error: WaftError, base: number): WaftError {
  const { offset } = error.place;
  if (offset !== undefined && base !== 0) error.place = { ...error.place, offset: offset + base };
  return error;
}

interface Place {
  readonly bytes: Uint8Array;
  /** Offset of the first byte in the file. */
  readonly base: number;
  readonly path: readonly number[];
}

function addPart(place: Place, parts: DumpedPart[], faults: WaftError[]): void {
  const { bytes, base, path } = place;
  const kind = isComponent(bytes) ? "component" : "core module";
  const frames = readFrames(bytes);
  const reader = kind === "component" ? componentReader(bytes) : moduleReader(bytes);
  const { fault = frames.fault } = reader;
  if (fault !== undefined) faults.push(atFileOffset(fault, base));
  const sections = frames.sections.map((frame): DumpedSection => {
    const content = bytes.subarray(frame.offset, frame.offset + frame.bytes);
    const { id, customName } = frame;
    const name = (kind === "component" ? COMPONENT_NAMES.get(id) : MODULE_NAMES[id]) ?? `section ${id}`;
    const count = UNCOUNTED[kind].includes(id) ? undefined : countOf(content);
    return {
      id,
      name,
      ...(customName === undefined ? {} : { customName }),
      offset: base + frame.offset,
      bytes: frame.bytes,
      ...(count === undefined ? {} : { count }),
      content,
      entries: () => reader.entries(frame),
    };
  });
  const version = bytes.length < HEADER_BYTES ? 0 : new DataView(bytes.buffer, bytes.byteOffset).getUint32(4, true);
  const functions = () => reader.functions(base);
  parts.push({ kind, path, offset: base, bytes: bytes.length, version, sections, functions });
  if (kind === "component" && path.length < MAX_DEPTH) addNestedParts(place, frames.sections, parts, faults);
}

function addNestedParts(
  { bytes, base, path }: Place,
  frames: readonly Frame[],
  parts: DumpedPart[],
  faults: WaftError[],
) {
  const counts = new Map<number, number>();
  for (const { id, offset, bytes: size } of frames) {
    if (id !== COMPONENT_SECTION["core module"] && id !== COMPONENT_SECTION.component) continue;
    const index = counts.get(id) ?? 0;
    counts.set(id, index + 1);
    const inner = bytes.subarray(offset, offset + size);
    addPart({ bytes: inner, base: base + offset, path: [...path, index] }, parts, faults);
  }
}

/** The contents of a part. */
interface PartReader {
  readonly fault?: WaftError;
  readonly entries: (section: Frame) => Iterable<string>;
  readonly functions: (base: number) => Iterable<DumpedFunction>;
}

function moduleReader(bytes: Uint8Array): PartReader {
  const { module: whole, funcTypes, fault } = decodeUntilFault(bytes);
  const module = withShortNames(whole);
  let texts: PartTexts | undefined;
  const dumped: DumpedModule = { module, funcTypes, texts: () => texts ??= partTexts(module) };
  return {
    ...(fault === undefined ? {} : { fault }),
    entries: (section) => moduleEntries(dumped, section),
    functions: (base) => dumpedFunctions(dumped, base),
  };
}

function* dumpedFunctions({ module, texts }: DumpedModule, base: number): Iterable<DumpedFunction> {
  const imported = module.imports.filter(({ desc }) => desc.kind === "func").length;
  const exported = new Map(
    module.exports.filter(({ kind }) => kind === "func").map(({ index, name }) => [index, name]),
  );
  for (let k = 0; k < module.funcs.length; k++) {
    const { body } = module.funcs[k];
    const index = imported + k;
    const name = module.names.funcs.get(index) ?? exported.get(index);
    const listed = texts().body(k);
    const { fault } = listed;
    yield {
      index,
      ...(name === undefined ? {} : { name }),
      offset: base + body.offset,
      bytes: body.bytes,
      code: {
        ...listed,
        offsets: listed.offsets.map((offset) => base + offset),
        end: base + listed.end,
        ...(fault === undefined ? {} : { fault: atFileOffset(fault, base) }),
      },
    };
  }
}

function componentReader(bytes: Uint8Array): PartReader {
  const prefix = decodeComponentUntilFault(bytes);
  const entries = componentEntries(prefix);
  return { ...(prefix.fault === undefined ? {} : { fault: prefix.fault }), entries, functions: () => [] };
}
