/**
 * Crafted snapshots: random mutations with a corrected checksum. Each is rejected with a one-line error, or restores an
 * instance that keeps the module's types and whose code runs or traps; nothing reaches another instance.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { type Memory, NewEngine, TrapError, WaftError } from "@waft/engine";
import { randoms } from "../support/randoms.ts";

const COUNT = 600;
const HASH_BYTES = 32;

const module = NewEngine({ limits: { maxMemoryPages: 16, maxTableElements: 64 } }).compile(`(module
  (type $unary (func (param i32) (result i32)))
  (memory (export "memory") 1 8) (data (i32.const 8) "data")
  (table $any (export "any") 4 16 funcref) (table $typed 2 8 (ref null $unary))
  (global $count (mut i32) (i32.const 5)) (global $ref (mut (ref null $unary)) (ref.func $twice))
  (func $twice (type $unary) (i32.mul (local.get 0) (i32.const 2)))
  (func $other (result f64) (f64.const 1))
  (elem (table $any) (i32.const 0) func $twice $other) (elem (table $typed) (i32.const 0) (ref null $unary) (ref.func $twice))
  (elem declare func $twice)
  (func (export "indirect") (param i32) (result i32) (call_indirect $any (type $unary) (i32.const 3) (local.get 0)))
  (func (export "typed") (param i32) (result i32) (call_ref $unary (i32.const 3) (table.get $typed (local.get 0))))
  (func (export "global") (result i32) (call_ref $unary (i32.const 3) (global.get $ref)))
  (func (export "load") (param i32) (result i32) (i32.load (local.get 0))))`);

function sign(bytes: Uint8Array): Uint8Array {
  const end = bytes.length - HASH_BYTES;
  bytes.set(createHash("sha256").update(bytes.subarray(0, end)).digest(), end);
  return bytes;
}

Deno.test(`${COUNT} crafted snapshots are refused or keep the types of the module`, () => {
  const original = module.instantiate().snapshot();
  const bystander = module.instantiate();
  const random = randoms(0x5eed);
  let refused = 0;
  for (let k = 0; k < COUNT; k++) {
    const bytes = original.slice();
    // Mutate mostly after magic, version and module hash, because each of these has its own rejection.
    const from = k % 10 === 0 ? 0 : bytes.length - HASH_BYTES - 120;
    for (let change = 0; change <= random(3); change++) {
      bytes[from + random(bytes.length - HASH_BYTES - from)] = [0, 1, 2, 255, random(256)][random(5)];
    }
    try {
      const instance = module.restore(sign(bytes));
      for (const [name, at] of [["indirect", 0], ["indirect", 1], ["typed", 0], ["typed", 1], ["global", 0]] as const) {
        try {
          assert.equal(typeof instance.call({}, name, at), "number");
        } catch (error) {
          assert.ok(error instanceof TrapError, `${k} ${name}: ${error}`);
        }
      }
      const { byteLength } = instance.exports["memory"] as Memory;
      assert.throws(() => instance.call({}, "load", byteLength), TrapError);
      instance.close();
    } catch (error) {
      assert.ok(error instanceof WaftError || error instanceof RangeError, `${k}: ${error}`);
      assert.doesNotMatch(error.message, /\n/);
      refused++;
    }
  }
  assert.ok(refused > COUNT / 10 && refused < COUNT, `${refused} of ${COUNT} refused`);
  assert.deepEqual([bystander.call({}, "indirect", 0), bystander.call({}, "load", 8)], [6, 0x61746164]);
});
