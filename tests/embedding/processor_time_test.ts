/**
 * Limits of processor time. Waiting, other guests and other calls do not count; running code does. No test depends on
 * how long anything takes: a guest either waits longer than its limit, or runs until it reaches the limit.
 */
import assert from "node:assert/strict";
import { type Context, NewEngine, TrapError } from "@waft/engine";

const engine = NewEngine({ interruptible: true });
const module = engine.compile(`(module
  (import "env" "wait" (func $wait (param f64)))
  (import "env" "later" (func $later (param f64)))
  (import "env" "inner" (func $inner))
  (func (export "spin") (loop (br 0)))
  (func (export "wait") (param f64) (call $wait (local.get 0)))
  (func (export "later") (param f64) (call $later (local.get 0)))
  (func (export "waitAndSpin") (param f64) (call $wait (local.get 0)) (loop (br 0)))
  (func (export "inner") (call $inner) (loop (br 0)))
  (func (export "count") (param i32) (result i32) (local i32)
    (loop
      (local.set 1 (i32.add (local.get 1) (i32.const 1)))
      (br_if 0 (i32.lt_u (local.get 1) (local.get 0))))
    (local.get 1)))`);

const CELL = new Int32Array(new SharedArrayBuffer(4));

function start(inner: () => void = () => {}) {
  return module.instantiate({}, {
    env: {
      wait: (ms: number) => void Atomics.wait(CELL, 0, 0, ms),
      later: (ms: number) => new Promise((resolve) => setTimeout(resolve, ms)),
      inner,
    },
  });
}

function trapOf(action: () => unknown): TrapError {
  try {
    action();
  } catch (error) {
    if (error instanceof TrapError) return error;
    throw error;
  }
  throw new Error("no trap");
}

const LIMIT = "the limit of 20 ms of processor time";

Deno.test("a synchronous call may wait longer than its processor time, and running code uses it up", () => {
  const instance = start();
  instance.call({}, "wait", 0); // the first call also compiles
  instance.call({ processorTime: 20 }, "wait", 100);
  const spun = trapOf(() => instance.call({ processorTime: 20 }, "spin"));
  assert.deepEqual([spun.code, spun.detail], ["interrupted", LIMIT]);
  // The wait is longer than the limit, so only the loop can use it up.
  assert.equal(trapOf(() => instance.call({ processorTime: 20 }, "waitAndSpin", 50)).detail, LIMIT);
  assert.equal(instance.call({ processorTime: 60_000 }, "count", 100_000), 100_000);
  assert.equal(instance.call({}, "count", 1000), 1000);
  // No processor time at all.
  assert.equal(trapOf(() => instance.call({ processorTime: 0 }, "spin")).code, "interrupted");
});

Deno.test("deadline and processor time: the trap names the limit that was reached", () => {
  const instance = start();
  const never = 3_600_000;
  const time = trapOf(() => instance.call({ deadline: never, processorTime: 20 }, "spin"));
  assert.equal(time.detail, LIMIT);
  const deadline = trapOf(() => instance.call({ deadline: 20, processorTime: never }, "waitAndSpin", 25));
  assert.equal(deadline.detail, "the deadline of 20 ms");
});

Deno.test("nested calls: the outer call pays for the inner one, and the smaller limit ends it", () => {
  const outer = start(() => {
    const error = trapOf(() => inner.call({ processorTime: 5 }, "spin"));
    assert.equal(error.detail, "the limit of 5 ms of processor time");
  });
  const inner = start();
  assert.equal(trapOf(() => outer.call({ processorTime: 20 }, "inner")).detail, LIMIT);
  // The outer limit ends an inner call that has a larger one, or only a deadline.
  for (const context of [{ processorTime: 3_600_000 }, { deadline: 3_600_000 }] as Context[]) {
    let seen: TrapError | undefined;
    const other = start(() => {
      seen = trapOf(() => inner.call(context, "spin"));
      throw seen;
    });
    assert.equal(trapOf(() => other.call({ processorTime: 20 }, "inner")), seen);
    assert.deepEqual([seen?.code, seen?.detail], ["interrupted", LIMIT]);
  }
});

Deno.test("an asynchronous call may be suspended longer than its processor time", async () => {
  const instance = start();
  await instance.callAsync({}, "later", 0); // the first call also compiles
  await instance.callAsync({ processorTime: 20 }, "later", 100);
  const error = await instance.callAsync({ processorTime: 20 }, "spin").catch((error) => error);
  assert.ok(error instanceof TrapError, String(error));
  assert.deepEqual([error.code, error.detail], ["interrupted", LIMIT]);
});

Deno.test("ten spinning guests do not time out thirty good ones", async () => {
  const spinning = Array.from({ length: 10 }, () => start().callAsync({ processorTime: 200 }, "spin"));
  // All share one thread, so the good calls end after the spinning ones have used seconds between them. Each good call
  // needs a few milliseconds of its own: far less than its limit, which is far less than the others use.
  const good = Array.from({ length: 30 }, () => start().callAsync({ processorTime: 1000 }, "count", 1_000_000));
  const ends = await Promise.allSettled([...spinning, ...good]);
  assert.deepEqual(ends.slice(10), good.map(() => ({ status: "fulfilled", value: 1_000_000 })));
  for (const end of ends.slice(0, 10)) {
    assert.equal(end.status === "rejected" && (end.reason as TrapError).detail, LIMIT.replace("20", "200"));
  }
});

Deno.test("processor time is refused where no code enforces it, and for values that are not milliseconds", async () => {
  const plain = NewEngine().compile(`(module (func (export "f")))`).instantiate();
  assert.throws(() => plain.call({ processorTime: 5 }, "f"), /A processorTime requires code that enforces it/);
  await assert.rejects(plain.callAsync({ processorTime: 5 }, "f"), /A processorTime requires code that enforces it/);
  const instance = start();
  for (const processorTime of [-1, NaN, "5", 5n, null]) {
    const context = { processorTime } as Context;
    assert.throws(() => instance.call(context, "wait", 0), /The context's processorTime must be milliseconds/);
    await assert.rejects(instance.callAsync(context, "wait", 0), /The context's processorTime must be milliseconds/);
  }
  assert.throws(() => instance.call({ processortime: 5 } as Context, "wait", 0), /did you mean "processorTime"\?/);
});
