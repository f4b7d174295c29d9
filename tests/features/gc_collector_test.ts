/**
 * The collector with compiled programs: liveness, reclamation and behaviour at the limits. `objects()` is the number of
 * live structures and arrays after a collection; conservative scanning of an idle stack finds nothing, so the counts
 * are exact.
 */
import assert from "node:assert/strict";
import {
  collectGarbage,
  gcStatistics,
  host,
  type Instance,
  type Module,
  NewEngine,
  TrapError,
  WasmException,
} from "../../engine/mod.ts";
import { GC_SOAK_PROGRAM } from "../../scripts/measure/gc_soak_program.ts";
import { collectGarbage as collectJavaScript } from "../support/collect_garbage.ts";

const engine = NewEngine({ verify: true });

type Exports = Record<string, (...args: unknown[]) => unknown>;

function start(
  text: string,
  imports: Record<string, Record<string, unknown>> = {},
): { instance: Instance; x: Exports } {
  const instance = engine.compile(text).instantiate({}, imports);
  return { instance, x: instance.exports as unknown as Exports };
}

/** Live objects after a collection. */
function objects(): number {
  collectGarbage();
  return gcStatistics().liveObjects;
}

function heapOf(instance: Instance) {
  return instance.internal.store.heap;
}

/** Bun's collector scans stacks conservatively and releases objects later. */
const ROUNDS = (globalThis as { Bun?: unknown }).Bun === undefined ? 2 : 10;

/** Lets the JavaScript engine collect and run its finalizers. */
async function settle(): Promise<void> {
  for (let k = 0; k < ROUNDS; k++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    collectJavaScript();
  }
  await new Promise((resolve) => setTimeout(resolve, 1));
}

const NODE = "(type $node (struct (field $value (mut i32)) (field $next (mut (ref null $node)))))";

Deno.test("allocating a gigabyte in total with ten megabytes live takes bounded memory", () => {
  const { x } = start(GC_SOAK_PROGRAM);
  x["start"](25_000);
  let allocated = 0;
  while (allocated < 1e9) allocated += Number(x["step"](500_000));
  const { heapBytes, liveBytes, collections } = gcStatistics();
  assert.ok(liveBytes > 8e6 && liveBytes < 16e6, `${liveBytes} bytes alive`);
  assert.ok(heapBytes < 60e6, `${heapBytes} bytes in blocks`);
  assert.ok(collections >= 20);
});

Deno.test("cycles are reclaimed, whether held by globals, tables or objects", async () => {
  await settle();
  const before = objects();
  const { instance, x } = start(`(module ${NODE}
    (table $t 10 anyref) (global $g (mut (ref null $node)) (ref.null $node))
    (func (export "ring") (param $n i32) (result anyref) (local $first (ref $node)) (local $last (ref null $node))
      (local.set $first (struct.new $node (i32.const 0) (ref.null $node)))
      (local.set $last (local.get $first))
      (loop $l
        (local.set $last (struct.new $node (local.get $n) (local.get $last)))
        (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (struct.set $node $next (local.get $first) (local.get $last))
      (local.get $first))
    (func (export "global") (param anyref) (global.set $g (ref.cast (ref null $node) (local.get 0))))
    (func (export "table") (param i32 anyref) (table.set $t (local.get 0) (local.get 1))))`);
  x["global"](x["ring"](99));
  x["table"](3, x["ring"](9));
  await settle();
  assert.equal(objects(), before + 110);
  x["global"](null);
  assert.equal(objects(), before + 10);
  x["table"](3, null);
  assert.equal(objects(), before);
  assert.ok(!instance.internal.closed);
});

Deno.test("an object that JavaScript holds stays live with one identity until JavaScript releases it", async () => {
  await settle();
  const before = objects();
  const { x } = start(`(module ${NODE}
    (func (export "make") (param i32) (result (ref $node))
      (struct.new $node (local.get 0) (struct.new $node (i32.const 7) (ref.null $node))))
    (func (export "next") (param (ref $node)) (result (ref null $node)) (struct.get $node $next (local.get 0)))
    (func (export "value") (param (ref $node)) (result i32) (struct.get $node $value (local.get 0))))`);
  // In a separate frame: a conservative collector (Bun's) finds stale references in this one.
  const hold = async () => {
    let held: unknown[] = [1, 2, 3].map((n) => x["make"](n));
    assert.equal(objects(), before + 6);
    assert.deepEqual(held.map((node) => x["value"](node)), [1, 2, 3]);
    assert.equal(x["next"](held[0]), x["next"](held[0]));
    assert.notEqual(held[0], held[1]);
    held = [x["next"](held[1])];
    await settle();
    assert.equal(objects(), before + 1);
    assert.equal(x["value"](held[0]), 7);
  };
  await hold();
  await settle();
  assert.equal(objects(), before);
});

