/**
 * Writes a module in the kernel's input format. In: a ValidModule, whose bodies may not have been validated, and its
 * context layout. Out: tables and bodies in the kernel's memory from layout.MODULE on, and the header words.
 */
import type { ContextLayout } from "../abi/context_layout.ts";
import { ALL_FEATURE_ROWS, type FeatureSet } from "../features.ts";
import { GLOBAL_SIZE, MEMORY, SHARED_LENGTH_SIZE, TABLE } from "../abi/context_layout.ts";
import type { ValidModule } from "../validate/valid_module.ts";
import { subtypeDepth } from "../wasm/subtype.ts";
import { I64 } from "../wasm/types.ts";
import * as layout from "./kernel/layout.ts";

/** Code generation settings other than the module itself. */
export interface KernelOptions {
  explicitBounds: boolean;
  stackFence: boolean;
  interruptible: boolean;
  fuel: boolean;
  deterministic: boolean;
  cpu: ReadonlySet<string>;
  features: FeatureSet;
  /** Offset in the image of the shared constants (STUB.CONSTANTS). */
  constants: number;
}

/** A growable memory; growth invalidates its views. */
export interface KernelMemory {
  /** A view of at least `size` bytes. */
  bytes(size: number): Uint8Array;
}

const NO_USE = 0x7fffffff;
/** Spare bytes after the last table. */
const SLACK = 64;

/** Size in bytes of a module's tables; the bodies follow them. */
function tableBytes(valid: ValidModule): number {
  let words = 0;
  for (const { composite } of valid.types) {
    words += layout.TYPE_ROW / 4;
    if (composite.kind === "func") words += composite.params.length + composite.results.length;
  }
  words += valid.funcTypeIndices.length + valid.elems.length + valid.tagTypeIndices.length;
  words += (valid.globalTypes.length * layout.GLOBAL_ROW + valid.tableTypes.length * layout.TABLE_ROW) / 4;
  words += (valid.memoryTypes.length * layout.MEMORY_ROW + valid.funcs.length * layout.BODY_ROW) / 4;
  return words * 4 + valid.declaredFuncs.length + SLACK;
}

/** Writes consecutive tables. */
class TableWriter {
  readonly #words: Int32Array;
  /** Address of the next word. */
  at: number = layout.MODULE;

  constructor(bytes: Uint8Array) {
    this.#words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
  }

  word(value: number): void {
    this.#words[this.at >> 2] = value;
    this.at += 4;
  }

  /** Sets a header word. */
  header(address: number, value: number): void {
    this.#words[address >> 2] = value;
  }
}

function writeTypes(w: TableWriter, valid: ValidModule): void {
  const { types, canonicalIds } = valid;
  const lists: number[] = [];
  for (const { composite } of types) {
    lists.push(w.at);
    if (composite.kind !== "func") continue;
    for (const type of composite.params) w.word(type);
    for (const type of composite.results) w.word(type);
  }
  w.header(layout.H_TYPES, w.at);
  w.header(layout.H_TYPE_COUNT, types.length);
  types.forEach(({ composite, final, supertypes }, k) => {
    const { kind } = composite;
    const params = kind === "func" ? composite.params.length : 0;
    w.word(kind === "func" ? layout.TYPE_IS_FUNC : kind === "struct" ? layout.TYPE_IS_STRUCT : layout.TYPE_IS_ARRAY);
    w.word(lists[k]);
    w.word(params);
    w.word(lists[k] + params * 4);
    w.word(kind === "func" ? composite.results.length : 0);
    w.word(canonicalIds[k]);
    w.word(supertypes[0] ?? -1);
    w.word(final ? 1 : 0);
    w.word(subtypeDepth(canonicalIds[k]));
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
  valid.memoryTypes.forEach(({ limits, shared }, k) => {
    w.word((limits.address === I64 ? layout.MEMORY_IS_64 : 0) | (shared ? layout.MEMORY_IS_SHARED : 0));
    w.word(context.memoriesOffset + k * MEMORY.SIZE);
    w.word(context.sharedLengthsOffset + k * SHARED_LENGTH_SIZE);
  });
}

function writeLists(w: TableWriter, valid: ValidModule): void {
  w.header(layout.H_FUNCS, w.at);
  w.header(layout.H_FUNC_COUNT, valid.funcTypeIndices.length);
  w.header(layout.H_IMPORTED_FUNCS, valid.importedFuncCount);
  for (const index of valid.funcTypeIndices) w.word(index);
  w.header(layout.H_ELEMS, w.at);
  w.header(layout.H_ELEM_COUNT, valid.elems.length);
  for (const { type } of valid.elems) w.word(type);
  w.header(layout.H_TAGS, w.at);
  w.header(layout.H_TAG_COUNT, valid.tagTypeIndices.length);
  for (const index of valid.tagTypeIndices) w.word(index);
  w.header(layout.H_DATA_COUNT, valid.datas.length);
  w.header(layout.H_DATA_COUNT_MISSING, valid.dataCount === undefined && valid.datas.length > 0 ? 1 : 0);
}

function writeMode(w: TableWriter, options: KernelOptions, context: ContextLayout): void {
  const { explicitBounds, stackFence, interruptible, fuel, deterministic, cpu } = options;
  w.header(
    layout.H_MODE,
    (explicitBounds ? layout.MODE_EXPLICIT_BOUNDS : 0) | (stackFence ? layout.MODE_STACK_FENCE : 0) |
      (interruptible ? layout.MODE_INTERRUPTIBLE : 0) | (fuel ? layout.MODE_FUEL : 0) |
      (deterministic ? layout.MODE_DETERMINISTIC : 0),
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
 * The smallest offset at which each feature is used, by feature number, as recorded by the kernel; undefined for an
 * unused feature.
 */
export function featureUses(bytes: Uint8Array): (number | undefined)[] {
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + layout.FEATURE_USES, ALL_FEATURE_ROWS.length + 1);
  return Array.from(words, (use, feature) => feature === 0 || use === NO_USE ? undefined : use);
}

/** Writes the module with all of its bodies. */
export function writeModule(
  memory: KernelMemory,
  valid: ValidModule,
  context: ContextLayout,
  options: KernelOptions,
): void {
  const { funcs, declaredFuncs } = valid;
  const tables = tableBytes(valid);
  let bodies = 0;
  for (const { body } of funcs) bodies += body.bytes.length;
  const bytes = memory.bytes(layout.MODULE + tables + bodies);
  const w = new TableWriter(bytes);
  writeMode(w, options, context);
  writeFeatures(w, options.features);
  writeTypes(w, valid);
  writeStorage(w, valid, context);
  writeLists(w, valid);
  const rows = w.at;
  w.header(layout.H_BODIES, rows);
  let at = rows + funcs.length * layout.BODY_ROW;
  w.header(layout.H_DECLARED, at);
  bytes.set(declaredFuncs, at);
  at += declaredFuncs.length;
  for (const { body } of funcs) {
    bytes.set(body.bytes, at);
    w.word(at);
    at += body.bytes.length;
    w.word(at);
    w.word(body.offset);
  }
}
