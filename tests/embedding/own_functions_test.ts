/**
 * Instances whose tables hold functions that JavaScript put there: they are collected with their tables. In: instances
 * that nothing refers to any more. Out: the number of open instances after a collection.
 */
import assert from "node:assert/strict";
import { NewEngine } from "../../engine/mod.ts";
import { realmStore } from "../../engine/runtime/realm_store.ts";
import { settle } from "../support/collect_garbage.ts";

const COUNT = 40;

const MODULE = NewEngine().compile(`(module
  (table (export "table") 4 funcref) (global (export "global") (mut funcref) (ref.null func))
  (func (export "f") (result i32) (i32.const 7))
  (func (export "keep") (param funcref) (table.set (i32.const 2) (local.get 0))))`);

interface Exports {
  readonly table: { get(index: number): unknown; set(index: number, value: unknown): void };
  readonly global: { value: unknown };
  f(): number;
  keep(f: unknown): void;
}

/** The number of instances that stay open after each was put to `use`. */
async function remaining(use: (exports: Exports) => void): Promise<number> {
  await settle();
  const before = realmStore().instances.open;
  for (let i = 0; i < COUNT; i++) use(MODULE.instantiate({}).exports as unknown as Exports);
  await settle();
  return realmStore().instances.open - before;
}

const USES: Readonly<Record<string, (exports: Exports) => void>> = {
  "set in its own table": ({ table, f }) => table.set(1, f),
  "passed to itself": ({ keep, f }) => keep(f),
  "set in its own global": ({ global, f }) => void (global.value = f),
};

for (const [name, use] of Object.entries(USES)) {
  Deno.test(`an instance is collected after its own function was ${name}`, async () => {
    const left = await remaining(use);
    assert.ok(left < COUNT / 4, `${left} of ${COUNT} instances are left`);
  });
}

Deno.test("a table keeps the instance of a function of another instance", async () => {
  const { table } = MODULE.instantiate({}).exports as unknown as Exports;
  const put = () => table.set(1, (MODULE.instantiate({}).exports as unknown as Exports).f);
  put();
  await settle();
  assert.equal((table.get(1) as () => number)(), 7);
});
