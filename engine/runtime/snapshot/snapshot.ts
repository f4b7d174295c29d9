/**
 * Snapshots: the state that an idle instance defines, as bytes, to be restored in another process. Converts an
 * InstanceState to bytes and back:
 *
 *     magic, version · SHA-256 of the module · defined memories · defined tables · defined mutable globals ·
 *     dropped segments · SHA-256 of all preceding bytes
 *
 * Numbers are LEB128, memories are runs of nonzero blocks, references are null, a function index, or an i31. Other
 * references in tables or globals (host values, objects, functions of other instances) cannot be saved, and neither can
 * an instance that imports state. Invariant: the bytes are untrusted; a state that the module cannot have is refused.
 */
import { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { encodeModule } from "../../binary/encode.ts";
import { WaftError } from "../../base/errors.ts";
import { nodeModule } from "../../host/process.ts";
import { isSubtypeId } from "../../wasm/subtype.ts";
import { HEAP, heapOf, isNullable, isRef, pageBytes, V128, type ValType, valTypeName } from "../../wasm/types.ts";
import { RECORD } from "../../abi/context_layout.ts";
import type { ValidModule } from "../../validate/valid_module.ts";
import type { CompiledModule } from "../code/compiled_module.ts";
import { evaluateConst, prepareConst } from "../code/const_expr.ts";
import type { Instance } from "../instance/instance.ts";
import { captureState } from "../instance/instance_state.ts";
import type { InstanceState } from "../instance/captured_state.ts";

const MAGIC = new TextEncoder().encode("\0waftsnp");
const VERSION = 1;
const HASH_BYTES = 32;
const BLOCK_BYTES = 4096;
/** Encodings of references. */
const REFERENCE = { NULL: 0, FUNC: 1, I31: 2 } as const;

function sha256(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(nodeModule("node:crypto").createHash("sha256").update(bytes).digest());
}

const HASHES: WeakMap<CompiledModule, Uint8Array> = new WeakMap();

/** The hash that identifies a module: the SHA-256 of its binary form. `valid` must have its function bodies. */
export function validModuleHash(valid: ValidModule): Uint8Array {
  return sha256(encodeModule(valid));
}

/** The hash that identifies a module. Function bodies may be missing if `rememberModuleHash` has set the hash. */
export function moduleHash(module: CompiledModule): Uint8Array {
  let hash = HASHES.get(module);
  if (hash === undefined) HASHES.set(module, hash = validModuleHash(module.valid));
  return hash;
}

/** Sets the hash of a module without bodies (artifact/module_metadata.ts). */
export function rememberModuleHash(module: CompiledModule, hash: Uint8Array): void {
  HASHES.set(module, hash);
}

/** Throws for modules whose instances use a shared memory, or state that they do not define. */
export function requireNoImportedState(module: CompiledModule): void {
  if (module.valid.memories.some(({ shared }) => shared)) {
    throw new Error("The instance cannot be saved: it has a shared memory, which other threads may be using");
  }
  const foreign = module.valid.imports.find(({ desc }) =>
    desc.kind === "memory" || desc.kind === "table" || (desc.kind === "global" && desc.type.mutable)
  );
  if (foreign === undefined) return;
  throw new Error(
    `The instance cannot be saved: it imports the ${foreign.desc.kind} "${foreign.module}" "${foreign.name}", ` +
      "which it does not define",
  );
}

/** The indices of defined mutable globals; immutable ones are restored by instantiation. */
function savedGlobals({ globalTypes, valid }: CompiledModule): number[] {
  return globalTypes.map((_, index) => index).filter((index) =>
    index >= valid.importedGlobalCount && globalTypes[index].mutable
  );
}

/**
 * Encodes the state of an instance. Throws an Error that names the state that cannot be saved, or if the instance is
 * not idle.
 */
export function writeSnapshot(instance: Instance): Uint8Array<ArrayBuffer> {
  instance.requireIdle();
  const { module } = instance;
  requireNoImportedState(module);
  const out = new ByteWriter();
  out.raw(MAGIC);
  out.u32(VERSION);
  out.raw(moduleHash(module));
  const state = captureState(instance);
  for (const { pages, runs } of state.memories) {
    out.u32(pages);
    writeBlocks(out, runs[0].bytes);
  }
  const { importedTableCount, importedGlobalCount } = module.valid;
  state.tables.forEach((words, i) => {
    const index = importedTableCount + i;
    out.u32(words.length);
    words.forEach((word, k) => writeReference(out, instance, word, () => `element ${k} of table ${index}`));
  });
  const cells = new DataView(state.globals.buffer, state.globals.byteOffset);
  for (const index of savedGlobals(module)) {
    const at = (index - importedGlobalCount) * 16;
    if (isRef(module.globalTypes[index].type)) {
      const word = cells.getUint32(at, true) + cells.getUint32(at + 4, true) * 0x1_0000_0000;
      writeReference(out, instance, word, () => `global ${index}`);
    } else out.raw(state.globals.subarray(at, at + cellBytes(module.globalTypes[index].type)));
  }
  writeNumbers(out, state.droppedElems);
  writeNumbers(out, state.droppedDatas);
  out.raw(sha256(out.bytes.subarray(0, out.length)));
  return out.finish();
}

function cellBytes(type: ValType): number {
  return type === V128 ? 16 : 8;
}

/** Writes runs of nonzero blocks: { blocks skipped, blocks that follow }, terminated by two zeros. */
function writeBlocks(out: ByteWriter, bytes: Uint8Array): void {
  const count = Math.ceil(bytes.length / BLOCK_BYTES);
  const isEmpty = (k: number) => bytes.subarray(k * BLOCK_BYTES, (k + 1) * BLOCK_BYTES).every((byte) => byte === 0);
  for (let k = 0; k < count;) {
    const from = k;
    while (k < count && isEmpty(k)) k++;
    const first = k;
    while (k < count && !isEmpty(k)) k++;
    if (first === k) break;
    out.u32(first - from);
    out.u32(k - first);
    const part = bytes.subarray(first * BLOCK_BYTES, k * BLOCK_BYTES);
    out.raw(part);
    out.raw(new Uint8Array((k - first) * BLOCK_BYTES - part.length));
  }
  out.u32(0);
  out.u32(0);
}

function writeNumbers(out: ByteWriter, numbers: readonly number[]): void {
  out.u32(numbers.length);
  for (const number of [...numbers].sort((a, b) => a - b)) out.u32(number);
}

function writeReference(out: ByteWriter, instance: Instance, word: number, where: () => string): void {
  if (word === 0) return out.u8(REFERENCE.NULL);
  if (word % 2 === 1) {
    out.u8(REFERENCE.I31);
    out.u32(Math.floor(word / 2));
    return;
  }
  const index = funcIndexOf(instance, word);
  if (index < 0) throw new Error(`The instance cannot be saved: ${where()} refers to an object outside the instance`);
  out.u8(REFERENCE.FUNC);
  out.u32(index);
}

/** The index of the function whose record in the instance's context is at `address`; −1 if there is none. */
export function funcIndexOf({ module, block }: Instance, address: number): number {
  const { importsOffset, functionsOffset, definedFuncs } = module.layout;
  const at = address - block.address;
  const imported = module.importedFuncCount;
  const within = (from: number, count: number) => at >= from && at < from + count * RECORD.SIZE;
  if (within(functionsOffset, definedFuncs)) return imported + Math.floor((at - functionsOffset) / RECORD.SIZE);
  return within(importsOffset, imported) ? Math.floor((at - importsOffset) / RECORD.SIZE) : -1;
}

/** Throws the error for bytes that are not a snapshot of the module. */
function refuse(why: string, offset?: number): never {
  throw new WaftError(`The snapshot cannot be restored: ${why}`, offset === undefined ? {} : { offset });
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

/**
 * Decodes a snapshot of `module`. Returns a function that makes the state for a new instance, whose limits are checked
 * when the state is applied. Throws WaftError for invalid bytes.
 */
export function readSnapshot(bytes: Uint8Array, module: CompiledModule): (instance: Instance) => InstanceState {
  requireNoImportedState(module);
  const end = bytes.length - HASH_BYTES;
  if (end < MAGIC.length || !equal(bytes.subarray(0, MAGIC.length), MAGIC)) {
    refuse("the bytes are not a waft snapshot", 0);
  }
  const reader = new ByteReader(bytes, MAGIC.length, end);
  try {
    const version = reader.u32();
    if (version !== VERSION) refuse(`it has version ${version}, but this build reads version ${VERSION}`);
    if (!equal(sha256(bytes.subarray(0, end)), bytes.subarray(end))) refuse("it is damaged: its checksum is wrong");
    if (!equal(reader.take(HASH_BYTES), moduleHash(module))) refuse("it belongs to another module");
    const content = readContent(reader, module);
    if (reader.left > 0) refuse("it has trailing bytes", reader.offset);
    return content;
  } catch (error) {
    if (error instanceof WaftError && !error.message.startsWith("The snapshot")) {
      refuse(error.message, error.place.offset);
    }
    throw error;
  }
}

function readContent(reader: ByteReader, module: CompiledModule): (instance: Instance) => InstanceState {
  const { valid, tableTypes, globalTypes } = module;
  const memories = valid.memories.map((type) => {
    const { limits } = type;
    const pages = reader.u32();
    if (pages < limits.min || (limits.max !== undefined && pages > limits.max)) {
      refuse(`a memory of ${pages} pages violates its type`, reader.offset);
    }
    return { pages, runs: readBlocks(reader, pages * pageBytes(type)) };
  });
  const tables = tableTypes.slice(valid.importedTableCount).map(({ limits, element }) => {
    const length = reader.u32();
    if (length < limits.min || (limits.max !== undefined && length > limits.max) || length > reader.left) {
      refuse(`a table of ${length} elements violates its type or exceeds the snapshot`, reader.offset);
    }
    return Array.from({ length }, () => readReference(reader, module, element));
  });
  const globals = savedGlobals(module).map((index) => {
    const { type } = globalTypes[index];
    return { index, value: isRef(type) ? readReference(reader, module, type) : reader.take(cellBytes(type)).slice() };
  });
  const droppedElems = readNumbers(reader, module.valid.elems.length);
  const droppedDatas = readNumbers(reader, module.datas.length);
  return (instance) => {
    const word = (of: Reference) => of.kind === "func" ? Number(instance.funcWord(of.index)) : of.word;
    const { region, block } = instance;
    const from = block.offset + module.layout.globalsOffset + valid.importedGlobalCount * 16;
    const cells = region.u8.slice(from, block.offset + module.layout.importsOffset);
    const view = new DataView(cells.buffer);
    for (const { index, value } of globals) {
      const at = (index - valid.importedGlobalCount) * 16;
      if (value instanceof Uint8Array) cells.set(value, at);
      else view.setBigUint64(at, BigInt(word(value)), true);
    }
    const tableWords = tables.map((elements) => Float64Array.from(elements, word));
    for (const table of module.layout.knownTables ?? []) {
      requireInitialTable(instance, table, tableWords[table - valid.importedTableCount]);
    }
    return {
      memories,
      tables: tableWords,
      globals: cells,
      droppedElems,
      droppedDatas,
    };
  };
}

/**
 * Refuses a table that code calls through without checks unless it has the contents that the module's segments specify.
 */
function requireInitialTable(instance: Instance, table: number, words: Float64Array): void {
  const initial = new Float64Array(Number(instance.module.tableTypes[table].limits.min));
  for (const elem of instance.module.valid.elems) {
    if (elem.mode.kind !== "active" || elem.mode.table !== table) continue;
    const start = Number(evaluateConst(prepareConst(elem.mode.start), instance));
    initial.set(instance.segments.evaluateElem(elem), start);
  }
  if (words.length === initial.length && words.every((word, k) => word === initial[k])) return;
  refuse(`table ${table} differs from its initial contents, which no code can change`);
}

/**
 * Reads runs of blocks of a memory of `length` bytes as copies, whose total size is bounded by the size of the
 * snapshot. The last block may have zeros beyond the length.
 */
function readBlocks(reader: ByteReader, length: number): InstanceState["memories"][number]["runs"] {
  const runs: { at: number; bytes: Uint8Array }[] = [];
  let at = 0;
  for (;;) {
    const gap = reader.u32();
    const count = reader.u32();
    if (count === 0) return runs;
    at += gap * BLOCK_BYTES;
    const bytes = reader.take(count * BLOCK_BYTES);
    const used = Math.min(bytes.length, length - at);
    if (used < bytes.length - BLOCK_BYTES + 1 || bytes.subarray(used).some((byte) => byte !== 0)) {
      refuse("its memory contents exceed its pages", reader.offset);
    }
    runs.push({ at, bytes: bytes.slice(0, used) });
    at += count * BLOCK_BYTES;
  }
}

function readNumbers(reader: ByteReader, below: number): number[] {
  const count = reader.u32();
  if (count > below) refuse("it drops more segments than the module has", reader.offset);
  return Array.from({ length: count }, () => {
    const number = reader.u32();
    if (number >= below) refuse(`the module has no segment ${number}`, reader.offset);
    return number;
  });
}

type Reference = { kind: "word"; word: number } | { kind: "func"; index: number };

/** Reads a reference of the closed type `type`. */
function readReference(reader: ByteReader, { valid }: CompiledModule, type: ValType): Reference {
  const kind = reader.u8();
  const heap = heapOf(type);
  if (kind === REFERENCE.NULL) {
    if (!isNullable(type)) refuse(`null does not have type ${valTypeName(type)}`, reader.offset);
    return { kind: "word", word: 0 };
  }
  if (kind === REFERENCE.I31) {
    const payload = reader.u32();
    // extern.convert_any keeps the word.
    const fits = heap === HEAP.i31 || heap === HEAP.eq || heap === HEAP.any || heap === HEAP.extern;
    if (!fits || payload >= 2 ** 31) refuse(`an i31 does not have type ${valTypeName(type)}`, reader.offset);
    return { kind: "word", word: payload * 2 + 1 };
  }
  if (kind !== REFERENCE.FUNC) refuse(`unknown kind of reference: ${kind}`, reader.offset);
  const index = reader.u32();
  if (index >= valid.funcTypes.length) refuse(`the module has no function ${index}`, reader.offset);
  const id = valid.canonicalIds[valid.funcTypeIndices[index]];
  if (heap !== HEAP.func && !(heap >= 0 && isSubtypeId(id, heap))) {
    refuse(`function ${index} does not have type ${valTypeName(type)}`, reader.offset);
  }
  return { kind: "func", index };
}
