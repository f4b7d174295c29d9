/** Large programs, whose baseline code is compiled at its place, run on every host. */
import assert from "node:assert/strict";
import { NewEngine } from "@waft/engine";
import { LARGE_CODE, manyLoops } from "../support/large_programs.ts";

Deno.test("a large program runs, also when it polls", () => {
  const module = NewEngine({ interruptible: true }).compile(manyLoops(2500));
  const instance = module.instantiate();
  assert.equal(instance.call({}, "f2499", 3), 3 * (2499 * 1000 + 77));
  assert.throws(() => instance.call({ deadline: 20 }, "f2499", 0), /interrupted/);
});

Deno.test("a large program runs before and after it is optimized", () => {
  const instance = NewEngine({ tierUpCalls: 2 }).compile(manyLoops(2500)).instantiate();
  for (let call = 1; call < 5; call++) assert.equal(instance.call({}, "f7", call), call * 7077);
});

Deno.test("a program runs whose code is far larger than its bodies", () => {
  assert.equal(NewEngine().compile(LARGE_CODE).instantiate().call({}, "f", 2), 42);
});
