/**
 * Checkpoints of instances whose parts JavaScript holds on to, such as the views and functions of an interpreter's
 * glue. In: idle instances. Out: a copy of their memories, tables, globals, segments and objects, those that they
 * import included, which is written back in place.
 *
 * Invariant: nothing that JavaScript or another instance may know becomes invalid. Memories and tables keep their
 * length, and buffers stay attached; pages and elements added since the checkpoint are zeros and nulls afterwards.
 */
import { isNullable, isRef } from "../../wasm/types.ts";
import type { Memory } from "../memory/memory.ts";
import type { Global } from "./global.ts";
import type { Instance } from "./instance.ts";
import { requireResettable, usedLength } from "./instance_state.ts";
import { SharedObjectsError } from "./instance_pool.ts";
import { ObjectGraph } from "./object_graph.ts";
import type { SegmentsState } from "./segments.ts";
import type { Table } from "./table.ts";

/** Bytes of a global's cell. */
const CELL_BYTES = 16;

/** The segments of an instance. */
interface InstanceSegments {
  readonly instance: Instance;
  readonly state: SegmentsState;
}

export class Checkpoint {
  readonly #memories: readonly { readonly memory: Memory; readonly bytes: Uint8Array }[];
  readonly #tables: readonly { readonly table: Table; readonly words: Float64Array }[];
  readonly #globals: readonly { readonly global: Global; readonly cell: Uint8Array }[];
  readonly #segments: readonly InstanceSegments[];
  readonly #objects: ObjectGraph | undefined;

  /** Records the state. Throws an Error if an instance is closed, not idle, or has a shared memory. */
  constructor(instances: readonly Instance[]) {
    for (const instance of instances) requireResettable(instance, instance.memories);
    const all = new Set(instances);
    const distinct = <T>(parts: (instance: Instance) => readonly T[]) => [...new Set(instances.flatMap(parts))];
    this.#memories = distinct(({ memories }) => memories).map((memory) => ({
      memory,
      bytes: memory.bytes.slice(0, usedLength(memory.bytes)),
    }));
    this.#tables = distinct(({ tables }) => tables).map((table) => ({
      table,
      words: Float64Array.from({ length: table.length }, (_, i) => table.get(i)),
    }));
    this.#globals = distinct(({ globals }) => globals).filter(({ type }) => type.mutable).map((global) => ({
      global,
      cell: global.region.u8.slice(global.offset, global.offset + CELL_BYTES),
    }));
    this.#segments = instances.map((instance) => ({ instance, state: instance.segments.capture() }));
    const [first] = instances as [Instance];
    this.#objects = ObjectGraph.copy(first.store, (visit) => this.#visitOwn(visit));
    if (this.#objects?.hasObjects === true && instances.some((instance) => instance.sharesReferences(all))) {
      throw new SharedObjectsError(
        "The instances share objects with another instance, which a checkpoint would change",
      );
    }
    first.saved.add(new WeakRef(this));
  }

  /** Writes the state back. Throws an Error if an instance is closed or not idle. */
  restore(): void {
    for (const { instance } of this.#segments) requireResettable(instance, instance.memories);
    for (const { memory, bytes } of this.#memories) {
      const now = memory.bytes;
      now.set(bytes);
      // Pages that were never written stay without memory.
      now.fill(0, bytes.length, Math.max(bytes.length, usedLength(now)));
    }
    for (const { table, words } of this.#tables) {
      words.forEach((word, k) => table.set(k, word));
      if (!isNullable(table.type.element)) continue;
      for (let k = words.length; k < table.length; k++) table.set(k, 0);
    }
    for (const { global: { region, offset }, cell } of this.#globals) region.u8.set(cell, offset);
    for (const { instance, state } of this.#segments) instance.segments.restore(state);
    const [{ instance: { store } }] = this.#segments as [InstanceSegments];
    this.#objects?.restore(store);
  }

  /** Visits every reference in the recorded state. */
  visit(visit: (word: number) => void): void {
    this.#visitOwn(visit);
    this.#objects?.visit(visit);
  }

  #visitOwn(visit: (word: number) => void): void {
    for (const { words } of this.#tables) for (const word of words) if (word !== 0) visit(word);
    for (const { state } of this.#segments) for (const words of state.elemWords.values()) words.forEach(visit);
    for (const { global: { type }, cell } of this.#globals) {
      if (!isRef(type.type)) continue;
      const [low, high] = new Uint32Array(cell.buffer, cell.byteOffset, 2) as unknown as [number, number];
      const word = low + high * 0x1_0000_0000;
      if (word !== 0) visit(word);
    }
  }
}
