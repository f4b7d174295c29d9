/**
 * The state of an instance that its host can change: memories, tables and globals. In: the moments at which compiled
 * code hands control to the host, and takes it back. Out: the differences between the two, as a list of parts that ends
 * with END; and in a replay the same state again.
 *
 * Bytes that the engine itself accesses for the host, as WASI does, are reported (MemoryWatcher): only those ranges are
 * compared. A program that has had a view of a memory may write anywhere at any time, so from then on the whole memory
 * is copied when the host gets control, and compared when it gives control back. Elements of tables report their
 * writes; globals are compared.
 *
 * Invariant: nothing is recorded that compiled code wrote.
 */
import { ByteWriter } from "../base/bytes.ts";
import type { ByteReader } from "../base/bytes.ts";
import { nodeModule } from "../host/process.ts";
import type { Global } from "../runtime/instance/global.ts";
import type { Instance } from "../runtime/instance/instance.ts";
import type { Table } from "../runtime/instance/table.ts";
import type { Memory } from "../runtime/memory/memory.ts";
import { readValue, type ReferenceBoundary } from "../runtime/boundary/values.ts";
import { F32, I32, isNullable, isRef, V128, type ValType, valTypeName } from "../wasm/types.ts";
import { sha256 } from "./log_file.ts";
import type { Values } from "./values.ts";

/** The kinds of parts. */
const PART = {
  END: 0,
  /** The length of a memory: index, pages. */
  PAGES: 1,
  /** Bytes of a memory: index, offset, bytes. */
  BYTES: 2,
  /** The value of a global: index, value; a vector as its cell. */
  GLOBAL: 3,
  CELL: 4,
  /** The length of a table: index, elements. */
  LENGTH: 5,
  /** An element of a table: index, position, reference. */
  ELEMENT: 6,
  /** Fuel that the host has used. */
  FUEL: 7,
} as const;

/** Memories are compared in blocks of this size, in bytes. */
const BLOCK_BYTES = 1 << 15;
/** Gaps of fewer equal bytes than this do not end a run, because the head of a run has about this size. */
const GAP_BYTES = 8;
const CELL_BYTES = 16;
const NO_BYTES = new Uint8Array(0);

/** A range that the engine has accessed for the host, and its bytes before. */
interface Touched {
  readonly at: number;
  readonly before: Uint8Array;
}

/** One memory while the host is in control. */
class WatchedMemory {
  readonly #memory: Memory;
  readonly #index: number;
  #pages: number;
  #touched: Touched[] = [];
  #copy: Uint8Array = NO_BYTES;
  /** Whether `#copy` has the bytes that the memory had when the host got control. */
  #isCopied = false;

