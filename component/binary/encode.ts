/**
 * Component → bytes (Binary): the inverse of decode.ts. Consecutive definitions of one kind share a section. Custom
 * sections keep their place among the definitions.
 *
 * Relies on a component that the text parser or the decoder produced. Establishes: decoding the result gives equal
 * definitions, except for offsets.
 */
import { ByteWriter } from "@waft/engine/internal/base/bytes";
import {
  REC,
  writeGlobalType,
  writeMemoryType,
  writeSubType,
  writeTableType,
  writeTagType,
  writeValType,
} from "@waft/engine/internal/binary/types";
import { EXTERN_KIND, type ImportDesc } from "@waft/engine/internal/wasm/module";
import { type Canon, CANON_ROWS, type CanonImmediates, type CanonOption, STRING_ENCODINGS } from "../model/canon.ts";
import {
  type Alias,
  COMPONENT_SORTS,
  type ComponentSort,
  CORE_SORTS,
  type CoreInstanceExpr,
  type CoreSort,
  type CoreTypeExpr,
  type Declaration,
  type Definition,
  type ExternDeclaration,
  type ExternDesc,
  type InstanceExpr,
  type ModuleDeclaration,
  type Sort,
  type SortIndex,
  type TypeExpr,
  type ValTypeRef,
} from "../model/definitions.ts";
import { type ExternAttributes, type FuncShape, isPrimitive, PRIMITIVES, type ValueType } from "../model/types.ts";
import { COMPONENT_HEADER, SECTION } from "./section_ids.ts";

/** Definitions and custom sections to encode; a nested component is encoded from its definitions. */
interface EncodableComponent {
  readonly definitions: readonly Definition[];
  readonly customs: readonly { readonly name: string; readonly bytes: Uint8Array; readonly after: number }[];
}

/** Encodes a component. */
export function encodeComponent(component: EncodableComponent): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter();
  writer.raw(COMPONENT_HEADER);
  const { definitions } = component;
  writeCustoms(writer, component, 0);
  for (let at = 0; at < definitions.length;) {
    const end = sectionEnd(component, at);
    writeSection(writer, definitions.slice(at, end));
    at = end;
    writeCustoms(writer, component, at);
  }
  return writer.finish();
}

/** The end of the run of definitions that shares a section with the one at `start`. */
function sectionEnd({ definitions, customs }: EncodableComponent, start: number): number {
  const { kind } = definitions[start];
  let end = start + 1;
  if (kind === "core module" || kind === "component" || kind === "start") return end;
  while (end < definitions.length && definitions[end].kind === kind && !customs.some(({ after }) => after === end)) {
    end++;
  }
  return end;
}

function writeCustoms(writer: ByteWriter, { customs }: EncodableComponent, after: number): void {
  for (const custom of customs) {
    if (custom.after !== after) continue;
    writer.u8(SECTION.custom);
    const mark = writer.beginSized();
    writer.name(custom.name);
    writer.raw(custom.bytes);
    writer.endSized(mark);
  }
}

function writeSection(writer: ByteWriter, definitions: readonly Definition[]): void {
  const [first] = definitions;
  writer.u8(SECTION[first.kind]);
  const mark = writer.beginSized();
  if (first.kind === "core module") writer.raw(first.bytes);
  else if (first.kind === "component") writer.raw(encodeComponent(first.component));
  else {
    if (first.kind !== "start") writer.u32(definitions.length);
    for (const definition of definitions) writeDefinition(writer, definition);
  }
  writer.endSized(mark);
}

function writeItems<T>(writer: ByteWriter, items: readonly T[], write: (item: T) => void): void {
  writer.u32(items.length);
  items.forEach(write);
}

function writeOptional<T>(writer: ByteWriter, item: T | undefined, write: (item: T) => void): void {
  writer.u8(item === undefined ? 0 : 1);
  if (item !== undefined) write(item);
}

