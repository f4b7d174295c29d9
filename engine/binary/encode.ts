/**
 * Module → bytes (specification, 5.5): sections in their order, without empty ones, integers in their shortest form, so
 * equal modules give equal bytes. Expressions and bodies are copied.
 *
 * Custom sections keep their places. A custom section "name" is copied; if there is none, one is made from
 * `module.names` and appended.
 */
import { ByteWriter } from "../base/bytes.ts";
import { CONSTANT } from "../wasm/constant_reader.ts";
import {
  type DataSegment,
  type ElementSegment,
  EXACT_FUNC,
  EXTERN_KIND,
  type Import,
  type ImportDesc,
  type ImportGroup,
  type Module,
  type Sequence,
} from "../wasm/module.ts";
import { FUNCREF, HEAP, refType } from "../wasm/types.ts";
import { writeNames } from "./names.ts";
import { COMPACT_IMPORTS, COMPACT_IMPORTS_OF_TYPE } from "./sections.ts";
import { HEADER, SECTION, SECTION_ORDER } from "../wasm/section_ids.ts";
import {
  REC,
  writeGlobalType,
  writeMemoryType,
  writeSubType,
  writeTableType,
  writeTagType,
  writeValType,
} from "./types.ts";

function vector<T>(writer: ByteWriter, entries: Sequence<T>, write: (writer: ByteWriter, entry: T) => void): void {
  writer.u32(entries.length);
  for (const entry of entries) write(writer, entry);
}

function writeTypes(writer: ByteWriter, module: Module): void {
  vector(writer, module.recGroups, (out, group) => {
    if (group.count !== 1) {
      out.u8(REC);
      out.u32(group.count);
    }
    for (let i = 0; i < group.count; i++) writeSubType(out, module.types[group.start + i]);
  });
}

function writeImportDesc(writer: ByteWriter, desc: ImportDesc): void {
  writer.u8(desc.kind === "func" && desc.exact === true ? EXACT_FUNC : EXTERN_KIND[desc.kind]);
  switch (desc.kind) {
    case "func":
      writer.u32(desc.typeIndex);
      break;
    case "table":
      writeTableType(writer, desc.type);
      break;
    case "memory":
      writeMemoryType(writer, desc.type);
      break;
    case "global":
      writeGlobalType(writer, desc.type);
      break;
    case "tag":
      writeTagType(writer, desc.type);
      break;
  }
}

/** Writes the imports: those of a group as the group. */
function writeImports(writer: ByteWriter, { imports, importGroups }: Module): void {
  const grouped = importGroups.reduce((sum, { count }) => sum + count, 0);
  writer.u32(imports.length - grouped + importGroups.length);
  let at = 0;
  for (const group of importGroups) {
    for (; at < group.start; at++) writeImport(writer, imports[at]);
    writeImportGroup(writer, group, imports.slice(at, at += group.count));
  }
  for (; at < imports.length; at++) writeImport(writer, imports[at]);
}

function writeImportGroup(writer: ByteWriter, { module, sameType, desc }: ImportGroup, entries: Import[]): void {
  writer.name(module);
  writer.name("");
  writer.u8(sameType ? COMPACT_IMPORTS_OF_TYPE : COMPACT_IMPORTS);
  if (desc !== undefined) writeImportDesc(writer, desc);
  vector(writer, entries, (out, entry) => {
    out.name(entry.name);
    if (!sameType) writeImportDesc(out, entry.desc);
  });
}

function writeImport(writer: ByteWriter, entry: Import): void {
  writer.name(entry.module);
  writer.name(entry.name);
  writeImportDesc(writer, entry.desc);
}

/** Writes `ref.func index`, `end`: an element of a segment whose type the compact form does not imply. */
export function writeRefFunc(writer: ByteWriter, index: number): void {
  writer.u8(CONSTANT.REF_FUNC);
  writer.u32(index);
  writer.u8(CONSTANT.END);
}

function writeElementSegment(writer: ByteWriter, segment: ElementSegment): void {
  const { type, init, mode } = segment;
  const compact = init.kind === "funcs" && (type === FUNCREF || type === refType(false, HEAP.func));
  const impliedType = compact || type === FUNCREF;
  const active = mode.kind === "active";
  const explicit = active ? mode.table !== 0 || !impliedType : mode.kind === "declarative";
  writer.u32((active ? 0 : 1) | (explicit ? 2 : 0) | (compact ? 0 : 4));
  if (active) {
    if (explicit) writer.u32(mode.table);
    writer.raw(mode.start.bytes);
  }
  if (!active || explicit) {
    if (compact) writer.u8(0);
    else writeValType(writer, type);
  }
  if (init.kind === "exprs") vector(writer, init.exprs, (out, expr) => out.raw(expr.bytes));
  else vector(writer, init.indices, (out, index) => compact ? out.u32(index) : writeRefFunc(out, index));
}