Deno.test("host values in objects live as long as the objects, also within a single call", async () => {
  const { instance, x } = start(
    `(module (type $box (struct (field externref)))
      (import "h" "make" (func $make (result externref)))
      (global $g (mut (ref null $box)) (ref.null $box))
      (func (export "put") (param externref) (global.set $g (struct.new $box (local.get 0))))
      (func (export "get") (result externref) (struct.get $box 0 (global.get $g)))
      (func (export "many") (param i32)
        (loop $l
          (drop (struct.new $box (call $make)))
          (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))`,
    { h: { make: () => ({}) } },
  );
  const { handles } = instance.internal.store.thread;
  const value = { held: true };
  x["put"](value);
  x["many"](300_000);
  assert.ok(handles.size < 250_000, `${handles.size} host values are kept`);
  collectGarbage();
  assert.ok(handles.size < 10, `${handles.size} host values are kept`);
  assert.equal(x["get"](), value);
  x["put"](null);
  await settle();
  collectGarbage();
  assert.equal(handles.size, 0);
});

Deno.test("exceptions: cycles through them are reclaimed; a reachable exception keeps its payload", async () => {
  await settle();
  const before = objects();
  const { instance, x } = start(`(module
    (rec (type $box (struct (field (mut exnref)) (field i32))) (type $sig (func (param (ref null $box) i32))))
    (tag $t (export "t") (type $sig))
    (global $g (mut (ref null $box)) (ref.null $box))
    (func $catch (param (ref $box)) (result exnref)
      (block $h (result exnref)
        (try_table (catch_all_ref $h) (throw $t (local.get 0) (i32.const 5)))
        (unreachable)))
    (func (export "cycle") (local $b (ref $box))
      (local.set $b (struct.new $box (ref.null exn) (i32.const 3)))
      (struct.set $box 0 (local.get $b) (call $catch (local.get $b)))
      (global.set $g (local.get $b)))
    (func (export "read") (result i32)
      (block $h (result (ref null $box) i32)
        (try_table (catch $t $h) (throw_ref (struct.get $box 0 (global.get $g))))
        (unreachable))
      (drop) (struct.get $box 1))
    (func (export "drop") (global.set $g (ref.null $box)))
    (func (export "throw") (throw_ref (struct.get $box 0 (global.get $g)))))`);
  const { exceptions, records } = instance.internal.store.thread;
  for (let k = 0; k < 5000; k++) x["cycle"]();
  assert.equal(objects(), before + 1);
  assert.equal(exceptions.size - records.unused, 1);
  assert.equal(x["read"](), 3);
  // Only JavaScript holds the exception: its payload stays live.
  let caught: unknown;
  try {
    x["throw"]();
  } catch (error) {
    caught = error;
  }
  assert.ok(caught instanceof WasmException);
  x["drop"]();
  assert.equal(objects(), before + 1);
  const [box, number] = caught.payload;
  assert.equal(number, 5);
  assert.equal(caught.payload[0], box);
  caught = undefined;
  await settle();
  assert.equal(objects(), before + 1);
  assert.equal(typeof box, "object");
});

Deno.test("a list of two million objects is marked and reclaimed", async () => {
  await settle();
  const before = objects();
  const { x } = start(`(module ${NODE} (global $g (mut (ref null $node)) (ref.null $node))
    (func (export "build") (param i32)
      (loop $l
        (global.set $g (struct.new $node (local.get 0) (global.get $g)))
        (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
    (func (export "drop") (global.set $g (ref.null $node))))`);
  x["build"](2_000_000);
  assert.equal(objects(), before + 2_000_000);
  x["drop"]();
  assert.equal(objects(), before);
  assert.ok(gcStatistics().heapBytes < 40e6);
});

