/**
 * Tiering up: programs that start with baseline code and are switched over while they run give the results of optimized
 * code, wherever the switch happens.
 */
import assert from "node:assert/strict";
import { NewEngine } from "@waft/engine";
import { HANG_MS } from "../support/hang.ts";
import type { Module } from "@waft/engine";

/** Calls itself through a direct call, a table and an import, in a loop that polls. */
const PROGRAM = `(module
  (import "host" "tick" (func $tick (param i32)))
  (type $unary (func (param i64) (result i64)))
  (table $ops 2 funcref)
  (elem (table $ops) (i32.const 0) func $double $next)
  (global $calls (mut i64) (i64.const 0))
  (func $double (type $unary)
    (global.set $calls (i64.add (global.get $calls) (i64.const 1)))
    (i64.add (local.get 0) (local.get 0)))
  (func $next (type $unary) (i64.add (local.get 0) (i64.const 1)))
  (func $step (param i64 i32) (result i64)
    (i64.and (call_indirect $ops (type $unary) (call $next (local.get 0)) (i32.and (local.get 1) (i32.const 1)))
      (i64.const 0xffffffffff)))
  (func (export "work") (param $n i32) (param $ticks i32) (result i64)
    (local $x i64)
    (loop $again
      (if (local.get $ticks)
        (then (if (i32.eqz (i32.rem_u (local.get $n) (i32.const 1000))) (then (call $tick (local.get $n))))))
      (local.set $x (call $step (local.get $x) (local.get $n)))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $x))
  (func (export "trap") (param i64) (result i64) (call $step (local.get 0) (i32.div_s (i32.const 1) (i32.const 0))))
  (func (export "calls") (result i64) (global.get $calls)))`;

const IMPORTS = { host: { tick: () => {} } };

interface Exports {
  work(n: number, ticks: number): bigint;
  trap(x: bigint): bigint;
  calls(): bigint;
}

function exportsOf(module: Module): Exports {
  return module.instantiate({}, IMPORTS).exports as unknown as Exports;
}

/** Calls until the module has been switched over. Fails if that never happens. */
function untilSwitched(module: Module, call: () => void): number {
  const baseline = module.codeSize;
  let calls = 0;
  const giveUp = performance.now() + 120_000;
  while (module.codeSize === baseline) {
    call();
    calls++;
    assert.ok(performance.now() < giveUp, "optimized code never came");
  }
  return calls;
}

const EXPECTED = exportsOf(NewEngine().compile(PROGRAM)).work(5000, 0);

Deno.test("tier auto: many short calls are switched over, and give the same results", () => {
  const module = NewEngine({ tier: "auto" }).compile(PROGRAM);
  const { work, calls, trap } = exportsOf(module);
  const made = untilSwitched(module, () => assert.equal(work(5000, 0), EXPECTED));
  assert.equal(calls(), BigInt(made) * 2500n, "state survives the switch");
  for (let k = 0; k < 100; k++) assert.equal(work(5000, 0), EXPECTED);
  assert.throws(() => trap(1n), /integer divide by zero/);
});

Deno.test("tier auto: one long call is switched over at its host calls", () => {
  const module = NewEngine({ tier: "auto" }).compile(PROGRAM);
  const baseline = module.codeSize;
  let switchedAt = 0;
  const giveUp = performance.now() + 120_000;
  const stop = new Error("switched");
  const instance = module.instantiate({}, {
    host: {
      tick: (n: number) => {
        if (module.codeSize !== baseline) switchedAt = n;
        if (switchedAt > 0 || performance.now() > giveUp) throw stop;
      },
    },
  });
  assert.throws(() => (instance.exports as unknown as Exports).work(2 ** 31 - 1, 1), (error) => error === stop);
  assert.ok(switchedAt > 0, "optimized code never came");
});

Deno.test("tier auto: one long call without host calls is switched over at a poll", () => {
  const module = NewEngine({ tier: "auto" }).compile(PROGRAM);
  const baseline = module.codeSize;
  const instance = module.instantiate({}, IMPORTS);
  const { thread } = instance.internal.store;
  const seen: boolean[] = [];
  thread.attention.addWork({
    advance(now) {
      // Not at the call itself, where no frame of the module exists.
      if (thread.depth > 0) {
        module.serialize(); // switches here
        seen.push(module.codeSize !== baseline);
        return undefined;
      }
      return now + 1;
    },
  });
  const n = 20_000_000;
  const { work } = instance.exports as unknown as Exports;
  assert.equal(work(n, 0), exportsOf(NewEngine().compile(PROGRAM)).work(n, 0));
  assert.deepEqual(seen, [true]);
});

Deno.test("tier auto: serialize and share use optimized code, instances that exist are switched", () => {
  const optimized = NewEngine().compile(PROGRAM);
  const module = NewEngine({ tier: "auto" }).compile(PROGRAM);
  const { work } = exportsOf(module);
  assert.equal(work(5000, 0), EXPECTED);
  assert.deepEqual(module.serialize(), optimized.serialize());
  assert.equal(module.codeSize, optimized.codeSize);
  assert.equal(work(5000, 0), EXPECTED);
  assert.equal(exportsOf(module).work(5000, 0), EXPECTED);
});

Deno.test("tier auto: a switch while frames of old code are parked", async () => {
  const module = NewEngine({ tier: "auto" }).compile(PROGRAM);
  let entered = 0;
  const instance = module.instantiate({}, {
    host: {
      tick: () => {
        entered++;
        if (entered === 2) module.serialize(); // switches here, with frames of baseline code on the stack
        return entered === 4 ? Promise.resolve() : undefined;
      },
    },
  });
  assert.equal(await instance.callAsync({}, "work", 5000, 1), EXPECTED);
  assert.equal(entered, 5);
});

Deno.test("pending work advances at the polls of calls that have a deadline", () => {
  // Optimized code would load the word once.
  const instance = NewEngine({ tier: "baseline", interruptible: true }).compile(`(module
    (memory (export "memory") 1)
    (func (export "wait") (loop $again (br_if $again (i32.eqz (i32.load (i32.const 0)))))))`).instantiate();
  const { memory, wait } = instance.exports as unknown as { memory: { buffer: ArrayBuffer }; wait(): void };
  const { thread } = instance.internal.store;
  const isDone = new Int32Array(memory.buffer);
  let left = 5;
  thread.attention.addWork({
    advance(now, atPoll) {
      if (!atPoll) return now + 1;
      isDone[0] = 1; // ends the call
      return --left > 0 ? now + 1 : undefined;
    },
  });
  while (left > 0) {
    isDone[0] = 0;
    instance.call({ deadline: HANG_MS }, "wait"); // throws if work never advances
  }
  wait();
});
