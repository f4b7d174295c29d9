/**
 * Writes a module in the kernel's input format. In: a ValidModule, whose bodies may not have been validated, and its
 * context layout. Out: tables and bodies in the kernel's memory from layout.MODULE on, and the header words.
 */
import type { ContextLayout } from "../abi/context_layout.ts";
import { ALL_FEATURE_ROWS, type FeatureSet } from "../settings/features.ts";
import { type FieldLayout, layoutFields, sizeClassOf } from "../abi/gc_layout.ts";
import { GLOBAL_SIZE, MEMORY, SHARED_LENGTH_SIZE, TABLE } from "../abi/context_layout.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import { pricesOf } from "../wasm/late_fuel_groups.ts";
import { fieldsBeforeDescriptor, subtypeDepth } from "../wasm/subtype.ts";
import { BytesView, type Func, lengthOf } from "../wasm/module.ts";
import {
  type ArrayType,
  byteSize,
  type CompositeType,
  type FieldType,
  I64,
  pageBytes,
  type StructType,
} from "../wasm/types.ts";
import { MODE } from "../settings/code_mode.ts";
import { type CodeSettings, modeOf } from "../settings/code_settings.ts";
import * as layout from "./kernel/layout.ts";

/** Code generation settings other than the module itself. */
export interface KernelOptions extends CodeSettings {
  /** True for intrinsic modules, whose memory 0 is the whole address space. */
  unchecked?: boolean;
  stackFence: boolean;
  /** Indices of tables, and checked addresses of memories, are masked. Default: neither. */
  masks?: { readonly tables: boolean; readonly memories: boolean };
  /** Whether deterministic code has the NaNs of this processor. */
  keepsNans?: boolean;
  /** By defined function: 1 if it counts the depth of calls; without it, none does. */
  counted?: Uint8Array | undefined;
  /** By defined function: whether its body is left to the optimizing compiler. Default: none is. */
  leftOut?: ((index: number) => boolean) | undefined;
  cpu: ReadonlySet<string>;
  features: FeatureSet;
  /** Offset in the image of the shared constants (STUB.CONSTANTS). */
  constants: number;
}

/**
 * A growable memory; growth invalidates its views. Callers request views of single regions, because a view of the whole
 * memory makes some hosts collect garbage sooner.
 */
export interface KernelMemory {
  /** Size in bytes. */
  readonly size: number;
  /** A view of `bytes` bytes from address `from` on; grows the memory to include them. */
  view(from: number, bytes: number): Uint8Array<ArrayBuffer>;
}

/** A view of `bytes` bytes from `from` on, as words. */
export function wordsAt(memory: KernelMemory, from: number, bytes: number): Int32Array<ArrayBuffer> {
  const { buffer, byteOffset } = memory.view(from, bytes);
  return new Int32Array(buffer, byteOffset, bytes >> 2);
}

const NO_USE = 0x7fffffff;
/** Spare bytes after the last table. */
const SLACK = 64;

/** Size in bytes of a module's tables; the bodies follow them. `prices` is the number of prices. */
function tableBytes(valid: ValidModule, prices: number): number {
  let words = 0;
  for (const { composite } of valid.types) {
    words += layout.TYPE_ROW / 4;
    words += composite.kind === "func"
      ? composite.params.length + composite.results.length
      : composite.kind === "cont"
      ? 0
      : fieldsOf(composite).length * (layout.FIELD_ROW / 4);
  }
  words += valid.funcTypeIndices.length + valid.elems.length + valid.tagTypeIndices.length;
  words += (valid.globalTypes.length * layout.GLOBAL_ROW + valid.tableTypes.length * layout.TABLE_ROW) / 4;
  words += (valid.memoryTypes.length * layout.MEMORY_ROW + valid.funcs.length * layout.BODY_ROW) / 4;
  words += valid.funcs.length;
  return words * 4 + valid.declaredFuncs.length + prices + SLACK;
}

/** Writes consecutive tables from layout.MODULE on. */
class TableWriter {
  readonly #header: Int32Array;
  readonly #words: Int32Array;
  /** Address of the next word. */
  at: number = layout.MODULE;

  constructor(header: Int32Array, words: Int32Array) {
    this.#header = header;
    this.#words = words;
  }

  word(value: number): void {
    this.#words[(this.at - layout.MODULE) >> 2] = value;
    this.at += 4;
  }

  /** Writes many words, without a call for each. */
  words(values: ArrayLike<number>): void {
    this.#words.set(values, (this.at - layout.MODULE) >> 2);
    this.at += values.length * 4;
  }

  /** Sets a header word. */
  header(address: number, value: number): void {
    this.#header[address >> 2] = value;
  }
}

