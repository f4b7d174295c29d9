/**
 * Checkpoints of drop-in instances: everything that code can change comes back, in place, also after traps and growth;
 * what cannot be recorded is refused; recorded references stay alive.
 */
import assert from "node:assert/strict";
import { checkpoint, collectInstances, WebAssembly } from "../../engine/webassembly/mod.ts";
import { collectGarbage, NewEngine } from "../../engine/mod.ts";

/** The exports of a test's module: its functions and state. */
// deno-lint-ignore no-explicit-any -- as a program gets them
type Exports = Record<string, any>;

function instantiate(text: string, imports: WebAssembly.Imports = {}): WebAssembly.Instance {
  const bytes = new Uint8Array(NewEngine().parse(text).bytes);
  return new WebAssembly.Instance(new WebAssembly.Module(bytes), imports);
}

const COUNTER = `(module
  (memory (export "memory") 1 10)
  (table (export "table") 2 8 funcref)
  (global (export "total") (mut i64) (i64.const 7))
  (data $once "once")
  (elem $passive func $one)
  (elem declare func $one)
  (func $one (export "one") (result i32) (i32.const 1))
  (func (export "change") (param i32)
    (i32.store (local.get 0) (i32.const 0x01020304))
    (global.set 0 (i64.add (global.get 0) (i64.const 1)))
    (table.set (i32.const 0) (ref.func $one)))
  (func (export "initOnce") (memory.init $once (i32.const 8) (i32.const 0) (i32.const 4)) (data.drop $once))
  (func (export "elements") (table.init $passive (i32.const 1) (i32.const 0) (i32.const 1)) (elem.drop $passive))
  (func (export "grow") (result i32) (drop (table.grow (ref.func $one) (i32.const 3))) (memory.grow (i32.const 2)))
  (func (export "fail") (i32.store (i32.const 0) (i32.const -1)) (global.set 0 (i64.const -1)) (unreachable)))`;

Deno.test("memories, tables, globals and segments are as they were, and buffers stay attached", () => {
  const instance = instantiate(COUNTER);
  const { memory, table, total, one, change, initOnce, elements, fail } = instance.exports as Exports;
  change(100);
  const view = new Uint8Array(memory.buffer);
  const loaded = checkpoint(instance);
  for (let round = 0; round < 3; round++) {
    change(0);
    change(65532);
    initOnce();
    elements();
    assert.throws(() => initOnce(), WebAssembly.RuntimeError, "the segment is dropped");
    assert.throws(() => fail(), WebAssembly.RuntimeError);
    assert.deepEqual([view[0], view[8], total.value, table.get(1) === one], [255, 111, -1n, true]);
    loaded.restore();
    assert.equal(view.buffer, memory.buffer, "the buffer is the same");
    assert.deepEqual([...view.subarray(100, 104)], [4, 3, 2, 1]);
    assert.ok(view.every((byte, k) => k >= 100 && k < 104 || byte === 0), "nothing else is written");
    assert.deepEqual([total.value, table.get(0) === one, table.get(1)], [8n, true, null]);
  }
});

Deno.test("what was added since the checkpoint stays, as zeros and nulls", () => {
  const instance = instantiate(COUNTER);
  const { memory, table, change, grow } = instance.exports as Exports;
  const loaded = checkpoint(instance);
  assert.equal(grow(), 1);
  change(3 * 65536 - 4);
  const { buffer } = memory;
  loaded.restore();
  assert.equal(memory.buffer, buffer);
  assert.deepEqual([buffer.byteLength, table.length], [3 * 65536, 5]);
  assert.ok(new Uint8Array(buffer).every((byte) => byte === 0));
  assert.deepEqual([2, 3, 4].map((k) => table.get(k)), [null, null, null]);
  assert.equal(grow(), 3, "the memory goes on growing from its length");
});

