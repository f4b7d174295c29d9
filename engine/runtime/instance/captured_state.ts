/**
 * The captured state of an idle instance, as data: its defined memories, tables, globals and segments, and the objects
 * that it can reach. instance_state.ts and snapshot.ts make such records. In: a record. Out: its references, for the
 * garbage collector.
 */
import { isRef } from "../../wasm/types.ts";
import type { CompiledModule } from "../code/compiled_module.ts";
import type { ObjectGraph } from "./object_graph.ts";

/** The state of everything that an instance defines; imports are not part of it. */
export interface InstanceState {
  /** Per defined memory: its length in pages, and its nonzero contents in runs (a single run in a captured state). */
  readonly memories: readonly { pages: number; runs: readonly { at: number; bytes: Uint8Array }[] }[];
  /** Per defined table: its words. */
  readonly tables: readonly Float64Array[];
  /** 16 bytes per defined global. */
  readonly globals: Uint8Array;
  readonly droppedElems: readonly number[];
  readonly droppedDatas: readonly number[];
  /** By index of an element segment: its references, if they had been evaluated. */
  readonly elemWords?: ReadonlyMap<number, readonly number[]>;
  /** The objects that all these references lead to. */
  readonly objects?: ObjectGraph | undefined;
}

/** Visits every reference in a captured state. */
export function visitState(module: CompiledModule, state: InstanceState, visit: (word: number) => void): void {
  for (const words of state.tables) for (const word of words) if (word !== 0) visit(word);
  for (const words of state.elemWords?.values() ?? []) words.forEach(visit);
  state.objects?.visit(visit);
  const words = new Uint32Array(state.globals.buffer, state.globals.byteOffset, state.globals.length >> 2);
  const { importedGlobalCount } = module.valid;
  module.globalTypes.slice(importedGlobalCount).forEach(({ type }, i) => {
    const word = words[i * 4] + words[i * 4 + 1] * 0x1_0000_0000;
    if (isRef(type) && word !== 0) visit(word);
  });
}