function writeDefinition(writer: ByteWriter, definition: Definition): void {
  switch (definition.kind) {
    case "core instance":
      return writeCoreInstance(writer, definition.expr);
    case "core type":
      return writeCoreType(writer, definition.type);
    case "instance":
      return writeInstance(writer, definition.expr);
    case "alias":
      return writeAlias(writer, definition.alias);
    case "type":
      return writeType(writer, definition.type);
    case "canon":
      return writeCanon(writer, definition.canon);
    case "import":
      return writeExtern(writer, definition);
    case "export":
      writeExternName(writer, definition.name, definition.attributes);
      writeSortIndex(writer, definition);
      return writeOptional(writer, definition.type, (type) => writeExternDesc(writer, type));
    case "start":
      writer.u32(definition.func);
      writeItems(writer, definition.args, (arg) => writer.u32(arg));
      return writer.u32(definition.results);
    case "value":
      writeRef(writer, definition.type);
      return writer.byteVector(definition.bytes);
  }
}

function writeCoreInstance(writer: ByteWriter, expr: CoreInstanceExpr): void {
  if (expr.kind === "instantiate") {
    writer.u8(0x00);
    writer.u32(expr.module);
    writeItems(writer, expr.args, ({ name, instance }) => {
      writer.name(name);
      writer.u8(CORE_SORTS.instance);
      writer.u32(instance);
    });
    return;
  }
  writer.u8(0x01);
  writeItems(writer, expr.exports, ({ name, sort, index }) => {
    writer.name(name);
    writer.u8(CORE_SORTS[sort]);
    writer.u32(index);
  });
}

function writeInstance(writer: ByteWriter, expr: InstanceExpr): void {
  if (expr.kind === "instantiate") {
    writer.u8(0x00);
    writer.u32(expr.component);
    writeItems(writer, expr.args, (arg) => {
      writer.name(arg.name);
      writeSortIndex(writer, arg);
    });
    return;
  }
  writer.u8(0x01);
  writeItems(writer, expr.exports, (entry) => {
    writeExternName(writer, entry.name, entry.attributes);
    writeSortIndex(writer, entry);
  });
}

function writeSort(writer: ByteWriter, sort: Sort): void {
  if (sort.startsWith("core ")) {
    writer.u8(0x00);
    writer.u8(CORE_SORTS[sort.slice("core ".length) as CoreSort]);
  } else writer.u8(COMPONENT_SORTS[sort as ComponentSort]);
}

function writeSortIndex(writer: ByteWriter, { sort, index }: SortIndex): void {
  writeSort(writer, sort);
  writer.u32(index);
}

function writeAlias(writer: ByteWriter, alias: Alias): void {
  writeSort(writer, alias.sort);
  if (alias.kind === "outer") {
    writer.u8(0x02);
    writer.u32(alias.count);
    writer.u32(alias.index);
    return;
  }
  writer.u8(alias.kind === "export" ? 0x00 : 0x01);
  writer.u32(alias.instance);
  writer.name(alias.name);
}

function writeRef(writer: ByteWriter, ref: ValTypeRef): void {
  if (typeof ref === "number") writer.s33(ref);
  else writer.u8(PRIMITIVES[ref]);
}

function writeOptionalRef(writer: ByteWriter, ref: ValTypeRef | undefined): void {
  writeOptional(writer, ref, (type) => writeRef(writer, type));
}

