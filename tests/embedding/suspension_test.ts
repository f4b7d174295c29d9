/**
 * Calls scheduled by the host: `startCall` reports the end of a call at once, and `Suspension` continues one at once.
 */
import assert from "node:assert/strict";
import { NewEngine, startCall, Suspension } from "@waft/engine";

const module = NewEngine().compile(
  `(module (import "h" "wait" (func $wait (param i32) (result i32)))
  (func (export "f") (param i32) (result i32) (i32.add (call $wait (local.get 0)) (call $wait (i32.const 100)))))`,
);

Deno.test("a suspended call continues before resume returns, in any order", () => {
  const waiting = new Map<string, Suspension>();
  const log: string[] = [];
  let current = "";
  const instance = module.instantiate({}, {
    h: {
      wait: (at: number) => {
        const suspension = new Suspension();
        waiting.set(`${current}${at}`, suspension);
        return suspension;
      },
    },
  });
  const start = (name: string, at: number) => {
    current = name;
    const f = instance.exports["f"] as () => unknown;
    startCall(f, {}, [at], (value) => log.push(`${name}=${value}`), (reason) => log.push(`${name}: ${reason}`));
  };
  start("a", 1);
  start("b", 2);
  assert.deepEqual([...waiting.keys()], ["a1", "b2"]);
  current = "a";
  waiting.get("a1")!.resume(10);
  current = "b";
  waiting.get("b2")!.resume(20);
  assert.deepEqual(log, []);
  waiting.get("b100")!.resume(3);
  assert.deepEqual(log, ["b=23"]);
  waiting.get("a100")!.fail(new Error("stop"));
  assert.deepEqual(log, ["b=23", "a: Error: stop"]);
  assert.throws(() => waiting.get("a100")!.resume(1), /only once/);
});

Deno.test("a suspension that is resumed before the host function returns does not wait", () => {
  const instance = module.instantiate({}, {
    h: {
      wait: (at: number) => {
        const suspension = new Suspension();
        suspension.resume(at + 1);
        return suspension;
      },
    },
  });
  const ends: unknown[] = [];
  startCall(
    instance.exports["f"] as () => unknown,
    {},
    [1],
    (value) => ends.push(value),
    (reason) => ends.push(reason),
  );
  assert.deepEqual(ends, [103]);
  assert.throws(() => startCall(() => 1, {}, [], () => {}, () => {}), TypeError);
});
