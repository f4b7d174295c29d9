/**
 * Captures, restores and resets the state that an idle instance defines: memories, tables, globals, segments, and the
 * objects that it can reach. Imports belong to other owners and are unaffected. `applyState` restores a captured
 * record; `rebuild` (initial_state.ts) restores the module's initial state without a record, but not the effects of a
 * start function.
 */
import { type InstanceState, visitState } from "./captured_state.ts";
import { rebuild } from "./initial_state.ts";
import type { Instance } from "./instance.ts";
import type { Memory } from "../memory/memory.ts";
import { SharedObjectsError } from "./instance_pool.ts";
import { ObjectGraph } from "./object_graph.ts";

/** The length up to the last word that is not zero; the whole length, if the last bytes do not fill a word. */
export function usedLength(bytes: Uint8Array): number {
  const words = new BigUint64Array(bytes.buffer, bytes.byteOffset, Math.floor(bytes.length / 8));
  if (bytes.subarray(words.length * 8).some((byte) => byte !== 0)) return bytes.length;
  let count = words.length;
  while (count > 0 && words[count - 1] === 0n) count--;
  return count * 8;
}

/** Captures the state of an instance, without the contents of objects that it refers to. */
export function captureState(instance: Instance): InstanceState {
  const { module: { valid }, memories, tables, block, region } = instance;
  const from = globalsOffset(instance);
  return {
    memories: memories.slice(valid.importedMemoryCount).map((memory) => ({
      pages: memory.pages,
      runs: [{ at: 0, bytes: memory.bytes.slice(0, usedLength(memory.bytes)) }],
    })),
    tables: tables.slice(valid.importedTableCount).map((table) =>
      Float64Array.from({ length: table.length }, (_, i) => table.get(i))
    ),
    globals: region.u8.slice(from, block.offset + instance.module.layout.importsOffset),
    droppedElems: [...instance.segments.droppedElems],
    droppedDatas: [...instance.segments.droppedDatas],
  };
}

/** The offset of the first defined global's cell. */
function globalsOffset({ block, module }: Instance): number {
  return block.offset + module.layout.globalsOffset + module.valid.importedGlobalCount * 16;
}

/**
 * Restores a state captured from the instance or, in a snapshot, from another instance of its module. Throws RangeError
 * if a memory or table cannot grow to its captured size.
 */
export function applyState(instance: Instance, state: InstanceState): void {
  const { module: { valid }, memories, tables, region } = instance;
  state.memories.forEach(({ pages, runs }, i) => {
    const memory = memories[valid.importedMemoryCount + i];
    memory.reset();
    if (memory.hasImage) memory.bytes.fill(0);
    if (pages > memory.pages && memory.grow(pages - memory.pages) < 0) {
      throw new RangeError(`Out of memory: memory ${valid.importedMemoryCount + i} cannot have ${pages} pages`);
    }
    const { bytes } = memory;
    for (const run of runs) bytes.set(run.bytes, run.at);
  });
  const defined = tables.slice(valid.importedTableCount);
  state.tables.forEach((words, i) => {
    const table = defined[i];
    if (words.length > table.length && table.grow(words.length - table.length, 0) < 0) {
      throw new RangeError(
        `Out of memory: table ${valid.importedTableCount + i} cannot have ${words.length} elements`,
      );
    }
  });
  // Nothing below fails: code of others, which may go on to call functions of the instance, finds no other state.
  state.tables.forEach((words, i) => defined[i].restore(words));
  region.u8.set(state.globals, globalsOffset(instance));
  instance.segments.restore(state);
  state.objects?.restore(instance.store);
}

/** Records the current state, which a reset restores. Throws an Error if the instance cannot be reset. */
export function checkpointInstance(instance: Instance): void {
  requireResettable(instance);
  captureStart(instance);
}

/** Records the current state of a new instance, which a reset restores, with the contents of its objects. */
export function captureStart(instance: Instance): void {
  const state = { ...captureState(instance), ...instance.segments.capture() };
  const roots = (visit: (word: number) => void) => visitState(instance.module, state, visit);
  instance.startState = { ...state, objects: ObjectGraph.copy(instance.store, roots) };
}

/**
 * Throws an Error if `instance` is closed, not idle, recorded, or if one of `memories`, by default those that it
 * defines, is shared.
 */
export function requireResettable(
  instance: Instance,
  memories: readonly Memory[] = instance.memories.slice(instance.module.valid.importedMemoryCount),
): void {
  instance.requireIdle();
  if (instance.recorder !== undefined) throw new Error("The instance is recorded: it cannot be reset");
  if (memories.some(({ type }) => type.shared)) {
    throw new Error("The instance has a shared memory, which other threads may be using: it cannot be reset");
  }
}

/**
 * Throws unless every table, after a reset, has the length that the imports of other instances require: their code
 * relies on it, and may know the length of a table that cannot grow.
 */
function requireLengths({ tables, module: { valid, tableTypes }, startState }: Instance): void {
  const first = valid.importedTableCount;
  for (let i = first; i < tables.length; i++) {
    if (tables[i].users.size < 2) continue;
    const length = startState?.tables[i - first].length ?? Number(tableTypes[i].limits.min);
    const least = tables[i].leastLength();
    if (least <= length) continue;
    throw new SharedObjectsError(
      `Another instance imports table ${i} with at least ${least} elements, but it would have ${length}: the instance ` +
        "cannot be reset",
    );
  }
}

/**
 * Resets everything that the instance defines to its state after instantiation. Throws an Error if it cannot be reset.
 * An instance that it has begun to reset is closed if that fails.
 */
export function resetInstance(instance: Instance): void {
  requireResettable(instance);
  const { module: { valid }, startState } = instance;
  if (startState === undefined && valid.start !== undefined) {
    throw new Error("The instance has a start function: instantiate it with { resettable: true } to reset it");
  }
  if (startState?.objects?.hasObjects === true && instance.sharesReferences()) {
    throw new SharedObjectsError("The instance shares objects with another instance: it cannot be reset");
  }
  requireLengths(instance);
  try {
    if (startState === undefined) rebuild(instance);
    else applyState(instance, startState);
  } catch (error) {
    instance.close();
    throw error;
  }
}
