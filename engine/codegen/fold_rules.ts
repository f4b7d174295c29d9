/**
 * Tables of fold rules. In: a backend's pairs of IR operations and their rule. Out: the rules by number of the
 * operation, as folding.ts applies them.
 */
import { OP_FLAGS } from "../ir/ops.ts";
import { foldNothing, type FoldRule } from "./folding.ts";
import type { LoweringContext } from "./lowering_context.ts";

/**
 * Fold rules by number of the IR operation, from pairs of operations and their rule; operations without one fold
 * nothing.
 */
export function foldRules<S extends LoweringContext>(
  pairs: readonly (readonly [operations: readonly number[], rule: FoldRule<S>])[],
): readonly FoldRule<S>[] {
  const rules = new Array<FoldRule<S>>(OP_FLAGS.length).fill(foldNothing);
  for (const [operations, rule] of pairs) for (const op of operations) rules[op] = rule;
  return rules;
}

/** The operations from `first` to `last`. */
export function operationRange(first: number, last: number): readonly number[] {
  return Array.from({ length: last - first + 1 }, (_, k) => first + k);
}
