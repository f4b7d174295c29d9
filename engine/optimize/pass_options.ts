/**
 * The optimizations that are passes, or parts of them, and how often they applied to a function. In: the keys of a
 * compilation. Out: the optimizer's view of them; and its counts by key.
 */
import type { Statistics } from "../base/statistics.ts";
import type { OptimizationSet } from "../settings/optimizations.ts";
import type { GvnOptions } from "./gvn.ts";

/** The enabled passes, by key of the `optimizations` setting. */
export interface PassOptions {
  readonly gvn: GvnOptions;
  /** Key v128-const-cache. */
  readonly hoistConstants: boolean;
  /** Key loop-precheck. */
  readonly versionLoops: boolean;
  /** Key assoc-tree. */
  readonly chainTrees: boolean;
  /** Key tree-order. */
  readonly orderTrees: boolean;
  /** Key nan-bits. */
  readonly reduceNans: boolean;
}

/** How often the passes over one function applied. */
export class PassCounts {
  simplified = 0;
  forwarded = 0;
  covered = 0;
  coveredByMany = 0;
  hoistedConstants = 0;
  removedChecks = 0;
  chained = 0;
  swapped = 0;
  removedNans = 0;
}

/** The passes that `optimizations` enables. */
export function passOptions(optimizations: OptimizationSet): PassOptions {
  return {
    gvn: {
      simplify: optimizations.simplify,
      storeForward: optimizations["store-forward"],
      boundsFacts: optimizations["bounds-facts"],
      manyBounds: optimizations["multi-bounds-cert"],
    },
    hoistConstants: optimizations["v128-const-cache"],
    versionLoops: optimizations["loop-precheck"],
    chainTrees: optimizations["assoc-tree"],
    orderTrees: optimizations["tree-order"],
    reduceNans: optimizations["nan-bits"],
  };
}

/** Adds `counts` to `statistics`. */
export function countPasses(counts: PassCounts, statistics: Statistics): void {
  statistics.count("simplify", counts.simplified);
  statistics.count("store-forward", counts.forwarded);
  statistics.count("bounds-facts", counts.covered);
  statistics.count("multi-bounds-cert", counts.coveredByMany);
  statistics.count("v128-const-cache", counts.hoistedConstants);
  statistics.count("loop-precheck", counts.removedChecks);
  statistics.count("assoc-tree", counts.chained);
  statistics.count("tree-order", counts.swapped);
  statistics.count("nan-bits", counts.removedNans);
}
