/** The tasks of a component instance: microtasks that run within a host function do not run them. */
import assert from "node:assert/strict";
import { Store } from "./component_instance.ts";
import type { Thread } from "./task.ts";

/** Counts what `action` adds to the queue of microtasks. */
function microtasksOf(action: () => void): number {
  const { queueMicrotask } = globalThis;
  let count = 0;
  globalThis.queueMicrotask = (task) => {
    count++;
    queueMicrotask(task);
  };
  try {
    action();
  } finally {
    globalThis.queueMicrotask = queueMicrotask;
  }
  return count;
}

Deno.test("microtasks that run within a host function of a component leave its tasks for later", async () => {
  let runs = 0;
  const store = new Store(true, false, () => {
    runs++;
    return false;
  });
  store.enterHost(() => {
    store.current = {} as Thread;
    // A runtime that runs microtasks here must come to an end of them.
    assert.equal(microtasksOf(() => store.pump()), 0);
    store.pump();
    store.current = undefined;
  });
  assert.equal(runs, 0);
  await Promise.resolve();
  assert.equal(runs, 1);
});
