/**
 * A Worker with its own engine, for hostile_host_test.ts. Runs all operations at once and posts the results.
 */
import { NewEngine, TrapError } from "@waft/engine";
import { serve } from "../support/test_worker.ts";

const TEXT = `(module (memory (export "m") 1) (func (export "spin") (loop (br 0)))
  (func (export "load") (param i32) (result i32) (i32.load (local.get 0)))
  (func $deep (export "deep") (param i32) (result i32) (i32.add (call $deep (local.get 0)) (i32.const 1)))
  (func (export "work") (param i32) (result i32) (local i32)
    (loop (local.set 1 (i32.add (local.get 1) (local.get 0)))
      (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))) (local.get 1)))`;

function messageOf(action: () => unknown): string {
  try {
    return `no error but ${action()}`;
  } catch (error) {
    return error instanceof TrapError ? error.message : String(error);
  }
}

serve(async () => {
  const instance = NewEngine({ interruptible: true }).compile(TEXT).instantiate();
  const answers = [];
  for (let round = 0; round < 20; round++) {
    answers.push(
      messageOf(() => instance.call({}, "load", -4)),
      messageOf(() => instance.call({}, "deep", 0)),
      messageOf(() => instance.call({ deadline: 2 }, "spin")),
      instance.call({}, "work", 1000),
      await instance.callAsync({ deadline: 600_000 }, "work", 1000),
    );
  }
  // A view posted to another thread is copied or moved; the remaining view must not refer to freed memory.
  const view = new Uint8Array((instance.exports["m"] as { buffer: ArrayBuffer }).buffer);
  view[0] = 7;
  const copy = view.slice();
  instance.close();
  return { answers, copy };
});
