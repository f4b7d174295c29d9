/**
 * Facts by kind of value: functions that name the columns of Facts as each kind uses them.
 */
import { commonHeap } from "./references.ts";
import { HEAP } from "../wasm/types.ts";
import { type Facts, MAX32 } from "./facts.ts";
import { NUMBER_FACTS, REFERENCE_FACTS, VALUE } from "./value_kinds.ts";

/** Facts about the number at location `l` (NUMBER_FACTS), with those that its bounds imply. */
export function numberFacts({ id, low, high }: Facts, l: number): number {
  const { ODD, ZERO_OR_ODD } = NUMBER_FACTS;
  if (low[l] > 0 && (id[l] & ZERO_OR_ODD) !== 0) return id[l] | ODD;
  if (low[l] !== high[l]) return id[l];
  return id[l] | (low[l] === 0 ? ZERO_OR_ODD : low[l] % 2 === 1 ? ODD | ZERO_OR_ODD : 0);
}

/** Whether the number at location `l` is a reference to an integer, or null. */
function isInteger31(facts: Facts, l: number): boolean {
  return facts.high[l] <= MAX32 && (numberFacts(facts, l) & NUMBER_FACTS.ZERO_OR_ODD) !== 0;
}

/** The null reference, of any hierarchy. */
const NULL_HEAP = 0;

/** The heap type of the reference at location `l`; undefined for other values. */
export function referenceHeap(facts: Facts, l: number): number | undefined {
  const { kind, id, low, high } = facts;
  if (kind[l] === VALUE.REFERENCE) return id[l];
  if (kind[l] !== VALUE.NUMBER) return undefined;
  if (low[l] === 0 && high[l] === 0) return NULL_HEAP;
  return isInteger31(facts, l) ? HEAP.i31 : undefined;
}

export function commonHeapOf(x: number, y: number): number | undefined {
  return x === NULL_HEAP ? y : y === NULL_HEAP ? x : commonHeap(x, y);
}

export function referenceFacts(facts: Facts, l: number): number {
  const { kind, low, high } = facts;
  if (kind[l] === VALUE.REFERENCE) return low[l];
  if (kind[l] === VALUE.CONTEXT) return REFERENCE_FACTS.NOT_NULL;
  if (high[l] === 0) return REFERENCE_FACTS.OBJECT | REFERENCE_FACTS.OWN;
  return (numberFacts(facts, l) & NUMBER_FACTS.ODD) !== 0 ? REFERENCE_FACTS.NOT_NULL : 0;
}

export function leastLength({ kind, high }: Facts, l: number): number {
  if (kind[l] === VALUE.REFERENCE) return high[l];
  return kind[l] === VALUE.NUMBER && high[l] === 0 ? Infinity : 0;
}

/** Location `to` becomes one of the references in `to` and `from`, without a name; false if they are not references. */
export function joinReferences(facts: Facts, to: number, from: number): boolean {
  const x = referenceHeap(facts, to), y = referenceHeap(facts, from);
  const id = x === undefined || y === undefined ? undefined : commonHeapOf(x, y);
  if (id === undefined) return false;
  const low = referenceFacts(facts, to) & referenceFacts(facts, from) & (x === y ? -1 : ~REFERENCE_FACTS.FRESH);
  facts.set(to, VALUE.REFERENCE, id, low, Math.min(leastLength(facts, to), leastLength(facts, from)), 0);
  return true;
}