Deno.test("oversized arrays and a full heap trap, and the program stays usable", () => {
  const module: Module = engine.compile(`(module ${NODE} (type $wide (array (mut i64))) (type $bytes (array (mut i8)))
    (global $g (mut (ref null $node)) (ref.null $node))
    (func (export "wide") (param i32) (result i32) (array.len (array.new_default $wide (local.get 0))))
    (func (export "filled") (param i32) (result i32) (array.len (array.new $bytes (i32.const 7) (local.get 0))))
    (func (export "fill")
      (loop $l (global.set $g (struct.new $node (i32.const 1) (global.get $g))) (br $l)))
    (func (export "drop") (global.set $g (ref.null $node)))
    (func (export "one") (result i32) (struct.get $node $value (struct.new $node (i32.const 9) (ref.null $node)))))`);
  collectGarbage();
  const others = gcStatistics().heapBytes;
  const x = module.instantiate({ limits: { maxHeapBytes: 64 * 2 ** 20 } }).exports as unknown as Exports;
  for (const length of [-1, 2 ** 31, 2 ** 30]) assert.throws(() => x["wide"](length), /allocation size too large/);
  assert.throws(() => x["filled"](-1), TrapError);
  assert.throws(() => x["filled"](65 * 2 ** 20), /out of memory/);
  assert.equal(x["filled"](3 * 2 ** 20), 3 * 2 ** 20);
  assert.throws(() => x["fill"](), /out of memory/);
  assert.ok(gcStatistics().heapBytes <= others + 64 * 2 ** 20);
  x["drop"]();
  assert.equal(x["one"](), 9);
  for (let k = 0; k < 40; k++) assert.equal(x["filled"](30 * 2 ** 20), 30 * 2 ** 20);
});

Deno.test("recursion that allocates exhausts the stack without harm, also with frequent collections", () => {
  const { instance, x } = start(`(module ${NODE}
    (func $down (export "down") (param i32) (result i32) (local $n (ref $node))
      (local.set $n (struct.new $node (local.get 0) (ref.null $node)))
      (i32.add
        (call $down (i32.add (local.get 0) (i32.const 1)))
        (struct.get $node $value (local.get $n)))))`);
  const heap = heapOf(instance);
  assert.throws(() => x["down"](0), /call stack exhausted/);
  heap.stress(499);
  try {
    for (let k = 0; k < 3; k++) assert.throws(() => x["down"](k), /call stack exhausted/);
  } finally {
    heap.stress(0);
  }
});

Deno.test("collections at every allocation: locals, operands, parameters and results keep their referents", () => {
  const { instance, x } = start(
    `(module ${NODE} (type $pair (struct (field (ref $node)) (field (ref $node))))
      (type $list (array (mut (ref null $node))))
      (import "h" "collect" (func $collect))
      (func $leaf (param i32) (result (ref $node)) (struct.new $node (local.get 0) (ref.null $node)))
      (func $two (param i32) (result (ref $node) (ref $node))
        (call $leaf (local.get 0)) (call $leaf (i32.add (local.get 0) (i32.const 1))))
      (func $sum (param $p (ref $pair)) (param $x (ref $node)) (result i32)
        (call $collect)
        (i32.add (struct.get $node $value (local.get $x))
          (i32.mul (struct.get $node $value (struct.get $pair 0 (local.get $p)))
            (struct.get $node $value (struct.get $pair 1 (local.get $p))))))
      (func (export "run") (param $n i32) (result i32) (local $total i32) (local $all (ref $list))
        (local.set $all (array.new_default $list (i32.const 30)))
        (loop $l
          (local.set $total (i32.add (local.get $total)
            (call $sum (struct.new $pair (call $two (local.get $n))) (call $leaf (local.get $n)))))
          (array.set $list (local.get $all) (i32.rem_u (local.get $n) (i32.const 30))
            (struct.new $node (local.get $n)
              (array.get $list (local.get $all) (i32.rem_u (i32.add (local.get $n) (i32.const 7)) (i32.const 30)))))
          (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
        (local.set $n (i32.const 0))
        (loop $l
          (local.set $total (i32.add (local.get $total)
            (struct.get $node $value (array.get $list (local.get $all) (local.get $n)))))
          (br_if $l (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 30))))
        (local.get $total)))`,
    { h: { collect: collectGarbage } },
  );
  let expected = 0;
  for (let n = 60; n > 0; n--) expected += n + n * (n + 1);
  for (let n = 1; n <= 30; n++) expected += n;
  const heap = heapOf(instance);
  for (const interval of [1, 2, 3, 1000]) {
    heap.stress(interval);
    try {
      assert.equal(x["run"](60), expected);
    } finally {
      heap.stress(0);
    }
  }
});

