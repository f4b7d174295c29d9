/**
 * 64-bit memories and tables: bounds of addresses, offsets and ranges near 2^32 and 2^64, beside 32-bit memories in
 * both modes, and a memory beyond 4 GiB unless the process's address space is limited. In: modules as text. Out:
 * results and traps.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { host, NewEngine } from "../../engine/mod.ts";

const MODES = ["guard", "explicit"] as const;
const MAX = 2n ** 64n - 1n;

/** Whether a resource limit of the process (ulimit -v) is too low for a memory of 5 GiB. */
function isAddressSpaceLimited(): boolean {
  const limits = existsSync("/proc/self/limits") ? readFileSync("/proc/self/limits", "utf8") : "";
  return Number(/^Max address space +(\d+)/m.exec(limits)?.[1] ?? Infinity) < 2 ** 34;
}
const LIMITED = isAddressSpaceLimited();

const ACCESSES = `
  (func (export "grow") (param i64) (result i64) (memory.grow (local.get 0)))
  (func (export "size") (result i64) (memory.size))
  (func (export "store") (param i64 i64) (i64.store (local.get 0) (local.get 1)))
  (func (export "load") (param i64) (result i64) (i64.load (local.get 0)))
  (func (export "load8") (param i64) (result i32) (i32.load8_u (local.get 0)))
  (func (export "load_far") (param i64) (result i32) (i32.load8_u offset=0x100000005 (local.get 0)))
  (func (export "load_last") (param i64) (result i32) (i32.load8_u offset=0xffffffffffffffff (local.get 0)))
  (func (export "load_32") (param i64) (result i32) (i32.load8_u offset=0xffffffff (local.get 0)))
  (func (export "fill") (param i64 i32 i64) (memory.fill (local.get 0) (local.get 1) (local.get 2)))
  (func (export "copy") (param i64 i64 i64) (memory.copy (local.get 0) (local.get 1) (local.get 2)))
  (func (export "copy_8") (param i64 i64) (memory.copy (local.get 0) (local.get 1) (i64.const 8)))
  (func (export "copy_most") (param i64 i64) (memory.copy (local.get 0) (local.get 1) (i64.const 0x500000008)))
  (func (export "init") (param i64 i32 i32) (memory.init $p (local.get 0) (local.get 1) (local.get 2)))
  (data $p "hello")`;

