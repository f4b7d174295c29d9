/**
 * Bytes → types as written (Binary, "Type Definitions"): core types, defined types, function, component and instance
 * types, and their declarations. In: a reader at the type. Out: type expressions over indices.
 */
import { readExternType, readSubType, REC } from "@waft/engine/internal/binary/types";
import type { SubType } from "@waft/engine/internal/wasm/types";
import { readValType } from "@waft/engine/internal/wasm/type_reader";
import type {
  CoreTypeExpr,
  Declaration,
  ExternDeclaration,
  ExternDesc,
  ModuleDeclaration,
  TypeExpr,
  ValTypeRef,
} from "../model/definitions.ts";
import { type FuncShape, type Labelled, type Primitive, PRIMITIVES, type ValueType } from "../model/types.ts";
import type { ComponentReader } from "./component_reader.ts";
import { MAX_DEFINITIONS } from "./limits.ts";
import { readAlias } from "./read_alias.ts";
import { readExternName } from "./read_names.ts";

const PRIMITIVE_CODES: ReadonlyMap<number, Primitive> = new Map(
  (Object.keys(PRIMITIVES) as Primitive[]).map((name) => [PRIMITIVES[name], name]),
);

/** Prefix of a core subtype that is not final; the byte after it is also the code of a module type. */
const SUBTYPE_PREFIX = 0x00;
const MODULE_TYPE = 0x50;

/** A value type: a primitive, or the index of a type. */
export function readValTypeRef(reader: ComponentReader): ValTypeRef {
  const pos = reader.pos;
  const code = reader.s33();
  if (code >= 0) return code;
  const primitive = reader.pos === pos + 1 ? PRIMITIVE_CODES.get(reader.bytes[pos]) : undefined;
  return primitive ?? reader.fail(`invalid leading byte (0x${reader.bytes[pos].toString(16)}) for value type`, pos);
}

function readLabelled(reader: ComponentReader): Labelled<ValTypeRef> {
  return { name: reader.name(), type: readValTypeRef(reader) };
}

function readOptionalType(reader: ComponentReader): ValTypeRef | undefined {
  return reader.optional("optional type", () => readValTypeRef(reader));
}

/** Readers of value type constructors by code. */
const CONSTRUCTORS: Readonly<Record<number, (reader: ComponentReader) => ValueType<ValTypeRef, number>>> = {
  0x72: (reader) => ({ kind: "record", fields: reader.items("fields", () => readLabelled(reader)) }),
  0x71: (reader) => ({
    kind: "variant",
    cases: reader.items("cases", () => {
      const name = reader.name();
      const type = readOptionalType(reader);
      reader.zero("zero byte required");
      return type === undefined ? { name } : { name, type };
    }),
  }),
  0x70: (reader) => ({ kind: "list", element: readValTypeRef(reader) }),
  0x67: (reader) => ({ kind: "list", element: readValTypeRef(reader), length: reader.u32() }),
  0x6f: (reader) => ({ kind: "tuple", types: reader.items("types", () => readValTypeRef(reader)) }),
  0x6e: (reader) => ({ kind: "flags", names: reader.items("flags", () => reader.name()) }),
  0x6d: (reader) => ({ kind: "enum", names: reader.items("cases", () => reader.name()) }),
  0x6b: (reader) => ({ kind: "option", type: readValTypeRef(reader) }),
  0x6a: (reader) => {
    const ok = readOptionalType(reader);
    const err = readOptionalType(reader);
    return { kind: "result", ...(ok === undefined ? {} : { ok }), ...(err === undefined ? {} : { err }) };
  },
  0x69: (reader) => ({ kind: "own", resource: reader.u32() }),
  0x68: (reader) => ({ kind: "borrow", resource: reader.u32() }),
  0x66: (reader) => readChannel(reader, "stream"),
  0x65: (reader) => readChannel(reader, "future"),
  0x63: (reader) => ({ kind: "map", key: readValTypeRef(reader), value: readValTypeRef(reader) }),
};

function readChannel(reader: ComponentReader, kind: "stream" | "future"): ValueType<ValTypeRef, number> {
  const element = readOptionalType(reader);
  return element === undefined ? { kind } : { kind, element };
}

/** The result of a function: 0x00 and its type, or 0x01 0x00. */
export function readResult(reader: ComponentReader): ValTypeRef | undefined {
  switch (reader.u8()) {
    case 0x00:
      return readValTypeRef(reader);
    case 0x01:
      reader.zero("number of results");
      return undefined;
    default:
      return reader.badByte("component function results");
  }
}

function readFuncType(reader: ComponentReader, async: boolean): FuncShape<ValTypeRef> {
  const params = reader.items("parameters", () => readLabelled(reader));
  const result = readResult(reader);
  return result === undefined ? { kind: "func", async, params } : { kind: "func", async, params, result };
}

/** A type definition. */
export function readType(reader: ComponentReader): TypeExpr {
  const code = reader.u8();
  const primitive = PRIMITIVE_CODES.get(code);
  if (primitive !== undefined) return { kind: primitive };
  switch (code) {
    case 0x3f: {
      const rep = readValType(reader);
      const dtor = reader.optional("resource destructor", () => reader.u32());
      return dtor === undefined ? { kind: "resource", rep } : { kind: "resource", rep, dtor };
    }
    case 0x40:
      return readFuncType(reader, false);
    case 0x43:
      return readFuncType(reader, true);
    case 0x41:
      return { kind: "component", declarations: readDeclarations(reader, true) };
    case 0x42:
      return { kind: "instance", declarations: readDeclarations(reader, false) };
  }
  const read = CONSTRUCTORS[code];
  return read === undefined ? reader.badByte("component defined type") : read(reader);
}

