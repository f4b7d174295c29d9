/** Pending work advances at calls, often enough, and the more rarely the shorter the calls are. */
import assert from "node:assert/strict";
import { NewEngine } from "../../engine/mod.ts";

const PROGRAM = `(module
  (import "env" "host" (func $host))
  (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
  (func (export "repeat") (param $times i32)
    (loop $again
      (call $host)
      (br_if $again (local.tee $times (i32.sub (local.get $times) (i32.const 1)))))))`;

const CALLS = 10_000;

interface Exports {
  add(a: number, b: number): number;
  repeat(times: number): void;
}

const instance = NewEngine({ tier: "baseline" }).compile(PROGRAM).instantiate({}, { env: { host: () => {} } });
const { add, repeat } = instance.exports as unknown as Exports;

/** Runs `calls` while work is pending; returns how often that advances if each reading of the clock adds `stepMs`. */
function advancesDuring(calls: () => void, stepMs: number, eager = false): number {
  const { thread } = instance.internal.store;
  const { clock } = thread.limits;
  let time = 0;
  let advances = 0;
  let isPending = true;
  thread.limits.clock = () => time += stepMs;
  try {
    thread.attention.addWork({
      eager,
      advance: () => {
        advances++;
        return isPending ? Infinity : undefined;
      },
    });
    calls();
    return advances;
  } finally {
    isPending = false;
    thread.attention.advance();
    thread.limits.clock = clock;
  }
}

function callOften(): void {
  for (let k = 0; k < CALLS; k++) assert.equal(add(k, 1), k + 1);
}

Deno.test("pending work advances at one of 32 calls; if calls are short, at one of 512", () => {
  assert.equal(advancesDuring(callOften, 1), Math.ceil(CALLS / 32));
  assert.equal(advancesDuring(callOften, 0), 24); // calls 1, 33, 65, 129, 257, 513, 1025, 1537, …
  assert.equal(advancesDuring(callOften, 1), Math.ceil(CALLS / 32));
});

Deno.test("pending work advances at host calls as at calls", () => {
  assert.equal(advancesDuring(() => repeat(CALLS), 1), Math.ceil((CALLS + 1) / 32));
  assert.ok(advancesDuring(() => repeat(CALLS), 0) <= 25);
});

Deno.test("eager work advances at each call", () => {
  assert.equal(advancesDuring(callOften, 1, true), CALLS);
  assert.equal(advancesDuring(callOften, 0, true), CALLS);
});
