/**
 * One reader per section (specification, 5.5): each takes a reader limited to its section and adds the section's
 * entries to the module. Function bodies and constant expressions stay bytes; the extent of a constant expression is
 * found by decoding it, so its opcodes and immediates are well-formed.
 *
 * Invariant: allocation is bounded by a small multiple of the section's size, regardless of the counts it declares.
 */
import { type ByteReader, UNEXPECTED_END } from "../base/bytes.ts";
import { InvalidError } from "../base/errors.ts";
import { CONSTANT, shortConstantEnd } from "../wasm/constant_reader.ts";
import { codeReader } from "../wasm/late_code_reader.ts";
import { MAX_BODY_BYTES, MAX_ENTRIES, MAX_LOCALS } from "../wasm/limits.ts";
import {
  BytesView,
  type DataSegment,
  type ElementSegment,
  type Expr,
  EXTERN_KIND,
  type ExternKind,
  type Module,
  type RawBytes,
} from "../wasm/module.ts";
import { ElementColumns } from "./element_columns.ts";
import { readLocals, readRefType } from "../wasm/type_reader.ts";
import { FUNCREF, HEAP, refType } from "../wasm/types.ts";
import {
  readExternType,
  readGlobalType,
  readMemoryType,
  readSubType,
  readTableType,
  readTagType,
  REC,
} from "./types.ts";

/** After an empty name of an import: a group of names with types, and a group of names of one type. */
export const COMPACT_IMPORTS = 0x7f;
export const COMPACT_IMPORTS_OF_TYPE = 0x7e;

/** The state of decoding a module; checks at the end compare its parts. */
export interface Decoding {
  readonly module: Module;
  /** Type indices of the function section. */
  funcTypes: number[];
  /** Entries of the code section. */
  bodies: RawBytes[];
  /** Locals declared by the bodies so far. */
  locals: number;
  /** True after the first name section; later ones are ignored. */
  named: boolean;
  /** Skip bodies, names and data segments. */
  readonly metadata: boolean;
  /** Accept a missing data section. */
  readonly prefix: boolean;
}

/** Reads the bytes of sections and the instructions of constant expressions. */
export interface ModuleReader extends ByteReader {
  /** Absolute offset of the last instruction returned by `next`. */
  readonly at: number;
  /** Reads the next instruction with its immediates. */
  next(): number;
}

/** Reads one section's content. */
type SectionReader = (reader: ModuleReader, decoding: Decoding) => void;

const EXTERN_KINDS = Object.keys(EXTERN_KIND) as ExternKind[];

function view(reader: ModuleReader, start: number): RawBytes {
  return new BytesView(reader.bytes, start, reader.pos, reader.base);
}

/** The length of a vector of `what`, bounded by the bytes left and by the engine's limit. */
function entryCount(reader: ModuleReader, what: keyof typeof MAX_ENTRIES, already = 0): number {
  const pos = reader.pos;
  const count = reader.count();
  checkEntries(reader, what, count + already, pos);
  return count;
}

/** Throws an InvalidError at `pos` if `count` exceeds the limit on `what`. */
export function checkEntries(reader: ModuleReader, what: keyof typeof MAX_ENTRIES, count: number, pos: number): void {
  const limit = MAX_ENTRIES[what];
  if (count > limit) limitExceeded(reader, `too many ${what}: ${count}, at most ${limit} are possible`, pos);
}

function limitExceeded(reader: ModuleReader, message: string, pos: number): never {
  throw new InvalidError(message, { offset: reader.base + pos });
}

/** Reads a vector of `what`, entry by entry. */
function readEntries(reader: ModuleReader, what: keyof typeof MAX_ENTRIES, read: () => void): void {
  for (let left = entryCount(reader, what); left > 0; left--) {
    if (reader.left === 0) failMissing(reader, what, left);
    read();
  }
}

function failMissing(reader: ModuleReader, what: keyof typeof MAX_ENTRIES, count: number): never {
  reader.fail(`${UNEXPECTED_END}: length out of bounds: ${count} more ${what} declared`);
}

function readExpr(reader: ModuleReader): Expr {
  const start = reader.pos;
  skipExpr(reader);
  return view(reader, start);
}

/** Reads up to and including the `end` that closes the expression. Nesting is counted, without recursion. */
function skipExpr(reader: ModuleReader): void {
  const { bytes, pos, end } = reader;
  const opcode = bytes[pos] === CONSTANT.REF_FUNC ? CONSTANT.REF_FUNC : CONSTANT.I32_CONST;
  const shortEnd = shortConstantEnd(bytes, pos, end, opcode);
  if (shortEnd !== 0) {
    reader.pos = shortEnd;
    return;
  }
  for (let depth = 0; depth >= 0;) {
    reader.next();
    switch (reader.bytes[reader.at - reader.base]) {
      case 0x02: // block
      case 0x03: // loop
      case 0x04: // if
      case 0x06: // try
      case 0x1f: // try_table
        depth++;
        break;
      case 0x05: // else
      case 0x07: // catch
      case 0x19: // catch_all
        if (depth === 0) reader.fail("END opcode expected", reader.at - reader.base);
        break;
      case 0x18: // delegate
        if (depth === 0) reader.fail("END opcode expected", reader.at - reader.base);
        depth--;
        break;
      case 0x0b: // end
        depth--;
        break;
    }
  }
}