Deno.test("instances of one program share a checkpoint, with the memory, table and globals that JavaScript made", () => {
  const memory = new WebAssembly.Memory({ initial: 1 });
  const table = new WebAssembly.Table({ initial: 2, element: "anyfunc" });
  const level = new WebAssembly.Global({ value: "i32", mutable: true }, 1);
  const imports = { env: { memory, table, level } };
  const imported = `(import "env" "memory" (memory 1)) (import "env" "table" (table 2 funcref))
    (import "env" "level" (global $level (mut i32)))`;
  const main = instantiate(
    `(module ${imported} (func (export "set") (param i32)
    (i32.store (i32.const 0) (local.get 0)) (global.set $level (local.get 0))))`,
    imports,
  );
  const side = instantiate(
    `(module ${imported} (global $own (mut i32) (i32.const 5))
    (func $own (export "own") (result i32) (global.set $own (i32.add (global.get $own) (i32.const 1))) (global.get $own))
    (elem declare func $own)
    (func (export "put") (table.set (i32.const 1) (ref.func $own))))`,
    imports,
  );
  const { set } = main.exports as Exports;
  const { own, put } = side.exports as Exports;
  set(3);
  const loaded = checkpoint(main, side);
  set(9);
  put();
  assert.equal(own(), 6);
  loaded.restore();
  assert.deepEqual([new Int32Array(memory.buffer)[0], level.value, table.get(1), own()], [3, 3, null, 6]);
});

Deno.test("references in a checkpoint stay alive, and objects get their contents back", () => {
  const instance = instantiate(`(module
    (type $cell (struct (field (mut i32)) (field (mut externref))))
    (global $cell (mut (ref null $cell)) (ref.null $cell))
    (global (export "host") (mut externref) (ref.null extern))
    (func (export "make") (param i32 externref) (global.set $cell (struct.new $cell (local.get 0) (local.get 1))))
    (func (export "write") (param i32) (struct.set $cell 0 (global.get $cell) (local.get 0)))
    (func (export "clear") (global.set $cell (ref.null $cell)) (global.set 1 (ref.null extern)))
    (func (export "number") (result i32) (struct.get $cell 0 (global.get $cell)))
    (func (export "value") (result externref) (struct.get $cell 1 (global.get $cell))))`);
  const { host, make, write, clear, number, value } = instance.exports as Exports;
  make(1, { name: "in the object" });
  host.value = { name: "in the global" };
  const loaded = checkpoint(instance);
  write(2);
  clear();
  for (let k = 0; k < 3; k++) collectGarbage();
  loaded.restore();
  assert.deepEqual([number(), value(), host.value], [1, { name: "in the object" }, { name: "in the global" }]);
});

Deno.test("what cannot be recorded or restored is refused", () => {
  assert.throws(() => checkpoint(), /takes the instances/);
  assert.throws(() => checkpoint({} as WebAssembly.Instance), { name: "TypeError", message: /argument 1/ });
  const shared = instantiate(`(module (memory 1 1 shared))`);
  assert.throws(() => checkpoint(shared), /shared memory/);
  let act = () => {};
  const busy = instantiate(`(module (import "env" "act" (func $act)) (memory 1) (func (export "run") (call $act)))`, {
    env: { act: () => act() },
  });
  const loaded = checkpoint(busy);
  const { run } = busy.exports as Exports;
  act = () => loaded.restore();
  assert.throws(() => run(), /The instance is not idle/);
  act = () => {};
  run();
});

Deno.test("the instances that a package makes are collected, until its promise settles", async () => {
  const bytes = new Uint8Array(NewEngine().parse("(module)").bytes);
  const make = () => new WebAssembly.Instance(new WebAssembly.Module(bytes));
  const { result, instances } = collectInstances(make);
  assert.deepEqual(instances, [result]);
  const later = collectInstances(async () => {
    const { instance } = await WebAssembly.instantiate(bytes);
    return [instance, await WebAssembly.instantiate(new WebAssembly.Module(bytes)), make()];
  });
  const collected = await later;
  assert.deepEqual(new Set(collected.instances), new Set(collected.result));
  make();
  assert.deepEqual([instances.length, collected.instances.length], [1, 3]);
  await assert.rejects(collectInstances(() => Promise.reject(new Error("no"))), /no/);
  assert.throws(() => collectInstances(() => assert.fail("no")), /no/);
});