function writeValueType(writer: ByteWriter, type: ValueType<ValTypeRef, number>): void {
  if (isPrimitive(type.kind)) return writer.u8(PRIMITIVES[type.kind]);
  switch (type.kind) {
    case "record":
      writer.u8(0x72);
      return writeItems(writer, type.fields, (field) => writeLabelled(writer, field.name, field.type));
    case "variant":
      writer.u8(0x71);
      return writeItems(writer, type.cases, (row) => {
        writer.name(row.name);
        writeOptionalRef(writer, row.type);
        writer.u8(0x00);
      });
    case "list":
      writer.u8(type.length === undefined ? 0x70 : 0x67);
      writeRef(writer, type.element);
      if (type.length !== undefined) writer.u32(type.length);
      return;
    case "tuple":
      writer.u8(0x6f);
      return writeItems(writer, type.types, (part) => writeRef(writer, part));
    case "flags":
    case "enum":
      writer.u8(type.kind === "flags" ? 0x6e : 0x6d);
      return writeItems(writer, type.names, (name) => writer.name(name));
    case "option":
      writer.u8(0x6b);
      return writeRef(writer, type.type);
    case "result":
      writer.u8(0x6a);
      writeOptionalRef(writer, type.ok);
      return writeOptionalRef(writer, type.err);
    case "own":
    case "borrow":
      writer.u8(type.kind === "own" ? 0x69 : 0x68);
      return writer.u32(type.resource);
    case "stream":
    case "future":
      writer.u8(type.kind === "stream" ? 0x66 : 0x65);
      return writeOptionalRef(writer, type.element);
    case "map":
      writer.u8(0x63);
      writeRef(writer, type.key);
      return writeRef(writer, type.value);
  }
}

function writeLabelled(writer: ByteWriter, name: string, type: ValTypeRef): void {
  writer.name(name);
  writeRef(writer, type);
}

function writeResult(writer: ByteWriter, result: ValTypeRef | undefined): void {
  writer.u8(result === undefined ? 0x01 : 0x00);
  if (result === undefined) writer.u8(0x00);
  else writeRef(writer, result);
}

function writeFuncType(writer: ByteWriter, type: FuncShape<ValTypeRef>): void {
  writer.u8(type.async ? 0x43 : 0x40);
  writeItems(writer, type.params, ({ name, type }) => writeLabelled(writer, name, type));
  writeResult(writer, type.result);
}

function writeType(writer: ByteWriter, type: TypeExpr): void {
  switch (type.kind) {
    case "func":
      return writeFuncType(writer, type);
    case "resource":
      writer.u8(0x3f);
      writeValType(writer, type.rep);
      return writeOptional(writer, type.dtor, (index) => writer.u32(index));
    case "component":
    case "instance":
      writer.u8(type.kind === "component" ? 0x41 : 0x42);
      return writeItems(writer, type.declarations, (declaration) => writeDeclaration(writer, declaration));
    default:
      return writeValueType(writer, type);
  }
}

const DECLARATION_CODES = { "core type": 0x00, "type": 0x01, "alias": 0x02, "import": 0x03, "export": 0x04 } as const;

function writeDeclaration(writer: ByteWriter, declaration: Declaration): void {
  writer.u8(DECLARATION_CODES[declaration.kind]);
  switch (declaration.kind) {
    case "core type":
      return writeCoreType(writer, declaration.type);
    case "type":
      return writeType(writer, declaration.type);
    case "alias":
      return writeAlias(writer, declaration.alias);
    default:
      return writeExtern(writer, declaration);
  }
}

function writeExtern(writer: ByteWriter, { name, attributes, type }: ExternDeclaration): void {
  writeExternName(writer, name, attributes);
  writeExternDesc(writer, type);
}

function writeExternName(writer: ByteWriter, name: string, attributes: ExternAttributes | undefined): void {
  const rows = [attributes?.implements, attributes?.versionSuffix, attributes?.externalId]
    .flatMap((value, code) => value === undefined ? [] : [{ code, value }]);
  writer.u8(rows.length === 0 ? 0x00 : 0x02);
  writer.name(name);
  if (rows.length === 0) return;
  writeItems(writer, rows, ({ code, value }) => {
    writer.u8(code);
    writer.name(value);
  });
}

function writeExternDesc(writer: ByteWriter, desc: ExternDesc): void {
  switch (desc.kind) {
    case "module":
      writer.u8(0x00);
      writer.u8(CORE_SORTS.module);
      return writer.u32(desc.type);
    case "value":
      writer.u8(0x02);
      writer.u8("eq" in desc.bound ? 0x00 : 0x01);
      return "eq" in desc.bound ? writer.u32(desc.bound.eq) : writeRef(writer, desc.bound.type);
    case "type":
      writer.u8(0x03);
      writer.u8(desc.eq === undefined ? 0x01 : 0x00);
      if (desc.eq !== undefined) writer.u32(desc.eq);
      return;
    default:
      writer.u8(COMPONENT_SORTS[desc.kind]);
      return writer.u32(desc.type);
  }
}