/** The fields of a structure; the element of an array as its only field. */
function fieldsOf(type: StructType | ArrayType): readonly FieldType[] {
  return type.kind === "struct" ? type.fields : [type.field];
}

/** The layout of objects of the type with canonical id `id`. */
function layoutOf(type: StructType | ArrayType, id: number): FieldLayout {
  return layoutFields(fieldsOf(type).map(({ storage }) => byteSize(storage)), fieldsBeforeDescriptor(id));
}

function writeFields(w: TableWriter, type: StructType | ArrayType, { offsets }: FieldLayout): void {
  fieldsOf(type).forEach(({ storage, mutable }, k) => {
    w.word(storage);
    w.word(mutable ? 1 : 0);
    w.word(offsets[k]);
  });
}

/** Writes the lists of a type; returns the layout of its objects. */
function writeLists(w: TableWriter, composite: CompositeType, id: number): FieldLayout {
  if (composite.kind === "struct" || composite.kind === "array") {
    const objects = layoutOf(composite, id);
    writeFields(w, composite, objects);
    return objects;
  }
  if (composite.kind === "func") {
    w.words(composite.params);
    w.words(composite.results);
  }
  return NO_OBJECTS;
}

const NO_OBJECTS: FieldLayout = { offsets: [], descriptor: 0, bytes: 0 };

const KINDS = {
  func: layout.TYPE_IS_FUNC,
  struct: layout.TYPE_IS_STRUCT,
  array: layout.TYPE_IS_ARRAY,
  cont: layout.TYPE_IS_CONT,
};

/**
 * The four words of a type row from TYPE_PARAMS to TYPE_RESULT_COUNT, for a type whose lists begin at address `list`
 * and whose objects have `bytes`.
 */
function shapeOf(composite: CompositeType, list: number, bytes: number): readonly number[] {
  if (composite.kind === "func") {
    const { params, results } = composite;
    return [list, params.length, list + params.length * 4, results.length];
  }
  if (composite.kind === "cont") return [composite.func, 0, 0, 0];
  if (composite.kind === "array") return [list, 1, Math.log2(byteSize(composite.field.storage)), 0];
  return [list, composite.fields.length, bytes, sizeClassOf(bytes)];
}

function writeTypes(w: TableWriter, valid: ValidModule): void {
  const { types, canonicalIds } = valid;
  const lists = types.map(({ composite }, k) => {
    const list = w.at;
    return { list, objects: writeLists(w, composite, canonicalIds[k]) };
  });
  w.header(layout.H_TYPES, w.at);
  w.header(layout.H_TYPE_COUNT, types.length);
  types.forEach(({ composite, descriptor, final, supertypes }, k) => {
    const { list, objects } = lists[k];
    w.word(KINDS[composite.kind]);
    for (const word of shapeOf(composite, list, objects.bytes)) w.word(word);
    w.word(canonicalIds[k]);
    w.word(supertypes[0] ?? -1);
    w.word(final ? 1 : 0);
    w.word(subtypeDepth(canonicalIds[k]));
    w.word(descriptor ?? -1);
    w.word(objects.descriptor);
  });
}

function writeStorage(w: TableWriter, valid: ValidModule, context: ContextLayout): void {
  w.header(layout.H_GLOBALS, w.at);
  w.header(layout.H_GLOBAL_COUNT, valid.globalTypes.length);
  valid.globalTypes.forEach(({ type, mutable }, k) => {
    w.word(type);
    const isPointer = mutable && k < valid.importedGlobalCount;
    w.word((mutable ? layout.GLOBAL_IS_MUTABLE : 0) | (isPointer ? layout.GLOBAL_IS_POINTER : 0));
    w.word(context.globalsOffset + k * GLOBAL_SIZE);
  });
  w.header(layout.H_TABLES, w.at);
  w.header(layout.H_TABLE_COUNT, valid.tableTypes.length);
  valid.tableTypes.forEach(({ element, limits }, k) => {
    w.word(element);
    w.word(limits.address === I64 ? 1 : 0);
    w.word(context.tablesOffset + k * TABLE.SIZE);
  });
  w.header(layout.H_MEMORIES, w.at);
  w.header(layout.H_MEMORY_COUNT, valid.memoryTypes.length);
  valid.memoryTypes.forEach((type, k) => {
    w.word(
      (type.limits.address === I64 ? layout.MEMORY_IS_64 : 0) | (type.shared ? layout.MEMORY_IS_SHARED : 0) |
        (pageBytes(type) === 1 ? layout.MEMORY_HAS_BYTE_PAGES : 0),
    );
    w.word(context.memoriesOffset + k * MEMORY.SIZE);
    w.word(context.sharedLengthsOffset + k * SHARED_LENGTH_SIZE);
  });
}

