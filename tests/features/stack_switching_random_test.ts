/**
 * Random programs of stack switching (tests/fuzz/stack_programs.ts) beside their model, in all modes; `deno task
 * fuzz:stacks` runs more of them.
 */
import assert from "node:assert/strict";
import { compareStackProgram, stackEngines, stackFuel, StackTotals } from "../fuzz/stack_programs.ts";

const PROGRAMS = 160;

Deno.test(`${PROGRAMS} random programs behave as the model with generators`, () => {
  const engines = stackEngines();
  const totals = new StackTotals();
  for (let seed = 1; seed <= PROGRAMS; seed++) compareStackProgram(engines[seed % engines.length], seed, totals);
  const ends = [...totals.ends.keys()].sort();
  assert.deepEqual(ends, ["continuation already consumed", "n", "thrown n", "unhandled tag"]);
  assert.ok(totals.handled > PROGRAMS, `${totals.handled} suspensions were handled`);
});

Deno.test("random programs use the same fuel in both tiers", () => {
  let total = 0;
  for (let seed = 1; seed <= PROGRAMS / 4; seed++) {
    const fuel = stackFuel("optimizing", seed);
    assert.equal(stackFuel("baseline", seed), fuel, `seed ${seed}`);
    total += fuel;
  }
  assert.ok(total > 1000, `total consumption: ${total}`);
});
