/**
 * Facts of the verifier where two paths meet: the outcome of a test for null, which is 1 on the path where the
 * reference is null, and on the other path the outcome of the next test; the type of an object that nothing refers to.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import { Facts, MAX32 } from "../../engine/verify/facts.ts";
import { SavedFacts } from "../../engine/verify/joins.ts";
import { VALUE } from "../../engine/verify/value_kinds.ts";
import { HEAP } from "../../engine/wasm/types.ts";

const REFERENCE = 0, OUTCOME = 1, NAMES = 1000, BLOCK = 0;

function pathOf(heap: number, set: (facts: Facts) => void): Facts {
  const facts = new Facts();
  for (let l = 0; l < facts.count; l++) facts.forget(l);
  facts.set(REFERENCE, VALUE.REFERENCE, heap, 0, 0, NAMES - 1);
  set(facts);
  return facts;
}

/** A path on which the outcome is from `low` to 1, and the reference of type `heap`. */
function withNumber(heap: number, low: number): Facts {
  return pathOf(heap, (facts) => facts.number(OUTCOME, low, 1, NAMES - 2));
}

/** A path on which the outcome is that of a test of the reference. */
function withTest(): Facts {
  return pathOf(HEAP.any, (facts) => {
    facts.set(OUTCOME, VALUE.TYPE_TEST, NAMES - 1, HEAP.struct, HEAP.struct, NAMES - 3);
  });
}

/** The kind of the outcome behind both paths, and whether it passes null. */
function outcomeBehind(first: Facts, second: Facts): [kind: number, orNull: number] {
  const saved = new SavedFacts();
  saved.reset(1);
  saved.save(BLOCK, first, NAMES, false);
  saved.join(BLOCK, second, false);
  const facts = new Facts();
  saved.load(BLOCK, facts);
  return [facts.kind[OUTCOME], facts.orNull[OUTCOME]];
}

Deno.test("a test for null is joined with the next test of the reference", () => {
  deepEqual(outcomeBehind(withNumber(HEAP.none, 1), withTest()), [VALUE.TYPE_TEST, 1]);
  deepEqual(outcomeBehind(withTest(), withNumber(HEAP.none, 1)), [VALUE.TYPE_TEST, 1]);
  // Here the outcome 1 says nothing of the reference.
  equal(outcomeBehind(withNumber(HEAP.any, 1), withTest())[0], VALUE.NUMBER);
});

Deno.test("an outcome that may be 0 where the reference is null is joined with a test of it", () => {
  deepEqual(outcomeBehind(withNumber(HEAP.none, 0), withTest()), [VALUE.TYPE_TEST, 1]);
  deepEqual(outcomeBehind(withTest(), withNumber(HEAP.none, 0)), [VALUE.TYPE_TEST, 1]);
  for (const [first, second] of [[withNumber(HEAP.any, 0), withTest()], [withTest(), withNumber(HEAP.any, 0)]]) {
    equal(outcomeBehind(first, second)[0], VALUE.NUMBER);
  }
});

Deno.test("the outcome of a test that is joined with a number of 32 bits has 32 bits", () => {
  const highBehind = (high: number) => {
    const saved = new SavedFacts();
    saved.reset(1);
    const tested = (facts: Facts) => {
      facts.set(OUTCOME, VALUE.TYPE_TEST, NAMES - 1, HEAP.struct, HEAP.struct, NAMES - 3);
    };
    saved.save(BLOCK, pathOf(HEAP.any, tested), NAMES, false);
    saved.join(BLOCK, pathOf(HEAP.any, (facts) => facts.number(OUTCOME, 0, high, NAMES - 2)), false);
    const facts = new Facts();
    saved.load(BLOCK, facts);
    return facts.high[OUTCOME];
  };
  equal(highBehind(MAX32), MAX32);
  equal(highBehind(2 ** 33), Infinity);
});

Deno.test("an id of a type remains one where nothing refers to the object, but is about no known object", () => {
  const ID = OUTCOME;
  const aboutOther = (subject: number) => (facts: Facts) => facts.set(ID, VALUE.TYPE_ID, subject, 0, 0, NAMES - 3);
  for (const isLoop of [false, true]) {
    const saved = new SavedFacts();
    saved.reset(1);
    saved.save(BLOCK, pathOf(HEAP.any, aboutOther(NAMES - 4)), NAMES, isLoop);
    saved.join(BLOCK, pathOf(HEAP.any, aboutOther(NAMES - 5)), isLoop);
    const facts = new Facts();
    saved.load(BLOCK, facts);
    equal(facts.kind[ID], VALUE.TYPE_ID);
    const { subject } = facts;
    ok(facts.name.every((name, l) => l >= facts.count || name !== subject[ID]), "no location has the object");
    // Another path to the block loses nothing more.
    equal(saved.join(BLOCK, pathOf(HEAP.any, aboutOther(NAMES - 6)), isLoop), false);
  }
});