function writeIndexSpaces(w: TableWriter, valid: ValidModule): void {
  w.header(layout.H_FUNCS, w.at);
  w.header(layout.H_FUNC_COUNT, valid.funcTypeIndices.length);
  w.header(layout.H_IMPORTED_FUNCS, valid.importedFuncCount);
  w.words(valid.funcTypeIndices);
  w.header(layout.H_ELEMS, w.at);
  w.header(layout.H_ELEM_COUNT, valid.elems.length);
  for (const { type } of valid.elems) w.word(type);
  w.header(layout.H_TAGS, w.at);
  w.header(layout.H_TAG_COUNT, valid.tagTypeIndices.length);
  w.words(valid.tagTypeIndices);
  w.header(layout.H_DATA_COUNT, valid.datas.length);
  w.header(layout.H_DATA_COUNT_MISSING, valid.dataCount === undefined && valid.datas.length > 0 ? 1 : 0);
}

function writeMode(w: TableWriter, options: KernelOptions, context: ContextLayout): void {
  const { unchecked, stackFence, keepsNans, cpu, masks } = options;
  w.header(
    layout.H_MODE,
    modeOf(options) | (stackFence ? MODE.STACK_FENCE : 0) | (unchecked === true ? MODE.UNCHECKED : 0) |
      (keepsNans === true ? MODE.OWN_NANS : 0) | (masks?.tables === true ? MODE.MASK_TABLES : 0) |
      (masks?.memories === true ? MODE.MASK_MEMORIES : 0),
  );
  w.header(
    layout.H_CPU,
    (cpu.has("lzcnt") ? layout.CPU_LZCNT : 0) | (cpu.has("bmi1") ? layout.CPU_BMI1 : 0) |
      (cpu.has("bmi2") ? layout.CPU_BMI2 : 0) | (cpu.has("popcnt") ? layout.CPU_POPCNT : 0),
  );
  w.header(layout.H_CONSTANTS, options.constants);
  w.header(layout.H_IMPORTS_OFFSET, context.importsOffset);
  w.header(layout.H_FUNCTIONS_OFFSET, context.functionsOffset);
  w.header(layout.H_TYPE_IDS_OFFSET, context.typeIdsOffset);
  w.header(layout.H_TAGS_OFFSET, context.tagsOffset);
}

function writeFeatures(w: TableWriter, features: FeatureSet): void {
  ALL_FEATURE_ROWS.forEach(({ name }, k) => {
    w.header(layout.FEATURES + (k + 1) * 4, features[name] ? 1 : 0);
    w.header(layout.FEATURE_USES + (k + 1) * 4, NO_USE);
  });
}

/**
 * The smallest offset at which each feature is used, by feature number, as recorded by the kernels of `memories`;
 * undefined for an unused feature.
 */
export function featureUses(memories: readonly KernelMemory[]): (number | undefined)[] {
  const uses = memories.map((memory) => wordsAt(memory, layout.FEATURE_USES, (ALL_FEATURE_ROWS.length + 1) * 4));
  return Array.from(uses[0], (_, feature) => {
    const use = Math.min(...uses.map((words) => words[feature]));
    return feature === 0 || use === NO_USE ? undefined : use;
  });
}

/** Copies header and tables, which end at address `end`, from one kernel's memory to another's. */
export function copyTables(from: KernelMemory, to: KernelMemory, end: number): void {
  to.view(0, layout.MOVES).set(from.view(0, layout.MOVES));
  const bytes = end - layout.MODULE;
  to.view(layout.MODULE, bytes).set(from.view(layout.MODULE, bytes));
}

/** The table at H_STARTS: the code offset of each of `count` bodies in the image, −1 until placed. */
export function startsAt(memory: KernelMemory, count: number): Int32Array {
  const [address] = wordsAt(memory, layout.H_STARTS, 4);
  return wordsAt(memory, layout.MODULE, address - layout.MODULE + count * 4).subarray((address - layout.MODULE) >> 2);
}

/** Addresses of the first byte and of the end of the bodies from `first` to before `end`, which is greater. */
export function bodyRange(memory: KernelMemory, first: number, end: number): [from: number, end: number] {
  const [rows] = wordsAt(memory, layout.H_BODIES, 4);
  const words = wordsAt(memory, layout.MODULE, rows - layout.MODULE + end * layout.BODY_ROW);
  const row = (index: number) => (rows - layout.MODULE + index * layout.BODY_ROW) >> 2;
  return [words[row(first) + layout.BODY_START / 4], words[row(end - 1) + layout.BODY_END / 4]];
}

/** Size in bytes of all bodies. */
export function bodyBytes(funcs: readonly Func[]): number {
  let bytes = 0;
  for (const { body } of funcs) bytes += lengthOf(body);
  return bytes;
}