function readTypes(reader: ModuleReader, { module }: Decoding): void {
  const { types, recGroups } = module;
  readEntries(reader, "types", () => {
    const start = types.length;
    if (reader.left > 0 && reader.bytes[reader.pos] === REC) {
      reader.pos++;
      for (let count = entryCount(reader, "types", start); count > 0; count--) types.push(readSubType(reader));
    } else types.push(readSubType(reader));
    recGroups.push({ start, count: types.length - start });
  });
  checkEntries(reader, "types", types.length, reader.pos);
}

function readImports(reader: ModuleReader, { module }: Decoding): void {
  readEntries(reader, "imports", () => {
    const { offset } = reader;
    const from = reader.name();
    const name = reader.name();
    const form = reader.left > 0 ? reader.bytes[reader.pos] : 0;
    if (name === "" && (form === COMPACT_IMPORTS || form === COMPACT_IMPORTS_OF_TYPE)) {
      readImportGroup(reader, module, from, offset);
    } else module.imports.push({ module: from, name, desc: readExternType(reader), offset });
  });
}

/** Reads a group of imports from module `from`, after the empty name. */
function readImportGroup(reader: ModuleReader, { imports, importGroups }: Module, from: string, offset: number): void {
  const sameType = reader.u8() === COMPACT_IMPORTS_OF_TYPE;
  const shared = sameType ? readExternType(reader) : undefined;
  const start = imports.length;
  const count = entryCount(reader, "imports", start);
  for (let left = count; left > 0; left--) {
    const { offset } = reader;
    imports.push({ module: from, name: reader.name(), desc: shared ?? readExternType(reader), offset });
  }
  importGroups.push({ module: from, start, count, sameType, desc: shared, offset });
}

// A loop of its own: a usual index takes no call, and most modules are read before the host has optimized this code.
function readFunctions(reader: ModuleReader, { funcTypes }: Decoding): void {
  const { bytes, end } = reader;
  for (let left = entryCount(reader, "functions"); left > 0; left--) {
    const { pos } = reader;
    if (pos === end) failMissing(reader, "functions", left);
    const byte = bytes[pos];
    if (byte < 0x80) {
      reader.pos = pos + 1;
      funcTypes.push(byte);
    } else funcTypes.push(reader.u32());
  }
}

/** The first byte of a table with an initial value; 0x00 and the table type follow. */
const TABLE_WITH_INIT = 0x40;

function readTables(reader: ModuleReader, { module }: Decoding): void {
  readEntries(reader, "tables", () => {
    if (reader.left > 0 && reader.bytes[reader.pos] === TABLE_WITH_INIT) {
      reader.pos++;
      if (reader.u8() !== 0) reader.fail("malformed table: zero byte expected", reader.pos - 1);
      const type = readTableType(reader);
      module.tables.push({ type, init: readExpr(reader) });
    } else module.tables.push({ type: readTableType(reader) });
  });
}

function readMemories(reader: ModuleReader, { module }: Decoding): void {
  readEntries(reader, "memories", () => module.memories.push(readMemoryType(reader)));
}

function readTags(reader: ModuleReader, { module }: Decoding): void {
  readEntries(reader, "tags", () => module.tags.push(readTagType(reader)));
}

function readGlobals(reader: ModuleReader, { module }: Decoding): void {
  readEntries(reader, "globals", () => {
    const type = readGlobalType(reader);
    module.globals.push({ type, init: readExpr(reader) });
  });
}

function readExports(reader: ModuleReader, { module }: Decoding): void {
  readEntries(reader, "exports", () => {
    const offset = reader.offset;
    const name = reader.name();
    const kind = EXTERN_KINDS[reader.u8()];
    if (kind === undefined) reader.fail("malformed export kind", reader.pos - 1);
    module.exports.push({ name, kind, index: reader.u32(), offset });
  });
}

function readStart(reader: ModuleReader, { module }: Decoding): void {
  module.start = reader.u32();
}

/** Bits of an element segment's flags. */
const NOT_ACTIVE = 1;
const EXPLICIT = 2; // active: a table index follows; otherwise: declarative
const EXPRESSIONS = 4;

const PASSIVE: ElementSegment["mode"] = { kind: "passive" };
const DECLARATIVE: ElementSegment["mode"] = { kind: "declarative" };

