/**
 * Modules whose initialization has run. In: an idle instance, and its module. Out: a module whose instances begin in
 * the state of that instance, in any engine: lengths and contents of memories and tables, and values of globals.
 * Invariant: the code does not change, and segments keep their indices; those that the instance has used or dropped are
 * empty.
 *
 * The state of the host is not part of it: open files, clocks and random numbers that the initialization has seen.
 */
import { ByteWriter } from "../../base/bytes.ts";
import { writeHeapType } from "../../binary/types.ts";
import { encodeModule } from "../../binary/encode.ts";
import { CONSTANT } from "../../wasm/constant_reader.ts";
import type { DataSegment, ElementSegment, Expr, Global, Module } from "../../wasm/module.ts";
import { F32, F64, HEAP, heapOf, I32, I64, isRef, V128, type ValType } from "../../wasm/types.ts";
import type { Instance } from "../instance/instance.ts";
import { funcIndexOf, requireNoImportedState } from "./snapshot.ts";

/** Blocks of zeros of this many bytes separate segments; more, where there would be too many segments. */
const BLOCK_BYTES = 64;
/** The maximum number of segments for one memory: engines accept 100,000 in a module. */
const MAX_SEGMENTS = 10_000;

/**
 * The binary form of a module that begins in the state of `instance`, an instance of `module`, whose exports lack those
 * named in `without`. Throws an Error that names the state that no module can have, or if the instance is not idle.
 */
export function initializedModule(instance: Instance, module: Module, without: readonly string[]): Uint8Array {
  instance.requireIdle();
  requireNoImportedState(instance.module);
  const { valid } = instance.module;
  const memories = instance.memories.slice(valid.importedMemoryCount);
  const tables = instance.tables.slice(valid.importedTableCount);
  const datas = [...module.datas.map((data, index) => remaining(instance, data, index)), ...contents(instance)];
  const { start: _, ...rest } = module;
  return encodeModule({
    ...rest,
    memories: module.memories.map((type, k) => ({
      ...type,
      limits: { ...type.limits, min: BigInt(memories[k].pages) },
    })),
    tables: module.tables.map((table, k) => ({
      ...table,
      type: { ...table.type, limits: { ...table.type.limits, min: BigInt(tables[k].length) } },
    })),
    globals: module.globals.map((global, k) => withValue(instance, global, valid.importedGlobalCount + k)),
    exports: module.exports.filter(({ name }) => !without.includes(name)),
    elems: [...[...module.elems].map((elem, index) => remainingElements(instance, elem, index)), ...elements(instance)],
    datas,
    ...(module.dataCount === undefined ? {} : { dataCount: datas.length }),
  });
}

/** A data segment as the instance can still use it. */
function remaining({ segments: { droppedDatas } }: Instance, data: DataSegment, index: number): DataSegment {
  const isUsed = data.mode.kind === "active" || droppedDatas.has(index);
  return isUsed ? { ...data, bytes: new Uint8Array(0), mode: { kind: "passive" } } : data;
}

/** An element segment as the instance can still use it; declarative ones stay, since code refers to their functions. */
function remainingElements(
  { segments: { droppedElems } }: Instance,
  elem: ElementSegment,
  index: number,
): ElementSegment {
  if (elem.mode.kind === "declarative") return elem;
  const isUsed = elem.mode.kind === "active" || droppedElems.has(index);
  if (!isUsed) return elem;
  // Code may refer to functions that only this segment declares.
  return { ...elem, mode: { kind: "declarative" } };
}

/** Segments with the contents of the instance's memories. */
function contents({ memories }: Instance): DataSegment[] {
  return memories.flatMap(({ bytes, type }, memory) => {
    for (let block = BLOCK_BYTES;; block *= 4) {
      const runs = runsOf(bytes, block);
      if (runs.length > MAX_SEGMENTS) continue;
      return runs.map(([from, to]): DataSegment => ({
        bytes: bytes.slice(from, to),
        mode: { kind: "active", memory, start: address(from, type.limits.address === I64) },
        offset: 0,
      }));
    }
  });
}