Deno.test("frames of calls suspended on a promise are roots", async () => {
  await settle();
  const before = objects();
  let resolve = (_: number) => {};
  const { instance } = start(
    `(module ${NODE} (import "h" "wait" (func $wait (result i32)))
      (func (export "f") (param i32) (result i32) (local $n (ref $node))
        (local.set $n (struct.new $node (local.get 0) (struct.new $node (i32.const 4) (ref.null $node))))
        (i32.add (call $wait) (i32.add
          (struct.get $node $value (local.get $n))
          (struct.get $node $value (struct.get $node $next (local.get $n)))))))`,
    { h: { wait: () => new Promise<number>((r) => resolve = r) } },
  );
  const call = instance.callAsync({}, "f", 30);
  assert.equal(objects(), before + 2);
  resolve(200);
  assert.equal(await call, 234);
  assert.equal(objects(), before);
});

Deno.test("a converted reference stays live while the conversion of later arguments runs program code", () => {
  const { x } = start(`(module (func (export "f") (param externref i32) (result externref) (local.get 0))
    (func (export "g") (param externref)))`);
  const value = { the: "one" };
  const meddle = {
    valueOf: () => {
      for (let k = 0; k < 3000; k++) x["g"]({ k });
      collectGarbage();
      return 1;
    },
  };
  assert.equal(x["f"](value, meddle), value);
});

Deno.test("an instance lives as long as JavaScript shares objects that refer to its functions", async () => {
  const types = `(rec (type $f (func (result i32))) (type $box (struct (field (ref $f)))))`;
  const { x: user } = start(`(module ${types} (global $g (mut (ref null $box)) (ref.null $box))
    (func (export "put") (param (ref $box)) (global.set $g (local.get 0)))
    (func (export "call") (result i32) (call_ref $f (struct.get $box 0 (global.get $g)))))`);
  const give = () => {
    const { x } = start(`(module ${types} (memory 1) (data (i32.const 8) "\\2a")
      (func $answer (type $f) (i32.load (i32.const 8))) (elem declare func $answer)
      (func (export "box") (result (ref $box)) (struct.new $box (ref.func $answer))))`);
    user["put"](x["box"]());
  };
  give();
  for (let k = 0; k < 2; k++) {
    await settle();
    // If its context were free, these instances would reuse it.
    for (let n = 0; n < 50; n++) start('(module (func (export "f")))');
  }
  assert.equal(user["call"](), 42);
});

Deno.test("functions that JavaScript stores in objects stay live", async () => {
  const { x } = start(`(module (type $box (struct (field funcref))) (type $f (func (result i32)))
    (global $g (mut (ref null $box)) (ref.null $box))
    (func (export "put") (param funcref) (global.set $g (struct.new $box (local.get 0))))
    (func (export "call") (result i32) (call_ref $f (ref.cast (ref $f) (struct.get $box 0 (global.get $g))))))`);
  const give = () => {
    x["put"](
      start(`(module (memory 1) (data (i32.const 8) "\\07")
        (func (export "f") (result i32) (i32.load (i32.const 8))))`)
        .x["f"],
    );
  };
  give();
  for (let k = 0; k < 2; k++) {
    await settle();
    collectGarbage();
    for (let n = 0; n < 50; n++) start('(module (func (export "f")))');
  }
  assert.equal(x["call"](), 7);
});

Deno.test("host tables keep an object only while it is an element", async () => {
  await settle();
  const before = objects();
  const table = host.table("externref", 4);
  const { x } = start(
    `(module ${NODE} (import "h" "t" (table $t 4 externref))
      (func (export "put") (param i32)
        (table.set $t (local.get 0) (extern.convert_any (struct.new $node (local.get 0) (ref.null $node)))))
      (func (export "get") (param i32) (result i32)
        (struct.get $node $value (ref.cast (ref $node) (any.convert_extern (table.get $t (local.get 0)))))))`,
    { h: { t: table } },
  );
  x["put"](1);
  x["put"](2);
  assert.equal(objects(), before + 2);
  assert.equal(x["get"](2), 2);
  table.set(2, null);
  assert.equal(objects(), before + 1);
  table.set(1, table.get(2));
  assert.equal(objects(), before);
});
