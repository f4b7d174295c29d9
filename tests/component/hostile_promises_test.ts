/** Promises of host functions of components that cannot be awaited: an exception in the call, and the store goes on. */
import assert from "node:assert/strict";
import { NewEngine } from "@waft/engine";
import { compileComponent } from "../../component/mod.ts";
import { componentToBinary } from "../../component/text/parse_component.ts";

const COMPONENT = `(component
  (import "ask" (func $ask (result u32)))
  (import "try" (func $try (result (result u32 (error string)))))
  (import "later" (func $later async (result u32)))
  (core module $memory (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 64)))
  (core instance $memory (instantiate $memory))
  (alias core export $memory "memory" (core memory $bytes))
  (alias core export $memory "realloc" (core func $realloc))
  (core module $m
    (import "i" "memory" (memory 1))
    (import "i" "ask" (func $ask (result i32)))
    (import "i" "try" (func $try (param i32)))
    (import "i" "later" (func $later (result i32)))
    (import "i" "return" (func $return (param i32)))
    (func (export "ask") (result i32) (call $ask))
    (func (export "try") (result i32) (call $try (i32.const 0)) (i32.load8_u (i32.const 0)))
    (func (export "later") (call $return (call $later))))
  (core func $ask (canon lower (func $ask)))
  (core func $later (canon lower (func $later)))
  (core func $try (canon lower (func $try) (memory $bytes) (realloc $realloc)))
  (core func $return (canon task.return (result u32)))
  (core instance $i (instantiate $m (with "i" (instance (export "memory" (memory $bytes))
    (export "ask" (func $ask)) (export "try" (func $try)) (export "later" (func $later))
    (export "return" (func $return))))))
  (func (export "ask") (result u32) (canon lift (core func $i "ask")))
  (func (export "try") (result u32) (canon lift (core func $i "try")))
  (func (export "later") async (result u32) (canon lift (core func $i "later") async)))`;

const component = compileComponent(NewEngine(), componentToBinary(COMPONENT));

/** A promise whose property `constructor` or `then` throws. */
function awkward(name: "constructor" | "then"): Promise<number> {
  return Object.defineProperty(Promise.resolve(3), name, {
    get: () => {
      throw new SyntaxError(name);
    },
  });
}

Deno.test("a promise whose constructor throws ends the call with that error", async () => {
  let value: () => unknown = () => awkward("constructor");
  const make = () => component.instantiate({}, { ask: () => value(), try: () => value(), later: () => value() });
  for (let round = 0; round < 100; round++) {
    await assert.rejects(make().callAsync({}, "ask"), { name: "SyntaxError" });
    await assert.rejects(make().callAsync({}, "try"), { name: "SyntaxError" });
    await assert.rejects(make().callAsync({}, "later"), { name: "SyntaxError" });
  }
  value = () => awkward("then");
  assert.equal(await make().callAsync({}, "ask"), 3);
  assert.equal(await make().callAsync({}, "try"), 0);
  assert.equal(await make().callAsync({}, "later"), 3);
});