const MODULE_TYPE = 0x50;

function writeCoreType(writer: ByteWriter, type: CoreTypeExpr, isInModule = false): void {
  if (type.kind === "module") {
    writer.u8(MODULE_TYPE);
    return writeItems(writer, type.declarations, (declaration) => writeModuleDeclaration(writer, declaration));
  }
  const [only] = type.types;
  if (type.types.length !== 1) {
    writer.u8(REC);
    return writeItems(writer, type.types, (sub) => writeSubType(writer, sub));
  }
  if (!only.final && !isInModule) writer.u8(0x00); // 0x50 alone would begin a module type.
  writeSubType(writer, only);
}

function writeModuleDeclaration(writer: ByteWriter, declaration: ModuleDeclaration): void {
  switch (declaration.kind) {
    case "import":
      writer.u8(0x00);
      writer.name(declaration.module);
      writer.name(declaration.name);
      return writeCoreExtern(writer, declaration.desc);
    case "type":
      writer.u8(0x01);
      // A module type does not define module types, so 0x50 begins a subtype there.
      return writeCoreType(writer, declaration.type, true);
    case "alias":
      writer.raw(Uint8Array.of(0x02, CORE_SORTS.type, 0x01));
      writer.u32(declaration.count);
      return writer.u32(declaration.index);
    case "export":
      writer.u8(0x03);
      writer.name(declaration.name);
      return writeCoreExtern(writer, declaration.desc);
  }
}

function writeCoreExtern(writer: ByteWriter, desc: ImportDesc): void {
  writer.u8(EXTERN_KIND[desc.kind]);
  switch (desc.kind) {
    case "func":
      return writer.u32(desc.typeIndex);
    case "table":
      return writeTableType(writer, desc.type);
    case "memory":
      return writeMemoryType(writer, desc.type);
    case "global":
      return writeGlobalType(writer, desc.type);
    case "tag":
      return writeTagType(writer, desc.type);
  }
}

/** Writers of the immediates of canonical definitions. */
const IMMEDIATES: { readonly [K in keyof CanonImmediates]: (writer: ByteWriter, value: CanonImmediates[K]) => void } = {
  type: (writer, value) => writer.u32(value),
  func: (writer, value) => writer.u32(value),
  options: (writer, value) => writeItems(writer, value, (option) => writeOption(writer, option)),
  result: writeResult,
  async: (writer, value) => writer.u8(value ? 1 : 0),
  cancellable: (writer, value) => writer.u8(value ? 1 : 0),
  memory: (writer, value) => writer.u32(value),
  slotType: (writer, value) => writeValType(writer, value),
  slot: (writer, value) => writer.u32(value),
  coreType: (writer, value) => writer.u32(value),
  table: (writer, value) => writer.u32(value),
  shared: (writer, value) => writer.u8(value ? 1 : 0),
};

function writeCanon(writer: ByteWriter, canon: Canon): void {
  const [code, immediates] = CANON_ROWS[canon.name];
  writer.u8(code);
  if (canon.name === "lift" || canon.name === "lower") writer.u8(0x00);
  const values = canon as unknown as CanonImmediates;
  for (const name of immediates) writeImmediate(writer, name, values);
}

function writeImmediate<K extends keyof CanonImmediates>(writer: ByteWriter, name: K, values: CanonImmediates): void {
  IMMEDIATES[name](writer, values[name]);
}

const OPTION_CODES = { "memory": 0x03, "realloc": 0x04, "post-return": 0x05, "async": 0x06, "callback": 0x07 } as const;

function writeOption(writer: ByteWriter, option: CanonOption): void {
  if (option.kind === "string-encoding") return writer.u8(STRING_ENCODINGS.indexOf(option.encoding));
  writer.u8(OPTION_CODES[option.kind]);
  if (option.kind !== "async") writer.u32(option.index);
}