/** The bodies from `first` to before `end`: at least one. */
interface BodyRange {
  readonly first: number;
  readonly end: number;
}

/**
 * The bytes from the first body to the end of the last one, if each body follows the one before in the same binary:
 * they are copied at once, with the sizes between them.
 */
function bodyRun(funcs: readonly Func[], { first, end }: BodyRange): Uint8Array | undefined {
  const { body: head } = funcs[first];
  if (!(head instanceof BytesView)) return undefined;
  let last = head.end;
  for (let k = first + 1; k < end; k++) {
    const { body } = funcs[k];
    if (!(body instanceof BytesView) || body.source !== head.source || body.start < last) return undefined;
    if (body.offset - head.offset !== body.start - head.start) return undefined;
    last = body.end;
  }
  return head.source.subarray(head.start, last);
}

/**
 * Writes bodies after the tables that end at address `at`, and their rows. Returns the address after the last one.
 * Bodies that were there before are overwritten.
 */
export function writeBodies(
  memory: KernelMemory,
  { funcs }: ValidModule,
  at: number,
  range: BodyRange,
  leftOut?: KernelOptions["leftOut"],
): number {
  const { first, end } = range;
  const run = bodyRun(funcs, range);
  let bytes = run?.length ?? 0;
  if (run === undefined) { for (let k = first; k < end; k++) bytes += lengthOf(funcs[k].body); }
  const module = memory.view(layout.MODULE, at - layout.MODULE + bytes);
  const [rows] = wordsAt(memory, layout.H_BODIES, 4);
  const words = new Int32Array(module.buffer, module.byteOffset, module.length >> 2);
  if (run !== undefined) module.set(run, at - layout.MODULE);
  const origin = funcs[first].body.offset;
  let next = at;
  for (let k = first; k < end; k++) {
    const { body } = funcs[k];
    const length = lengthOf(body);
    const start = run === undefined ? next : at + body.offset - origin;
    if (run === undefined) module.set(body.bytes, start - layout.MODULE);
    const row = (rows - layout.MODULE + k * layout.BODY_ROW) >> 2;
    words[row + layout.BODY_START / 4] = start;
    words[row + layout.BODY_END / 4] = next = start + length;
    words[row + layout.BODY_OFFSET / 4] = leftOut?.(k) === true ? layout.LEFT_OUT : body.offset;
  }
  return next;
}

/** Writes the tables of a module that has a body, without its bodies. Returns the address after them. */
export function writeTables(
  memory: KernelMemory,
  valid: ValidModule,
  context: ContextLayout,
  options: KernelOptions,
): number {
  const { funcs, declaredFuncs, exactImports } = valid;
  const prices = pricesOf(options.fuelPrices);
  const size = tableBytes(valid, prices.length);
  const bytes = memory.view(layout.MODULE, size);
  const w = new TableWriter(wordsAt(memory, 0, layout.MOVES), wordsAt(memory, layout.MODULE, size));
  writeMode(w, options, context);
  writeFeatures(w, options.features);
  writeTypes(w, valid);
  writeStorage(w, valid, context);
  writeIndexSpaces(w, valid);
  const rows = w.at;
  w.header(layout.H_BODIES, rows);
  let at = rows + funcs.length * layout.BODY_ROW;
  w.header(layout.H_STARTS, at);
  startsAt(memory, funcs.length).fill(-1);
  at += funcs.length * 4;
  w.header(layout.H_DECLARED, at);
  bytes.set(declaredFuncs, at - layout.MODULE);
  for (const index of exactImports) bytes[at - layout.MODULE + index] |= layout.FUNC_EXACT;
  const defined = at - layout.MODULE + valid.importedFuncCount;
  options.counted?.forEach((counts, k) => bytes[defined + k] |= counts === 1 ? layout.FUNC_COUNTED : 0);
  at += declaredFuncs.length;
  w.header(layout.H_PRICES, prices.length === 0 ? 0 : at);
  bytes.set(prices, at - layout.MODULE);
  return at + prices.length;
}

/** Writes the module, which has a body, with all of its bodies; returns the size of its tables and bodies in bytes. */
export function writeModule(
  memory: KernelMemory,
  valid: ValidModule,
  context: ContextLayout,
  options: KernelOptions,
): number {
  // Room for everything: a memory that grows in between invalidates its views.
  const { length } = pricesOf(options.fuelPrices);
  memory.view(layout.MODULE, tableBytes(valid, length) + bodyBytes(valid.funcs));
  const at = writeTables(memory, valid, context, options);
  return writeBodies(memory, valid, at, { first: 0, end: valid.funcs.length }, options.leftOut) - layout.MODULE;
}