/** The runs of blocks that are not zero, without zeros at their ends: [start, end). */
function runsOf(bytes: Uint8Array, block: number): [number, number][] {
  const runs: [number, number][] = [];
  for (let at = 0; at < bytes.length;) {
    const from = nextByte(bytes, at, bytes.length);
    if (from === bytes.length) break;
    let to = from + 1;
    for (;;) {
      const next = nextByte(bytes, to, Math.min(bytes.length, to + block));
      if (next === Math.min(bytes.length, to + block)) break;
      to = next + 1;
    }
    runs.push([from, to]);
    at = to;
  }
  return runs;
}

/** The position of the first byte in [from, end) that is not zero; `end` if there is none. */
function nextByte(bytes: Uint8Array, from: number, end: number): number {
  while (from < end && bytes[from] === 0) from++;
  return from;
}

/** Segments with the elements of the instance's tables. */
function elements(instance: Instance): ElementSegment[] {
  const { module, tables } = instance;
  return tables.flatMap((table, index) => {
    if (table.length === 0) return [];
    // The module's own type: that of the table has closed types.
    const { element: type, limits } = module.valid.tableTypes[index];
    const exprs = Array.from(
      { length: table.length },
      (_, k) => reference(instance, type, table.get(k), () => `element ${k} of table ${index}`),
    );
    const start = address(0, limits.address === I64);
    return [{ type, init: { kind: "exprs", exprs }, mode: { kind: "active", table: index, start }, offset: 0 }];
  });
}

/** A global with the value that it has in the instance; those that cannot change keep their expressions. */
function withValue(instance: Instance, global: Global, index: number): Global {
  const { type: { type, mutable } } = global;
  if (!mutable) return global;
  const { region, offset } = instance.globals[index];
  if (isRef(type)) return { ...global, init: reference(instance, type, region.word(offset), () => `global ${index}`) };
  const word = (k: number) => region.i32[(offset >> 2) + k];
  const raw = (bytes: number) => region.u8.slice(offset, offset + bytes);
  const init = expression((out) => {
    if (type === V128) {
      out.u8(CONSTANT.V128_CONST >> 8);
      out.u32(CONSTANT.V128_CONST & 0xff);
      out.raw(raw(16));
      return;
    }
    out.u8(CONSTANTS.get(type)!);
    if (type === I32) out.s32(word(0));
    else if (type === I64) out.s64(word(0), word(1));
    else out.raw(raw(type === F64 ? 8 : 4));
  });
  return { ...global, init };
}

const CONSTANTS: ReadonlyMap<ValType, number> = new Map([
  [I32, CONSTANT.I32_CONST],
  [I64, CONSTANT.I64_CONST],
  [F32, CONSTANT.F32_CONST],
  [F64, CONSTANT.F64_CONST],
]);

/** The expression of the reference `word`. Throws an Error for objects, and for functions of other instances. */
function reference(instance: Instance, type: ValType, word: number, where: () => string): Expr {
  return expression((out) => {
    if (word === 0) {
      out.u8(CONSTANT.REF_NULL);
      writeHeapType(out, heapOf(type));
    } else if (word % 2 === 1 && !isExternal(type)) {
      out.u8(CONSTANT.I32_CONST);
      out.s32(Math.floor(word / 2) | 0);
      out.u8(CONSTANT.REF_I31 >> 8);
      out.u32(CONSTANT.REF_I31 & 0xff);
    } else {
      const index = word % 2 === 1 ? -1 : funcIndexOf(instance, word);
      if (index < 0) throw new Error(`No module can begin in this state: ${where()} refers to an object`);
      out.u8(CONSTANT.REF_FUNC);
      out.u32(index);
    }
  });
}

function isExternal(type: ValType): boolean {
  return heapOf(type) === HEAP.extern || heapOf(type) === HEAP.noextern;
}

function address(at: number, is64: boolean): Expr {
  return expression((out) => {
    out.u8(is64 ? CONSTANT.I64_CONST : CONSTANT.I32_CONST);
    if (is64) out.s64(at | 0, Math.floor(at / 2 ** 32));
    else out.s32(at | 0);
  });
}

function expression(write: (out: ByteWriter) => void): Expr {
  const out = new ByteWriter(24);
  write(out);
  out.u8(CONSTANT.END);
  return { bytes: out.finish(), offset: 0 };
}