  constructor(memory: Memory, index: number) {
    this.#memory = memory;
    this.#index = index;
    this.#pages = memory.pages;
    memory.watcher = {
      lending: () => {
        if (!this.#isCopied) this.#takeCopy();
      },
      touching: (at, length) => {
        if (!this.#isCopied) this.#touched.push({ at, before: memory.bytes.slice(at, at + length) });
      },
    };
  }

  /** The host gets control. */
  begin(): void {
    this.#pages = this.#memory.pages;
    this.#touched.length = 0;
    this.#isCopied = false;
    if (this.#memory.isLent) this.#takeCopy();
  }

  /** Writes the host's changes. */
  write(out: ByteWriter): void {
    const { bytes, pages } = this.#memory;
    if (pages !== this.#pages) {
      out.u8(PART.PAGES);
      out.u32(this.#index);
      out.u32(pages);
    }
    for (const { at, before } of this.#touched) this.#writeDifferences(out, before, bytes.subarray(at), at);
    if (!this.#isCopied) return;
    const common = Math.min(this.#copy.length, bytes.length);
    this.#writeDifferences(out, this.#copy.subarray(0, common), bytes, 0);
    this.writeNonzero(out, common);
  }

  /** Writes the nonzero bytes from byte `from` on. */
  writeNonzero(out: ByteWriter, from: number): void {
    const { bytes } = this.#memory;
    const zeros = new Uint8Array(Math.min(BLOCK_BYTES, bytes.length - from));
    for (let at = from; at < bytes.length; at += BLOCK_BYTES) {
      const length = Math.min(BLOCK_BYTES, bytes.length - at);
      this.#writeDifferences(out, zeros.subarray(0, length), bytes.subarray(at), at);
    }
  }

  end(): void {
    this.#memory.watcher = undefined;
  }

  #takeCopy(): void {
    const { bytes } = this.#memory;
    if (this.#copy.length !== bytes.length) this.#copy = bytes.slice();
    else this.#copy.set(bytes);
    // Ranges that were accessed before this copy keep their bytes from before.
    this.#isCopied = true;
  }

  #writeDifferences(out: ByteWriter, before: Uint8Array, after: Uint8Array, offset: number): void {
    const { Buffer } = nodeModule("node:buffer");
    for (let at = 0; at < before.length; at += BLOCK_BYTES) {
      const old = before.subarray(at, at + BLOCK_BYTES);
      const now = after.subarray(at, at + old.length);
      if (Buffer.compare(old, now) !== 0) this.#writeRuns(out, old, now, offset + at);
    }
  }

  #writeRuns(out: ByteWriter, old: Uint8Array, now: Uint8Array, offset: number): void {
    for (let at = 0; at < old.length;) {
      while (at < old.length && old[at] === now[at]) at++;
      if (at === old.length) return;
      const from = at;
      let end = at + 1;
      for (at = end; at < old.length && at < end + GAP_BYTES; at++) if (old[at] !== now[at]) end = at + 1;
      out.u8(PART.BYTES);
      out.u32(this.#index);
      out.u64BigInt(BigInt(offset + from));
      out.byteVector(now.subarray(from, end));
      at = end;
    }
  }
}

/** By kind: the indices of the items that the host can change. */
interface Changeable {
  readonly memory: ReadonlySet<number>;
  readonly table: ReadonlySet<number>;
  /** Mutable ones. */
  readonly global: ReadonlySet<number>;
}

const CHANGEABLE = new WeakMap<Instance, Changeable>();

/** What JavaScript can reach, and therefore change: imports and exports. */
function changeableOf(instance: Instance): Changeable {
  const known = CHANGEABLE.get(instance);
  if (known !== undefined) return known;
  const { valid, globalTypes } = instance.module;
  const reachable = (wanted: keyof Changeable, imported: number) => {
    const exported = valid.exports.filter(({ kind }) => kind === wanted).map(({ index }) => index);
    return [...new Set([...Array(imported).keys(), ...exported])].sort((a, b) => a - b);
  };
  const changeable: Changeable = {
    memory: new Set(reachable("memory", valid.importedMemoryCount)),
    table: new Set(reachable("table", valid.importedTableCount)),
    global: new Set(reachable("global", valid.importedGlobalCount).filter((index) => globalTypes[index].mutable)),
  };
  CHANGEABLE.set(instance, changeable);
  return changeable;
}

function cellOf({ region, offset }: Global): Uint8Array {
  return region.u8.subarray(offset, offset + CELL_BYTES);
}

/** The bytes of a cell that belong to a value of `type`. */
function valueBytes(type: ValType): number {
  return type === V128 ? 16 : type === I32 || type === F32 ? 4 : 8;
}

/** Writes the value of global `index`: a reference, or the bytes of its cell. */
export function writeGlobalValue(
  out: ByteWriter,
  { globals, boundary }: Instance,
  index: number,
  values: Values,
): void {
  const { region, offset, type: { type } } = globals[index];
  if (isRef(type)) writeChecked(out, type, readValue(region, offset, type, boundary), values);
  else out.byteVector(cellOf(globals[index]).subarray(0, valueBytes(type)));
}

function writeChecked(out: ByteWriter, type: ValType, value: unknown, values: Values): void {
  values.check(type, value);
  values.write(out, type, value);
}

/** Reads a reference of `type` as its word. */
function readWord(reader: ByteReader, type: ValType, toWord: (value: unknown) => number, values: Values): number {
  const at = reader.pos;
  const value = values.read(reader);
  try {
    return toWord(value);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return reader.fail(`a value whose type is not ${valTypeName(type)}`, at);
  }
}

/** Reads the value of a global, and writes it to its cell. */
export function readGlobalValue(
  reader: ByteReader,
  global: Global,
  boundary: ReferenceBoundary,
  values: Values,
): void {
  const { region, offset, type: { type } } = global;
  const at = reader.pos;
  if (isRef(type)) {
    region.setWord(offset, readWord(reader, type, (value) => boundary.toWord(value, type, global), values));
    return;
  }
  const bytes = reader.take(reader.count());
  if (bytes.length !== valueBytes(type)) reader.fail("a number that does not fit its global", at);
  cellOf(global).set(bytes);
}

/** Follows the state that the host of an instance can change. */
export class HostChanges {
  readonly #instance: Instance;
  readonly #values: Values;
  readonly #memories: readonly WatchedMemory[];
  readonly #globals: readonly number[];
  readonly #cells: Uint8Array;
  readonly #lengths: number[];
  /** By table: the elements that the host has written. */
  readonly #written: readonly Set<number>[];

  /**
   * Begins with a host in control that has changed nothing yet. `taken` is called when the host reads a value from a
   * global or an element of a table: with their index, and the position of the element.
   */
  constructor(instance: Instance, values: Values, taken: (value: unknown, index: number, position?: number) => void) {
    this.#instance = instance;
    this.#values = values;
    this.#memories = instance.memories.map((memory, index) =>
      instance.memories.indexOf(memory) === index ? new WatchedMemory(memory, index) : undefined
    ).filter((memory) => memory !== undefined);
    this.#globals = [...changeableOf(instance).global];
    this.#cells = new Uint8Array(this.#globals.length * CELL_BYTES);
    this.#written = instance.tables.map(() => new Set());
    instance.tables.forEach((table, index) => {
      table.watcher = {
        wrote: (position) => this.#written[index].add(position),
        read: (position, value) => taken(value, index, position),
      };
    });
    instance.globals.forEach((global, index) => {
      if (isRef(global.type.type)) global.watcher = { read: (value) => taken(value, index) };
    });
    this.#lengths = instance.tables.map((table) => table.length);
    this.begin();
  }

  /** The host gets control. */
  begin(): void {
    for (const memory of this.#memories) memory.begin();
    this.#globals.forEach((index, k) => this.#cells.set(cellOf(this.#instance.globals[index]), k * CELL_BYTES));
    this.#instance.tables.forEach((table, k) => this.#lengths[k] = table.length);
  }

  /** Writes the host's changes, and the fuel that it has used. */
  write(out: ByteWriter, fuel = 0n): void {
    for (const memory of this.#memories) memory.write(out);
    this.#writeGlobals(out);
    this.#writeTables(out);
    if (fuel !== 0n) {
      out.u8(PART.FUEL);
      out.u64BigInt(fuel);
    }
    out.u8(PART.END);
  }

  /** Writes the contents of imported memories and tables, which a replay creates empty. */
  writeImports(out: ByteWriter): void {
    const { module: { valid } } = this.#instance;
    for (const memory of this.#memories.slice(0, valid.importedMemoryCount)) memory.writeNonzero(out, 0);
    this.#instance.tables.slice(0, valid.importedTableCount).forEach((table, index) => {
      for (let at = 0; at < table.length; at++) if (table.get(at) !== 0) this.#written[index].add(at);
    });
    this.#writeTables(out);
    out.u8(PART.END);
  }

  /** Stops following. */
  end(): void {
    for (const memory of this.#memories) memory.end();
    for (const watched of [...this.#instance.tables, ...this.#instance.globals]) watched.watcher = undefined;
  }

  #writeGlobals(out: ByteWriter): void {
    const { globals, module: { globalTypes } } = this.#instance;
    this.#globals.forEach((index, k) => {
      const cell = cellOf(globals[index]).subarray(0, valueBytes(globalTypes[index].type));
      if (cell.some((byte, at) => byte !== this.#cells[k * CELL_BYTES + at])) this.#writeGlobal(out, index);
    });
  }

  #writeGlobal(out: ByteWriter, index: number): void {
    const { type } = this.#instance.globals[index].type;
    out.u8(isRef(type) ? PART.GLOBAL : PART.CELL);
    out.u32(index);
    writeGlobalValue(out, this.#instance, index, this.#values);
  }

  #writeTables(out: ByteWriter): void {
    const { tables, module: { tableTypes }, boundary } = this.#instance;
    tables.forEach((table, index) => {
      const written = this.#written[index];
      if (written.size === 0) return;
      if (table.length !== this.#lengths[index]) {
        out.u8(PART.LENGTH);
        out.u32(index);
        out.u32(table.length);
      }
      const { element } = tableTypes[index];
      for (const at of written) {
        out.u8(PART.ELEMENT);
        out.u32(index);
        out.u32(at);
        writeChecked(out, element, boundary.fromWord(table.get(at), element), this.#values);
      }
      written.clear();
    });
  }
}

/**
 * Repeats the changes of the host. Returns the fuel that it used. Only what the host can change changes: compiled code
 * relies on the contents of everything else.
 */
export function applyChanges(reader: ByteReader, instance: Instance, values: Values): bigint {
  let fuel = 0n;
  /** Tables of references other than null that grew, with their lengths before. */
  const grown = new Map<Table, number>();
  for (;;) {
    const at = reader.pos;
    const part = reader.u8();
    if (part === PART.FUEL) fuel += reader.u64BigInt();
    else if (part !== PART.END) applyPart(reader, part, at, instance, values, grown);
    else {
      for (const [table, from] of grown) requireElements(reader, table, from, at);
      return fuel;
    }
  }
}

/** Refuses null among the elements from `from` on. */
function requireElements(reader: ByteReader, table: Table, from: number, at: number): void {
  for (let k = from; k < table.length; k++) if (table.get(k) === 0) reader.fail("an element without a value", at);
}

/** Reads an index and returns that item of `list`, which the host can change; `at`: the offset that an error names. */
function itemAt<T>(reader: ByteReader, list: readonly T[], changeable: ReadonlySet<number>, at: number): T {
  const index = reader.u32();
  return changeable.has(index) ? list[index] : reader.fail(`the host cannot change index ${index}`, at);
}

function applyPart(
  reader: ByteReader,
  part: number,
  at: number,
  instance: Instance,
  values: Values,
  grown: Map<Table, number>,
): void {
  const changeable = changeableOf(instance);
  switch (part) {
    case PART.PAGES: {
      const memory = itemAt(reader, instance.memories, changeable.memory, at);
      const pages = reader.u32();
      if (pages > memory.pages && memory.grow(pages - memory.pages) < 0) reader.fail(`no memory of ${pages} pages`, at);
      return;
    }
    case PART.BYTES: {
      const memory = itemAt(reader, instance.memories, changeable.memory, at);
      const to = reader.u64BigInt();
      const bytes = reader.take(reader.count());
      if (to + BigInt(bytes.length) > BigInt(memory.byteLength)) reader.fail("bytes outside of a memory", at);
      memory.bytes.set(bytes, Number(to));
      return;
    }
    case PART.GLOBAL:
    case PART.CELL: {
      const global = itemAt(reader, instance.globals, changeable.global, at);
      if (isRef(global.type.type) !== (part === PART.GLOBAL)) reader.fail("a value that does not fit its global", at);
      readGlobalValue(reader, global, instance.boundary, values);
      return;
    }
    case PART.LENGTH: {
      const table = itemAt(reader, instance.tables, changeable.table, at);
      const length = reader.u32();
      if (!isNullable(table.type.element) && !grown.has(table)) grown.set(table, table.length);
      if (length > table.length && table.grow(length - table.length, 0) < 0) reader.fail("a table is too long", at);
      return;
    }
    case PART.ELEMENT: {
      const table = itemAt(reader, instance.tables, changeable.table, at);
      const index = reader.u32();
      if (index >= table.length) reader.fail("an element outside of a table", at);
      const { element } = table.type;
      table.set(index, readWord(reader, element, (value) => instance.boundary.toWord(value, element), values));
      return;
    }
    default:
      reader.fail("unknown change", at);
  }
}

/** Skips changes for a listing. Returns the number of bytes written to memories. */
export function skipChanges(reader: ByteReader, skipValue: (reader: ByteReader) => void): number {
  let bytes = 0;
  for (;;) {
    const at = reader.pos;
    switch (reader.u8()) {
      case PART.END:
        return bytes;
      case PART.PAGES:
      case PART.LENGTH:
        reader.u32();
        reader.u32();
        break;
      case PART.BYTES: {
        reader.u32();
        reader.u64();
        bytes += reader.take(reader.count()).length;
        break;
      }
      case PART.CELL:
        reader.u32();
        reader.take(reader.count());
        break;
      case PART.GLOBAL:
        reader.u32();
        skipValue(reader);
        break;
      case PART.ELEMENT:
        reader.u32();
        reader.u32();
        skipValue(reader);
        break;
      case PART.FUEL:
        reader.u64();
        break;
      default:
        reader.fail("unknown change", at);
    }
  }
}

/**
 * The SHA-256 of the state of an instance: lengths and bytes of memories, lengths of tables, and globals of number and
 * vector types. Equal states give equal hashes on every machine.
 */
export function stateHash({ memories, tables, globals, module: { globalTypes } }: Instance): Uint8Array {
  const head = new ByteWriter();
  for (const { pages } of memories) head.bits32(pages);
  for (const { length } of tables) head.bits32(length);
  globals.forEach((global, index) => {
    const { type } = globalTypes[index];
    if (!isRef(type)) head.raw(cellOf(global).subarray(0, valueBytes(type)));
  });
  return sha256(head.finish(), ...memories.map(({ bytes }) => bytes));
}
