/**
 * A memory trap looks only at the instance that trapped. Reading the weak references of the others would take time in
 * proportion to their number, and keep closed ones from being collected until the event loop's current job ends.
 */
import assert from "node:assert/strict";
import { type Module, NewEngine, TrapError } from "@waft/engine";

const TEXT = `(module (memory 1) (func (export "read") (param i32) (result i32) (i32.load (local.get 0))))`;

/** The number of weak references that a trap reads with `count` older instances. */
function referencesRead(module: Module, count: number): number {
  const others = Array.from({ length: count }, () => module.instantiate());
  const trapping = module.instantiate();
  const { deref } = WeakRef.prototype;
  let reads = 0;
  WeakRef.prototype.deref = function (this: WeakRef<WeakKey>) {
    reads++;
    return deref.call(this);
  };
  try {
    assert.throws(
      () => trapping.call({}, "read", -4),
      (error: unknown) => error instanceof TrapError && error.access?.address === 2 ** 32 - 4,
    );
  } finally {
    WeakRef.prototype.deref = deref;
  }
  for (const instance of [trapping, ...others]) instance.close();
  return reads;
}

Deno.test("a memory trap reads as few weak references with many instances as with one", () => {
  const module = NewEngine().compile(TEXT);
  const few = referencesRead(module, 1);
  const many = referencesRead(module, 200);
  assert.ok(many <= few + 2, `${few} with one other instance, ${many} with 200`);
});
