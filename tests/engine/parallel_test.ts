/**
 * Engines that compile with several threads, as installed packages use them: another thread finds its module and
 * compiles a share, and the artifact equals the single-threaded one.
 */
import assert from "node:assert/strict";
import { NewEngine } from "@waft/engine";
import { lastShares } from "@waft/engine/internal/helper_threads";

/** A module with more than a megabyte of bodies that compiles quickly: unused constants. */
function bigModule(functions: number): string {
  const constants = "(drop (v128.const i32x4 1 2 3 4))".repeat(1200);
  const bodies = Array.from(
    { length: functions },
    (_, k) =>
      `(func (export "f${k}") (param i32) (result i32) ${constants}
      (i32.add (local.get 0) (i32.const ${k})))`,
  );
  return `(module ${bodies.join("\n")})`;
}

Deno.test({
  name: "helper threads compile a share, and the artifact equals the single-threaded one",
  // Threads stay for the next module.
  // Threads are kept for the next module.
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    const text = bigModule(60);
    const alone = NewEngine().compile(text).serialize();
    const engine = NewEngine({ tier: "optimizing", parallel: 3 });
    // A new thread first loads the compiler, and misses the first modules.
    let helped = false;
    for (let round = 0; round < 100 && !helped; round++) {
      if (round > 0) await new Promise((resolve) => setTimeout(resolve, 300));
      const module = engine.compile(text);
      assert.equal(module.instantiate().call({}, "f7", 35), 42);
      assert.deepEqual(module.serialize(), alone);
      const shares = lastShares();
      assert.deepEqual([shares.length, shares.reduce((sum, count) => sum + count, 0)], [3, 60]);
      helped = shares[1] + shares[2] > 0;
    }
    assert(helped, "no helper thread compiled a function");
  },
});

Deno.test("invalid thread counts are refused", () => {
  for (const parallel of [-1, 0.5, NaN]) assert.throws(() => NewEngine({ parallel }), RangeError);
});
