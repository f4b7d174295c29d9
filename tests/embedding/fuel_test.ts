/** Fuel of bulk instructions with lengths of 64 bits: in both tiers, under limits and without one. */
import assert from "node:assert/strict";
import { NewEngine, TrapError } from "@waft/engine";

const TEXT = `(module (table i64 1 10 funcref) (memory i64 1 1)
  (func (export "grow") (param i64) (result i64) (table.grow 0 (ref.null func) (local.get 0)))
  (func (export "fill") (param i64) (memory.fill (i64.const 0) (i32.const 0) (local.get 0))))`;
const MUCH = 10n ** 12n;

for (const tier of ["optimizing", "baseline"] as const) {
  const instance = NewEngine({ fuel: true, tier }).compile(TEXT).instantiate();

  Deno.test(`lengths that no table has do not use up the fuel of calls without a limit: ${tier}`, () => {
    for (let k = 0; k < 100; k++) assert.equal(instance.call({}, "grow", -1n), -1n);
    assert.equal(instance.call({}, "grow", 1n << 62n), -1n);
  });

  Deno.test(`a unit of fuel per 64 bytes of the low 38 bits of a length: ${tier}`, () => {
    const used = (length: bigint, traps: boolean) => {
      const context = { fuel: MUCH };
      const call = () => instance.call(context, "fill", length);
      if (traps) assert.throws(call, (error) => error instanceof TrapError && error.code === "memory-out-of-bounds");
      else call();
      return MUCH - context.fuel;
    };
    const own = used(0n, false);
    assert.equal(used(65_536n, false) - own, 1024n);
    assert.equal(used((1n << 38n) - 1n, true) - own, (1n << 32n) - 1n);
    assert.equal(used(1n << 63n, true) - own, 0n);
  });
}
