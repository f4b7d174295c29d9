/**
 * Whole bodies of functions. In: a plan and a function of it. Out: the code entry, and an upper bound of its run-time
 * cost.
 */
import type { Bytes } from "../module_bytes.ts";
import { Body, type Generators } from "./body.ts";
import { pairCalls, ringCall, tailCall } from "./calls.ts";
import { sequence } from "./control.ts";
import { condition, expression } from "./expressions.ts";
import { forceFeature } from "./force.ts";
import { OP } from "./opcodes.ts";
import {
  FALL,
  type ModulePlan,
  PAIR_COST,
  PAIR_DEPTH,
  PAIR_WEIGHT,
  type PlannedFunction,
  RING_COST,
  ROUNDS,
} from "./plan.ts";
import { construct } from "./references.ts";
import { statement } from "./statements.ts";
import { consume, leaf } from "./values.ts";

const GENERATORS: Generators = { condition, construct, expression, sequence, statement };

/** Generates the body of a function, with an upper bound of its run-time cost. */
export function generateBody(plan: ModulePlan, self: PlannedFunction, budget: number): { code: Bytes; cost: number } {
  const b = new Body(plan, self, budget, GENERATORS);
  const { signature, style } = self;
  b.labels.push({ types: signature.results });
  if (style === "falling") fallGuard(b, FALL);
  if (style === "ring") {
    fallGuard(b, ROUNDS);
    b.weight = ROUNDS;
  }
  if (style === "pair") {
    fallGuard(b, PAIR_DEPTH);
    b.weight = PAIR_WEIGHT;
  }
  for (const feature of self.forced ?? []) forceFeature(b, feature);
  if (style === "endless") {
    b.weight = 2000; // no loops, no calls: this code runs in every frame of the stack
    b.statement(2);
    for (const type of signature.params) b.expression(type, 1);
    b.weight = 1;
    b.cost = 0;
    b.out.byte(OP.call).u32(self.index);
    consume(b, signature.results);
  }
  if (style === "ring") {
    for (let i = b.random.below(3); i > 0; i--) b.statement(2);
    ringCall(b);
  } else if (style === "pair") {
    if (b.random.chance(30)) b.statement(1);
    pairCalls(b);
  } else if (style === "plain" && b.has("tail-call") && b.random.chance(20)) {
    b.sequence([], b.random.between(1, 4));
    if (!tailCall(b, 2)) { for (const type of signature.results) b.expression(type, 2); }
  } else b.sequence(signature.results, b.random.between(2, 5));
  b.out.byte(OP.end);
  const own = b.cost + 5;
  const costs = { plain: own, falling: own * FALL, ring: RING_COST, pair: PAIR_COST, endless: Infinity };
  return { code: b.entry(), cost: costs[style] };
}

/** Ends the recursion unless the first argument is in 1 … `most`. */
function fallGuard(b: Body, most: number): void {
  const out = b.out;
  b.get(0);
  out.byte(0x41).s32(1).byte(0x6b).byte(0x41).s32(most).byte(0x4f); // argument − 1 ≥ most, unsigned
  out.byte(OP.if).byte(0x40);
  b.labels.push({ types: [] });
  for (const type of b.self.signature.results) leaf(b, type);
  out.byte(OP.return).byte(OP.end);
  b.labels.pop();
}