function readDeclarations(reader: ComponentReader, component: boolean): Declaration[] {
  return reader.nested(() =>
    reader.items("declarations", () => {
      const offset = reader.offset;
      return { ...readDeclaration(reader, component), offset };
    }, MAX_DEFINITIONS)
  );
}

type WithoutOffset<T> = T extends unknown ? Omit<T, "offset"> : never;

function readDeclaration(reader: ComponentReader, component: boolean): WithoutOffset<Declaration> {
  const code = reader.u8();
  switch (code) {
    case 0x00:
      return { kind: "core type", type: readCoreType(reader) };
    case 0x01:
      return { kind: "type", type: readType(reader) };
    case 0x02:
      return { kind: "alias", alias: readAlias(reader) };
    case 0x03:
      if (component) return { kind: "import", ...readExtern(reader) };
      break;
    case 0x04:
      return { kind: "export", ...readExtern(reader) };
  }
  return reader.badByte("component or instance type declaration");
}

/** The name, attributes and type of an import or of a declared export. */
export function readExtern(reader: ComponentReader): ExternDeclaration {
  return { ...readExternName(reader), type: readExternDesc(reader) };
}

/** The type of an import or export. */
export function readExternDesc(reader: ComponentReader): ExternDesc {
  switch (reader.u8()) {
    case 0x00:
      if (reader.u8() !== 0x11) reader.badByte("component external kind");
      return { kind: "module", type: reader.u32() };
    case 0x01:
      return { kind: "func", type: reader.u32() };
    case 0x02:
      return { kind: "value", bound: readValueBound(reader) };
    case 0x03:
      return readTypeBound(reader);
    case 0x04:
      return { kind: "component", type: reader.u32() };
    case 0x05:
      return { kind: "instance", type: reader.u32() };
    default:
      return reader.badByte("component external kind");
  }
}

function readTypeBound(reader: ComponentReader): ExternDesc {
  switch (reader.u8()) {
    case 0x00:
      return { kind: "type", eq: reader.u32() };
    case 0x01:
      return { kind: "type" };
    default:
      return reader.badByte("type bound");
  }
}

function readValueBound(reader: ComponentReader): { eq: number } | { type: ValTypeRef } {
  switch (reader.u8()) {
    case 0x00:
      return { eq: reader.u32() };
    case 0x01:
      return { type: readValTypeRef(reader) };
    default:
      return reader.badByte("value bound");
  }
}

/** A core type definition: a recursive group or a module type. */
export function readCoreType(reader: ComponentReader): CoreTypeExpr {
  const code = reader.u8();
  if (code === MODULE_TYPE) return { kind: "module", declarations: readModuleDeclarations(reader) };
  if (code === SUBTYPE_PREFIX) {
    if (reader.left === 0 || reader.bytes[reader.pos] !== MODULE_TYPE) reader.badByte("core type");
    return { kind: "rec", types: [readSubType(reader)] };
  }
  reader.pos--;
  if (code !== REC) return { kind: "rec", types: [readCoreSubType(reader, code)] };
  reader.pos++;
  return { kind: "rec", types: reader.items("types", () => readSubType(reader)) };
}

/**
 * A core type that a module type declares. A module type does not define module types, so the byte that would begin one
 * also begins a subtype that is not final, without its prefix.
 */
function readDeclaredType(reader: ComponentReader): CoreTypeExpr {
  return beginsSubtype(reader) ? { kind: "rec", types: [readSubType(reader)] } : readCoreType(reader);
}

/** Whether a subtype without prefix follows: at most one supertype, and a composite type. */
function beginsSubtype({ bytes, pos, left }: ComponentReader): boolean {
  if (left < 3 || bytes[pos] !== MODULE_TYPE || bytes[pos + 1] > 1) return false;
  let at = pos + 2;
  if (bytes[pos + 1] === 1) at = bytes.findIndex((byte, k) => k >= at && byte < 0x80) + 1;
  return at > 0 && at < pos + left && bytes[at] >= FIRST_COMPOSITE && bytes[at] <= LAST_COMPOSITE;
}

const FIRST_COMPOSITE = 0x5e;
const LAST_COMPOSITE = 0x60;
const SUB_FINAL = 0x4f;

function readCoreSubType(reader: ComponentReader, code: number): SubType {
  if (code === SUB_FINAL || (code >= FIRST_COMPOSITE && code <= LAST_COMPOSITE)) return readSubType(reader);
  reader.pos++;
  return reader.badByte("type definition");
}

function readModuleDeclarations(reader: ComponentReader): ModuleDeclaration[] {
  return reader.nested(() =>
    reader.items("declarations", () => {
      const offset = reader.offset;
      return { ...readModuleDeclaration(reader), offset };
    }, MAX_DEFINITIONS)
  );
}

function readModuleDeclaration(reader: ComponentReader): WithoutOffset<ModuleDeclaration> {
  switch (reader.u8()) {
    case 0x00:
      return { kind: "import", module: reader.name(), name: reader.name(), desc: readExternType(reader) };
    case 0x01:
      return { kind: "type", type: readDeclaredType(reader) };
    case 0x02:
      if (reader.u8() !== 0x10) reader.badByte("outer alias kind");
      if (reader.u8() !== 0x01) reader.badByte("outer alias target");
      return { kind: "alias", count: reader.u32(), index: reader.u32() };
    case 0x03:
      return { kind: "export", name: reader.name(), desc: readExternType(reader) };
    default:
      return reader.badByte("module type declaration");
  }
}
