/**
 * Decides whether a cost grows linearly with a count. In: measurements of the cost for a count and for GROWTH times
 * that count. Out: both costs and the verdict.
 *
 * A quadratic action costs GROWTH² = 256 times as much for GROWTH times the count; the bound is three times the linear
 * cost. Other work on the machine only adds to a cost, so one round within the bound suffices.
 */

/** The larger count divided by the smaller. */
export const GROWTH = 16;
/** Allowance beside the linear cost, in milliseconds: garbage collection and compilation of the code under test. */
const SLACK_MS = 100;
/** Rounds before a growth counts as faulty. */
const ROUNDS = 8;

/** The costs for two counts, in milliseconds. */
export interface Growth {
  readonly small: number;
  readonly large: number;
  /** False if the larger cost was above the bound in every round. */
  readonly linear: boolean;
}

/** The growth in the first round within the bound, else in all rounds. Both functions measure the action once. */
export function growthBetween(costOfFew: () => number, costOfMany: () => number): Growth {
  let small = Infinity, large = Infinity, linear = false;
  for (let round = 0; round < ROUNDS && !linear; round++) {
    small = Math.min(costOfFew(), costOfFew());
    large = Math.min(large, costOfMany());
    linear = large <= 3 * GROWTH * small + SLACK_MS;
  }
  return { small, large, linear };
}