for (const bounds of MODES) {
  const engine = NewEngine({ bounds, verify: true });

  Deno.test(`accesses to a 64-bit memory end at its length (${bounds})`, () => {
    const instance = engine.compile(`(module (memory i64 1 4) ${ACCESSES})`).instantiate();
    const call = (name: string, ...args: unknown[]) => instance.call({}, name, ...args);
    const traps = (name: string, ...args: unknown[]) => {
      assert.throws(() => call(name, ...args), /out of bounds memory access/, `${name} ${args}`);
    };
    call("store", 65528n, -2n);
    assert.equal(call("load", 65528n), -2n);
    for (const at of [65529n, 65536n, 2n ** 32n, 2n ** 32n + 8n, 2n ** 63n, MAX - 7n, MAX]) {
      traps("load", at);
      traps("store", at, 0n);
    }
    for (const name of ["load_far", "load_last", "load_32"]) {
      for (const at of [0n, 1n, 2n, MAX]) {
        // Only the offset 2^64 − 1 wraps around to the beginning, which must trap, too.
        traps(name, at);
      }
    }
    call("fill", 65536n, 1, 0n);
    call("copy", 65536n, 0n, 0n);
    traps("fill", 65535n, 1, 2n);
    traps("fill", MAX, 1, 2n);
    traps("fill", 1n, 1, MAX);
    traps("copy", 0n, MAX, 2n);
    traps("copy", MAX, 0n, 2n);
    traps("copy_8", 65529n, 0n);
    traps("copy_8", MAX - 3n, 0n);
    traps("copy_most", 0n, 0n);
    traps("init", MAX, 0, 5);
    traps("init", 0n, 1, 5);
    call("init", 65531n, 0, 5);
    assert.equal(call("load8", 65535n), 111);
    call("copy_8", 0n, 65528n);
    assert.equal(call("load8", 7n), 111);
    assert.deepEqual([call("grow", 3n), call("grow", 1n), call("grow", MAX), call("size")], [1n, -1n, -1n, 4n]);
    assert.equal(call("load8", 7n), 111);
    assert.equal(call("load8", 4n * 65536n - 1n), 0);
  });

  Deno.test(`32-bit and 64-bit memories beside each other (${bounds})`, () => {
    const instance = engine.compile(`(module
      (memory $a 1) (memory $b i64 1) (memory $c 1 2)
      (func (export "mix") (param i32 i64) (result i32)
        (i32.store $a (local.get 0) (i32.const 3)) (i32.store $b (local.get 1) (i32.const 4))
        (i32.store $c offset=4 (local.get 0) (i32.const 5))
        (memory.copy $a $b (i32.const 100) (i64.const 0) (i32.const 50))
        (memory.copy $b $c (i64.const 200) (i32.const 0) (i32.const 50))
        (drop (memory.grow $c (i32.const 1))) (drop (memory.grow $b (i64.const 1)))
        (i32.add (i32.load $a (local.get 0)) (i32.mul (i32.load $b (local.get 1)) (i32.mul (i32.const 10)
          (i32.load $c offset=4 (local.get 0))))))
      (func (export "a") (param i32) (result i32) (i32.load $a (local.get 0)))
      (func (export "b") (param i64) (result i32) (i32.load $b (local.get 0)))
      (func (export "c") (param i32) (result i32) (i32.load $c (local.get 0))))`).instantiate();
    assert.equal(instance.call({}, "mix", 8, 16n), 203);
    assert.equal(instance.call({}, "a", 116), 4);
    assert.equal(instance.call({}, "b", 212n), 5);
    assert.equal(instance.call({}, "b", 131068n), 0);
    assert.equal(instance.call({}, "c", 131068), 0);
    assert.throws(() => instance.call({}, "a", 65533), /out of bounds/);
    assert.throws(() => instance.call({}, "b", 131069n), /out of bounds/);
    assert.throws(() => instance.call({}, "c", 131069), /out of bounds/);
    assert.throws(() => instance.call({}, "c", -1), /out of bounds/);
  });

  const name = `a memory beyond 4 GiB (${bounds})${LIMITED ? " (ignored: the address space is limited)" : ""}`;
  Deno.test(name, { ignore: LIMITED }, () => {
    const instance = engine.compile(`(module (memory i64 1) ${ACCESSES})`)
      .instantiate({ limits: { maxMemoryPages: 100_000 } });
    const call = (name: string, ...args: unknown[]) => instance.call({}, name, ...args);
    // 5 GiB of address space, of which a few pages are touched.
    assert.equal(call("grow", 81_919n), 1n);
    const end = 81_920n * 65536n;
    call("store", 2n ** 32n - 4n, 0x1122334455667788n);
    assert.equal(call("load", 2n ** 32n - 4n), 0x1122334455667788n);
    assert.equal(call("load8", 2n ** 32n), 0x44);
    assert.equal(call("load_32", 1n), 0x44);
    call("init", 2n ** 32n + 5n, 0, 5);
    assert.equal(call("load_far", 0n), 104);
    call("copy", end - 5n, 2n ** 32n + 5n, 5n);
    assert.equal(call("load8", end - 1n), 111);
    call("fill", end - 3n, 7, 3n);
    assert.equal(call("load", end - 8n), 0x07_07_07_65_68_00_00_00n);
    assert.throws(() => call("load8", end), /out of bounds/);
    assert.throws(() => call("fill", end - 3n, 7, 4n), /out of bounds/);
  });

  Deno.test(`table instructions with 64-bit indices (${bounds})`, () => {
    const instance = engine.compile(`(module
      (type $f (func (result i32)))
      (table $t i64 3 10 funcref) (elem (table $t) (i64.const 1) func $one)
      (func $one (result i32) (i32.const 1))
      (func (export "call") (param i64) (result i32) (call_indirect $t (type $f) (local.get 0)))
      (func (export "null") (param i64) (result i32) (ref.is_null (table.get $t (local.get 0))))
      (func (export "grow") (param i64) (result i64) (table.grow $t (ref.func $one) (local.get 0)))
      (func (export "size") (result i64) (table.size $t))
      (func (export "fill") (param i64 i64) (table.fill $t (local.get 0) (ref.null func) (local.get 1))))`)
      .instantiate();
    const call = (name: string, ...args: unknown[]) => instance.call({}, name, ...args);
    assert.equal(call("call", 1n), 1);
    assert.throws(() => call("call", 0n), /uninitialized element/);
    for (const at of [3n, 2n ** 32n + 1n, MAX]) {
      assert.throws(() => call("call", at), /undefined element/);
      assert.throws(() => call("null", at), /out of bounds table access/);
    }
    assert.deepEqual([call("grow", 2n ** 32n), call("grow", MAX), call("grow", 2n), call("size")], [-1n, -1n, 3n, 5n]);
    assert.equal(call("call", 4n), 1);
    assert.throws(() => call("fill", 1n, MAX), /out of bounds table access/);
    assert.throws(() => call("fill", MAX, 2n), /out of bounds table access/);
    call("fill", 0n, 5n);
    assert.equal(call("null", 4n), 1);
  });
}

Deno.test("a 32-bit memory does not match a 64-bit import", () => {
  const module = NewEngine().compile(`(module (import "m" "m" (memory i64 1)))`);
  assert.throws(() => module.instantiate({}, { m: { m: host.memory(1) } }), /incompatible import type/);
});
