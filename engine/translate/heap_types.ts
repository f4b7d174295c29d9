/**
 * Subtyping of the heap types of one module, as wasm/subtype.ts defines it, on the columns of its types. In: heap types
 * whose type indices are the module's own. Out: decisions.
 */
import { ABSTRACT_MATCHES, HEAP_BOTTOM } from "../wasm/subtype.ts";
import { inexact, isExact } from "../wasm/exact_heap.ts";
import { HEAP } from "../wasm/types.ts";
import type { ModuleFacts } from "./module_facts.ts";

/** The code of the abstract heap type of row 0 of ABSTRACT_MATCHES; those of the following rows descend. */
const FIRST_ABSTRACT = HEAP.nocont;

/** Whether type `index` equals type `above` or is declared below it. */
export function isSubtypeIndex(env: ModuleFacts, index: number, above: number): boolean {
  const { canonicalIds, typeDepth, typeParent } = env;
  let type = index;
  for (let steps = typeDepth[index] - typeDepth[above]; steps > 0; steps--) type = typeParent[type];
  return canonicalIds[type] === canonicalIds[above];
}

/** The abstract heap type that `heap` is, or is right below. */
function abstractOf(env: ModuleFacts, heap: number): number {
  return heap < 0 ? heap : env.typeHeap[inexact(heap)];
}

/** Whether heap type `a` matches heap type `b`. */
export function heapMatches(env: ModuleFacts, a: number, b: number): boolean {
  if (a === b || a === HEAP_BOTTOM) return true;
  if (b === HEAP_BOTTOM) return false;
  if (a >= 0 && b >= 0) {
    if (!isExact(b)) return isSubtypeIndex(env, inexact(a), b);
    return isExact(a) && env.canonicalIds[inexact(a)] === env.canonicalIds[inexact(b)];
  }
  if (b < 0) return ((ABSTRACT_MATCHES[FIRST_ABSTRACT - abstractOf(env, a)] >> (FIRST_ABSTRACT - b)) & 1) !== 0;
  return a === bottomOf(env, b);
}

/** The top of the hierarchy of `heap`: any, func, extern, exn or cont. */
export function topHeap(env: ModuleFacts, heap: number): number {
  switch (abstractOf(env, heap)) {
    case HEAP.func:
    case HEAP.nofunc:
      return HEAP.func;
    case HEAP.extern:
    case HEAP.noextern:
      return HEAP.extern;
    case HEAP.exn:
    case HEAP.noexn:
      return HEAP.exn;
    case HEAP.cont:
    case HEAP.nocont:
      return HEAP.cont;
    default:
      return HEAP.any;
  }
}

/** The bottom of the hierarchy of `heap`: none, nofunc, noextern, noexn or nocont. */
function bottomOf(env: ModuleFacts, heap: number): number {
  switch (topHeap(env, heap)) {
    case HEAP.func:
      return HEAP.nofunc;
    case HEAP.extern:
      return HEAP.noextern;
    case HEAP.exn:
      return HEAP.noexn;
    case HEAP.cont:
      return HEAP.nocont;
    default:
      return HEAP.none;
  }
}
