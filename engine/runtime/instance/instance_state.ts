/**
 * The state of an instance at rest: what it defines itself, that is memories, tables, globals and which segments are dropped. What it
 * imports belongs to others and is not touched. Out: a record that can be put back, as it was captured (`applyState`), or the state that
 * the module prescribes (`rebuild`, which needs no record, but knows nothing of what a start function did).
 */
import { isRef } from "../../wasm/types.ts";
import type { Instance } from "./instance.ts";

/** What `captureState` returns. */
export interface InstanceState {
  /** By own memory: its length, and what in it is not 0, in runs (one alone where it was captured). */
  readonly memories: readonly { pages: number; runs: readonly { at: number; bytes: Uint8Array }[] }[];
  /** By own table: its words. */
  readonly tables: readonly Float64Array[];
  /** 16 bytes for each own global. */
  readonly globals: Uint8Array;
  readonly droppedElems: readonly number[];
  readonly droppedDatas: readonly number[];
}

/** Bytes up to the last that is not 0. */
function usedBytes(bytes: Uint8Array): Uint8Array {
  const words = new BigUint64Array(bytes.buffer, bytes.byteOffset, bytes.length >> 3);
  let count = words.length;
  while (count > 0 && words[count - 1] === 0n) count--;
  return bytes.slice(0, count * 8);
}

/** Records the state of an instance. */
export function captureState(instance: Instance): InstanceState {
  const { module: { valid }, memories, tables, block, region } = instance;
  const from = globalsOffset(instance);
  return {
    memories: memories.slice(valid.importedMemoryCount).map((memory) => ({
      pages: memory.pages,
      runs: [{ at: 0, bytes: usedBytes(memory.bytes) }],
    })),
    tables: tables.slice(valid.importedTableCount).map((table) =>
      Float64Array.from({ length: table.length }, (_, i) => table.get(i))
    ),
    globals: region.u8.slice(from, block.offset + instance.module.layout.importsOffset),
    droppedElems: [...instance.droppedElems],
    droppedDatas: [...instance.droppedDatas],
  };
}

/** Offset of the first own global's cell. */
function globalsOffset({ block, module }: Instance): number {
  return block.offset + module.layout.globalsOffset + module.valid.importedGlobalCount * 16;
}

/** Makes the instance what it was when `state` was captured, or, from a snapshot, what another instance of its module was. */
export function applyState(instance: Instance, state: InstanceState): void {
  const { module: { valid }, memories, tables, region } = instance;
  state.memories.forEach(({ pages, runs }, i) => {
    const memory = memories[valid.importedMemoryCount + i]!;
    memory.reset();
    if (memory.hasImage) memory.bytes.fill(0);
    if (pages > memory.pages && memory.grow(pages - memory.pages) < 0) {
      throw new RangeError(`Out of memory: memory ${valid.importedMemoryCount + i} cannot have ${pages} pages`);
    }
    const { bytes } = memory;
    for (const run of runs) bytes.set(run.bytes, run.at);
  });
  state.tables.forEach((words, i) => {
    const table = tables[valid.importedTableCount + i]!;
    table.reset();
    if (words.length > table.length && table.grow(words.length - table.length, 0) < 0) {
      throw new RangeError(
        `Out of memory: table ${valid.importedTableCount + i} cannot have ${words.length} elements`,
      );
    }
    words.forEach((word, k) => table.set(k, word));
  });
  region.u8.set(state.globals, globalsOffset(instance));
  setDropped(instance.droppedElems, state.droppedElems);
  setDropped(instance.droppedDatas, state.droppedDatas);
}

function setDropped(set: Set<number>, numbers: readonly number[]): void {
  set.clear();
  for (const number of numbers) set.add(number);
}

/** Visits every reference in a captured state. */
export function visitState(instance: Instance, state: InstanceState, visit: (word: number) => void): void {
  for (const words of state.tables) for (const word of words) if (word !== 0) visit(word);
  const words = new Uint32Array(state.globals.buffer, state.globals.byteOffset, state.globals.length >> 2);
  const { importedGlobalCount } = instance.module.valid;
  instance.module.globalTypes.slice(importedGlobalCount).forEach(({ type }, i) => {
    const word = words[i * 4]! + words[i * 4 + 1]! * 0x1_0000_0000;
    if (isRef(type) && word !== 0) visit(word);
  });
}
