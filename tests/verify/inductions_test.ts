/**
 * Induction variables of the verifier at the head of a loop. A location that stops following the counter loses its
 * bounds, because the back edges that were joined before left it out.
 */
import { equal, ok } from "node:assert/strict";
import { Facts } from "../../engine/verify/facts.ts";
import { SavedFacts } from "../../engine/verify/joins.ts";

const COUNTER = 0, FOLLOWER = 1, NAMES = 1000, HEAD = 0;

/** The head of a loop whose counter goes from 0 to 10, and the facts there. */
function headOfLoop(): { saved: SavedFacts; facts: Facts } {
  const saved = new SavedFacts(), facts = new Facts();
  saved.followsLoops = true;
  saved.hints = new Map([[HEAD, { counter: COUNTER, high: 10, increments: Float64Array.of(1, 1) }]]);
  saved.reset(1);
  for (let l = 0; l < facts.count; l++) facts.forget(l);
  for (const l of [COUNTER, FOLLOWER]) facts.number(l, 0, 0, 0);
  saved.save(HEAD, facts, NAMES, true);
  saved.load(HEAD, facts);
  return { saved, facts };
}

/** Joins a back edge that adds 1 to a counter below 10; `change` makes the other facts on it. */
function turn(saved: SavedFacts, change: (facts: Facts) => void): Facts {
  const facts = new Facts();
  saved.load(HEAD, facts);
  facts.boundAbove(COUNTER, 9);
  facts.shift(COUNTER, 1);
  change(facts);
  saved.join(HEAD, facts, true);
  saved.load(HEAD, facts);
  return facts;
}

Deno.test("a location that grows with the counter has its bound", () => {
  const { saved, facts } = headOfLoop();
  equal(facts.high[FOLLOWER], 10);
  equal(turn(saved, (facts) => facts.shift(FOLLOWER, 1)).high[FOLLOWER], 10);
});

Deno.test("a location that another back edge changes otherwise has the values of both", () => {
  const { saved } = headOfLoop();
  turn(saved, (facts) => facts.shift(FOLLOWER, 1));
  ok(turn(saved, (facts) => facts.number(FOLLOWER, 0, 5, NAMES - 1)).high[FOLLOWER] >= 11);
});