function writeDataSegment(writer: ByteWriter, segment: DataSegment): void {
  const { mode } = segment;
  if (mode.kind === "passive") writer.u8(1);
  else {
    writer.u8(mode.memory === 0 ? 0 : 2);
    if (mode.memory !== 0) writer.u32(mode.memory);
    writer.raw(mode.start.bytes);
  }
  writer.byteVector(segment.bytes);
}

/** Writers by section id, and whether a module needs the section. */
const SECTION_WRITERS: Record<
  number,
  { needed(module: Module): boolean; write(writer: ByteWriter, module: Module): void }
> = {
  [SECTION.type]: { needed: (module) => module.recGroups.length > 0, write: writeTypes },
  [SECTION.import]: {
    needed: (module) => module.imports.length + module.importGroups.length > 0,
    write: writeImports,
  },
  [SECTION.function]: {
    needed: (module) => module.funcs.length > 0,
    write: (writer, module) => vector(writer, module.funcs, (out, func) => out.u32(func.typeIndex)),
  },
  [SECTION.table]: {
    needed: (module) => module.tables.length > 0,
    write: (writer, module) =>
      vector(writer, module.tables, (out, table) => {
        if (table.init !== undefined) {
          out.u8(0x40);
          out.u8(0x00);
        }
        writeTableType(out, table.type);
        if (table.init !== undefined) out.raw(table.init.bytes);
      }),
  },
  [SECTION.memory]: {
    needed: (module) => module.memories.length > 0,
    write: (writer, module) => vector(writer, module.memories, writeMemoryType),
  },
  [SECTION.tag]: {
    needed: (module) => module.tags.length > 0,
    write: (writer, module) => vector(writer, module.tags, writeTagType),
  },
  [SECTION.global]: {
    needed: (module) => module.globals.length > 0,
    write: (writer, module) =>
      vector(writer, module.globals, (out, global) => {
        writeGlobalType(out, global.type);
        out.raw(global.init.bytes);
      }),
  },
  [SECTION.export]: {
    needed: (module) => module.exports.length > 0,
    write: (writer, module) =>
      vector(writer, module.exports, (out, entry) => {
        out.name(entry.name);
        out.u8(EXTERN_KIND[entry.kind]);
        out.u32(entry.index);
      }),
  },
  [SECTION.start]: {
    needed: (module) => module.start !== undefined,
    write: (writer, module) => writer.u32(module.start!),
  },
  [SECTION.element]: {
    needed: (module) => module.elems.length > 0,
    write: (writer, module) => vector(writer, module.elems, writeElementSegment),
  },
  [SECTION.dataCount]: {
    needed: (module) => module.dataCount !== undefined,
    write: (writer, module) => writer.u32(module.dataCount!),
  },
  [SECTION.code]: {
    needed: (module) => module.funcs.length > 0,
    write: (writer, module) => vector(writer, module.funcs, (out, func) => out.byteVector(func.body.bytes)),
  },
  [SECTION.data]: {
    needed: (module) => module.datas.length > 0,
    write: (writer, module) => vector(writer, module.datas, writeDataSegment),
  },
};

function writeCustom(writer: ByteWriter, name: string, bytes: Uint8Array): void {
  writer.u8(SECTION.custom);
  const mark = writer.beginSized();
  writer.name(name);
  writer.raw(bytes);
  writer.endSized(mark);
}

function writeCustoms(writer: ByteWriter, module: Module, after: number): void {
  for (const custom of module.customs) if (custom.after === after) writeCustom(writer, custom.name, custom.bytes);
}

/** Encodes a module in binary form. */
export function encodeModule(module: Module): Uint8Array {
  const writer = new ByteWriter(Math.max(1024, module.bytes.length));
  writer.raw(HEADER);
  writeCustoms(writer, module, SECTION.custom);
  for (const id of SECTION_ORDER) {
    const section = SECTION_WRITERS[id];
    if (section.needed(module)) {
      writer.u8(id);
      const mark = writer.beginSized();
      section.write(writer, module);
      writer.endSized(mark);
    }
    writeCustoms(writer, module, id);
  }
  if (!module.customs.some((custom) => custom.name === "name")) {
    const names = writeNames(module.names);
    if (names.length > 0) writeCustom(writer, "name", names);
  }
  return writer.finish();
}