function readElementSegment(reader: ModuleReader, columns: ElementColumns): void {
  const offset = reader.offset;
  const flags = reader.u32();
  if (flags > 7) reader.fail("malformed elements segment kind", offset - reader.base);
  let mode: ElementSegment["mode"];
  if ((flags & NOT_ACTIVE) !== 0) mode = (flags & EXPLICIT) !== 0 ? DECLARATIVE : PASSIVE;
  else mode = { kind: "active", table: (flags & EXPLICIT) !== 0 ? reader.u32() : 0, start: readExpr(reader) };
  const byExpressions = (flags & EXPRESSIONS) !== 0;
  // Without flags the type is implied: (ref func) for indices, funcref for expressions.
  let type = byExpressions ? FUNCREF : refType(false, HEAP.func);
  if ((flags & (NOT_ACTIVE | EXPLICIT)) !== 0) {
    if (byExpressions) type = readRefType(reader);
    else if (reader.u8() !== 0) reader.fail("malformed element kind", reader.pos - 1);
  }
  const before = reader.pos;
  const count = entryCount(reader, "elements");
  checkEntries(reader, "elements of all segments", columns.elementCount + count, before);
  columns.begin({ type, mode, offset }, byExpressions, reader.pos);
  columns.reserve(count);
  for (let left = count; left > 0; left--) {
    if (byExpressions) {
      skipExpr(reader);
      columns.addElement(reader.pos);
    } else columns.addElement(reader.u32());
  }
}

/** Up to this many segments are objects; a module may have ten million. */
const FEW_SEGMENTS = 1000;

function readElements(reader: ModuleReader, { module }: Decoding): void {
  const columns = new ElementColumns(reader.bytes, reader.base);
  readEntries(reader, "element segments", () => readElementSegment(reader, columns));
  // Objects that exist are faster to read, and most modules have a few.
  module.elems = columns.length <= FEW_SEGMENTS ? [...columns] : columns;
}

function readDataCount(reader: ModuleReader, { module }: Decoding): void {
  module.dataCount = reader.u32();
}

/**
 * Reports a body that does not close with `end`: the first error inside it, or else one message that contains the three
 * that the suite expects, depending on the bytes after the body.
 */
function failUnendedBody(reader: ModuleReader): never {
  readLocals(reader);
  const code = codeReader(reader.bytes, reader.pos, reader.end, reader.base);
  while (!code.done) code.next();
  reader.pos = reader.end;
  reader.fail(`END opcode expected: ${UNEXPECTED_END}: section size mismatch`);
}

/** Number of parameters of the function whose body is read next; 0 for a type that validation will reject. */
function paramCount({ module, funcTypes, bodies }: Decoding): number {
  const composite = module.types[funcTypes[bodies.length]]?.composite;
  return composite?.kind === "func" ? composite.params.length : 0;
}

function readBody(reader: ModuleReader, decoding: Decoding): void {
  const size = reader.u32();
  const start = reader.pos;
  if (size > reader.left) {
    reader.fail(`${UNEXPECTED_END}: length out of bounds: function body of ${size} bytes with ${reader.left} left`);
  }
  const sectionEnd = reader.end;
  reader.end = start + size;
  if (size > MAX_BODY_BYTES) {
    limitExceeded(
      reader,
      `function body of ${size} bytes is too large: at most ${MAX_BODY_BYTES} are possible`,
      start,
    );
  }
  if (size === 0 || reader.bytes[reader.end - 1] !== 0x0b) failUnendedBody(reader);
  const locals = readLocals(reader);
  decoding.locals += locals;
  checkEntries(reader, "locals of all functions", decoding.locals, start);
  const params = paramCount(decoding);
  if (params + locals > MAX_LOCALS) {
    const sum = `${params + locals} with ${params} parameters`;
    limitExceeded(reader, `too many locals: ${sum}, at most ${MAX_LOCALS} are possible`, start);
  }
  reader.pos = reader.end;
  reader.end = sectionEnd;
  decoding.bodies.push(view(reader, start));
}

function readCode(reader: ModuleReader, decoding: Decoding): void {
  readEntries(reader, "functions", () => readBody(reader, decoding));
}

function readDataSegment(reader: ModuleReader): DataSegment {
  const offset = reader.offset;
  const flags = reader.u32();
  if (flags > 2) reader.fail("malformed data segment kind", offset - reader.base);
  const mode: DataSegment["mode"] = flags === 1
    ? { kind: "passive" }
    : { kind: "active", memory: flags === 2 ? reader.u32() : 0, start: readExpr(reader) };
  return { mode, bytes: reader.take(reader.u32()), offset };
}

function readData(reader: ModuleReader, { module }: Decoding): void {
  readDatas(reader, module.datas);
}

/** Adds the segments of a data section to `datas`. */
export function readDatas(reader: ModuleReader, datas: DataSegment[]): void {
  readEntries(reader, "data segments", () => {
    datas.push(readDataSegment(reader));
  });
}

/** Readers by section id; read_module.ts reads custom sections (0). */
export const SECTION_READERS: readonly (SectionReader | undefined)[] = [
  undefined,
  readTypes,
  readImports,
  readFunctions,
  readTables,
  readMemories,
  readGlobals,
  readExports,
  readStart,
  readElements,
  readCode,
  readData,
  readDataCount,
  readTags,
];
