/**
 * The number of memories and tables of a component's core instances. In: a decoded component. Out: upper bounds, by
 * which a host divides a limit for the whole component. Invariant: no instantiation of the component has more.
 */
import { decodeModule } from "@waft/engine/internal/binary/decode";
import type { Component, Definition } from "../model/definitions.ts";

/** Memories and tables that are defined, not imported. */
interface StorageCount {
  readonly memories: number;
  readonly tables: number;
}

/** Greater numbers of core instances count as infinity. */
const MOST = 1e6;

/** Counts the memories and tables of an instance of `component`; infinity if no bound is known. */
export function countStorage(component: Component): StorageCount {
  const largest = largestModule(component);
  const { instances } = countInstances(component, 0);
  const times = (each: number) => each === 0 ? 0 : instances * each;
  return { memories: times(largest.memories), tables: times(largest.tables) };
}

/** The greatest numbers that one core module of the component defines; a core instance may be one of any of them. */
function largestModule({ definitions }: Component): StorageCount {
  const counts = definitions.map(storageOf);
  return {
    memories: Math.max(0, ...counts.map(({ memories }) => memories)),
    tables: Math.max(0, ...counts.map(({ tables }) => tables)),
  };
}

function storageOf(definition: Definition): StorageCount {
  if (definition.kind === "component") return largestModule(definition.component);
  if (definition.kind !== "core module") return { memories: 0, tables: 0 };
  const { memories, tables } = decodeModule(definition.bytes);
  return { memories: memories.length, tables: tables.length };
}

/**
 * The core instances of an instance of `component`, and of one of the largest component known after it. A component
 * that is instantiated may be an alias of any that precedes it, so each instance counts as one of the largest so far.
 */
function countInstances(component: Component, before: number): { instances: number; largest: number } {
  let largest = before;
  let instances = 0;
  for (const definition of component.definitions) {
    if (definition.kind === "component") {
      largest = Math.max(largest, countInstances(definition.component, largest).largest);
    } else if (definition.kind === "core instance" && definition.expr.kind === "instantiate") instances++;
    else if (definition.kind === "instance" && definition.expr.kind === "instantiate") instances += largest;
    // The argument may be defined later, and so be larger than all components so far.
    else if (definition.kind === "import" && definition.type.kind === "component") instances = Infinity;
  }
  if (instances > MOST) instances = Infinity;
  return { instances, largest: Math.max(largest, instances) };
}
