/** The order in which threads start, and the end of the queue. */
import assert from "node:assert/strict";
import { StartQueue } from "./start_queue.ts";

Deno.test("few items start at once, and the others in order", async () => {
  const started: number[] = [];
  const queue = new StartQueue<number>(2, (item) => void started.push(item));
  for (let k = 0; k < 5; k++) queue.add(k);
  assert.deepEqual(started, [0, 1]);
  queue.ended();
  assert.deepEqual(started, [0, 1, 2]);
  let isClosed = false;
  const closed = queue.close().then(() => isClosed = true);
  queue.ended();
  await Promise.resolve();
  assert.ok(!isClosed, "an item is still starting");
  queue.ended();
  await closed;
  assert.deepEqual(started, [0, 1, 2]);
});

Deno.test("a queue in which nothing starts closes at once", async () => {
  await new StartQueue<number>(1, () => {}).close();
});
