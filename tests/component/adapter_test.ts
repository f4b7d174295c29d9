/**
 * Fused adapters against calls through JavaScript: random functions, values and faults have the same effects.
 * `WAFT_ADAPTER_COUNT` is the number of calls; `deno task fuzz:adapters` makes more.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { comparable, observe } from "./adapter_pairs.ts";

const COUNT = Number(process.env["WAFT_ADAPTER_COUNT"] ?? 200);

Deno.test("random calls have the same effects through an adapter and through JavaScript", () => {
  const traps = new Set<string>();
  let returned = 0;
  for (let seed = 1; seed <= COUNT; seed++) {
    const slow = observe(seed, false);
    const fast = observe(seed, true);
    assert.ok(fast.fused, `seed ${seed}: there is an adapter`);
    assert.deepEqual(comparable(fast, slow), comparable(slow, slow), `seed ${seed}, ${slow.fault}`);
    const { throws } = slow.outcome as { throws?: string };
    if (throws === undefined) returned++;
    else traps.add(throws);
  }
  assert.ok(returned > COUNT / 3, `${returned} calls returned`);
  assert.ok(traps.size >= 8, `the traps are ${[...traps].join("; ")}`);
});
