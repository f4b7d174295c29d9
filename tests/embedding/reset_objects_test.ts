/**
 * Reset of instances with objects: everything that a guest can reach has the state of the recording again, contents of
 * objects included. In: guests that change all of it. Out: the state after resets, and the errors of resets that fail.
 */
import assert from "node:assert/strict";
import { collectGarbage, type Instance, NewEngine, TrapError } from "../../engine/mod.ts";
import { realmStore } from "../../engine/runtime/realm_store.ts";

type Functions = Record<string, (...args: unknown[]) => unknown>;

const engine = NewEngine();
const functions = (instance: Instance) => instance.exports as Functions;

/** Each state has a number 1, which "change" makes 2 and more; "look" returns the numbers. */
const TEXT = `(module
  (type $s (struct (field $n (mut i32)) (field $next (mut (ref null $s)))))
  (type $a (array (mut i8))) (type $r (array (mut (ref null $s)))) (type $x (array (mut externref)))
  (type $f (func (result i32)))
  (import "h" "v" (global $v externref))
  (tag $t (param (ref $s)))
  (memory 1 4) (data (i32.const 0) "\\01") (data $late "\\01")
  (table $funcs 1 8 funcref) (table $objects 2 8 (ref null $s)) (table $externs 1 externref) (table $exns 1 exnref)
  (global $one (mut i32) (i32.const 1)) (global $w (mut v128) (v128.const i32x4 1 0 0 0))
  (global $i (mut i31ref) (ref.i31 (i32.const 1)))
  (global $list (mut (ref null $s)) (ref.null $s)) (global $bytes (ref $a) (array.new $a (i32.const 1) (i32.const 70000)))
  (global $array (ref $r) (array.new_default $r (i32.const 3))) (global $hosts (ref $x) (array.new_default $x (i32.const 1)))
  (elem $passive (ref $s) (struct.new $s (i32.const 1) (ref.null $s)))
  (elem $unread (ref $s) (struct.new $s (i32.const 1) (ref.null $s)))
  (func $f1 (type $f) (i32.const 1)) (func $f2 (type $f) (i32.const 2)) (elem declare func $f1 $f2)
  (func $throw (throw $t (struct.new $s (i32.const 1) (ref.null $s))))
  (func $start (local $first (ref null $s))
    ;; a cycle of two structures
    (local.set $first (struct.new $s (i32.const 1) (struct.new $s (i32.const 1) (ref.null $s))))
    (struct.set $s $next (struct.get $s $next (local.get $first)) (local.get $first))
    (global.set $list (local.get $first))
    (array.set $r (global.get $array) (i32.const 1) (struct.new $s (i32.const 1) (ref.null $s)))
    (array.set $x (global.get $hosts) (i32.const 0) (global.get $v))
    (table.init $objects $passive (i32.const 0) (i32.const 0) (i32.const 1))
    (table.set $funcs (i32.const 0) (ref.func $f1))
    (table.set $externs (i32.const 0) (global.get $v))
    (table.set $exns (i32.const 0)
      (block $h (result exnref) (try_table (catch_all_ref $h) (call $throw)) unreachable)))
  (start $start)
  (func $bump (param $s (ref null $s))
    (struct.set $s $n (local.get $s) (i32.add (struct.get $s $n (local.get $s)) (i32.const 1))))
  (func $segment (param $drop i32) (result i32)
    (table.init $objects $unread (i32.const 1) (i32.const 0) (i32.const 1))
    (call $bump (table.get $objects (i32.const 1)))
    (i32.sub (struct.get $s $n (table.get $objects (i32.const 1))) (i32.const 1)))
  (func $thrown (result (ref $s)) (block $h (result (ref $s))
    (try_table (catch $t $h) (throw_ref (table.get $exns (i32.const 0)))) unreachable))
  (func (export "change") (param externref)
    (i32.store8 (i32.const 0) (i32.const 2)) (i32.store8 (i32.const 9) (i32.const 2))
    (drop (memory.grow (i32.const 1))) (data.drop $late)
    (call $bump (global.get $list)) (call $bump (struct.get $s $next (global.get $list)))
    (array.fill $a (global.get $bytes) (i32.const 0) (i32.const 2) (i32.const 70000))
    (call $bump (array.get $r (global.get $array) (i32.const 1)))
    (array.set $r (global.get $array) (i32.const 0) (global.get $list))
    (array.set $r (global.get $array) (i32.const 1) (ref.null $s))
    (array.set $x (global.get $hosts) (i32.const 0) (local.get 0))
    (call $bump (table.get $objects (i32.const 0))) (call $bump (call $thrown))
    (drop (call $segment (i32.const 0))) (elem.drop $passive)
    (struct.set $s $next (struct.get $s $next (global.get $list)) (ref.null $s))
    (struct.set $s $next (global.get $list) (ref.null $s))
    (global.set $list (struct.new $s (i32.const 2) (ref.null $s)))
    (global.set $one (i32.const 2)) (global.set $w (v128.const i32x4 2 0 0 0)) (global.set $i (ref.i31 (i32.const 2)))
    (table.set $objects (i32.const 0) (ref.null $s)) (drop (table.grow $objects (global.get $list) (i32.const 2)))
    (table.set $funcs (i32.const 0) (ref.func $f2)) (drop (table.grow $funcs (ref.null func) (i32.const 2)))
    (table.set $externs (i32.const 0) (local.get 0)) (table.set $exns (i32.const 0) (ref.null exn)))
  (func (export "look") (result i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)
    (memory.init $late (i32.const 5) (i32.const 0) (i32.const 1))
    (i32.load8_u (i32.const 0)) (i32.load8_u (i32.const 5)) (memory.size)
    (struct.get $s $n (global.get $list)) (struct.get $s $n (struct.get $s $next (global.get $list)))
    (ref.eq (global.get $list) (struct.get $s $next (struct.get $s $next (global.get $list))))
    (array.get_u $a (global.get $bytes) (i32.const 69999))
    (struct.get $s $n (array.get $r (global.get $array) (i32.const 1)))
    (struct.get $s $n (table.get $objects (i32.const 0)))
    (call $segment (i32.const 0))
    (call_indirect $funcs (type $f) (i32.const 0))
    (global.get $one) (i32x4.extract_lane 0 (global.get $w)) (i31.get_s (global.get $i))
    (struct.get $s $n (call $thrown)))
  (func (export "sizes") (result i32 i32 i32)
    (table.init $objects $passive (i32.const 1) (i32.const 0) (i32.const 1))
    (table.size $funcs) (table.size $objects) (ref.is_null (array.get $r (global.get $array) (i32.const 0))))
  (func (export "hosts") (result externref externref)
    (array.get $x (global.get $hosts) (i32.const 0)) (table.get $externs (i32.const 0))))`;

Deno.test("everything that a guest can reach has its state again after a reset", () => {
  const value = { host: true };
  const instance = engine.compile(TEXT).instantiate({ resettable: true }, { h: { v: value } });
  const { change, look, sizes, hosts } = functions(instance);
  const { thread } = realmStore();
  for (let round = 0; round < 4; round++) {
    assert.deepEqual(look(), Array(15).fill(1), `round ${round}`);
    assert.deepEqual(sizes(), [1, 2, 1]);
    assert.deepEqual(hosts(), [value, value]);
    instance.reset();
    change({ round });
    if (round % 2 === 0) collectGarbage();
    thread.attention.sweepDue = true;
    thread.services.atSafepoint();
    instance.reset();
  }
});

Deno.test("a reset does not fill the heap", () => {
  const module = engine.compile(`(module (type $a (array (mut i64)))
    (global $a (mut (ref $a)) (array.new $a (i64.const 1) (i32.const 100000)))
    (func (export "read") (result i64) (array.get $a (global.get $a) (i32.const 99999)))
    (func (export "write") (array.set $a (global.get $a) (i32.const 99999) (i64.const 2))))`);
  const instance = module.instantiate({ resettable: true, limits: { maxHeapBytes: 2 ** 21 + 2 ** 19 } });
  instance.checkpoint();
  for (let round = 0; round < 20; round++) {
    functions(instance)["write"]();
    instance.reset();
    assert.equal(functions(instance)["read"](), 1n);
  }
});

const COUNTER = `(type $s (struct (field (mut i32)))) (global $g (export "g") (ref $s) (struct.new $s (i32.const 0)))
  (func $start) (start $start)
  (func (export "count") (result i32)
    (struct.set $s 0 (global.get $g) (i32.add (struct.get $s 0 (global.get $g)) (i32.const 1)))
    (struct.get $s 0 (global.get $g)))`;

Deno.test("instances of a pool do not see each other's objects, shared ones are replaced", () => {
  const sharer = engine.compile(`(module (type $s (struct (field (mut i32)))) (global $o (mut anyref) (ref.null any))
    (func (export "take") (param anyref) (global.set $o (local.get 0)))
    (func (export "spoil") (struct.set $s 0 (ref.cast (ref $s) (global.get $o)) (i32.const 100))))`).instantiate();
  const pool = engine.compile(`(module ${COUNTER} (func (export "give") (result anyref) (global.get $g)))`).pool({
    size: 2,
  });
  for (let round = 0; round < 6; round++) {
    const instance = pool.take();
    assert.equal(functions(instance)["count"](), 1);
    if (round % 2 === 1) functions(sharer)["take"](functions(instance)["give"]());
    pool.put(instance);
    if (round % 2 === 0) continue;
    assert.throws(() => functions(instance)["count"](), /closed/, "it shares its object");
    functions(sharer)["spoil"]();
  }
});

Deno.test("an instance whose objects others can change is not reset", () => {
  const ways: Readonly<Record<string, (instance: Instance) => void>> = {
    "imported global": ({ exports: { g } }) =>
      void engine.compile(`(module (type $s (struct (field (mut i32)))) (import "m" "g" (global (ref $s))))`)
        .instantiate({}, { m: { g } }),
    "imported function": ({ exports: { give } }) =>
      void engine.compile(`(module (import "m" "give" (func (result anyref))))`).instantiate({}, { m: { give } }),
    "imported table": ({ exports: { t } }) =>
      void engine.compile(`(module (import "m" "t" (table 1 anyref)))`).instantiate({}, { m: { t } }),
    "passed function": ({ exports: { give } }) =>
      functions(
        engine.compile(`(module (global $f (mut funcref) (ref.null func))
        (func (export "take") (param funcref) (global.set $f (local.get 0))))`).instantiate(),
      )["take"](give),
  };
  for (const [way, share] of Object.entries(ways)) {
    const instance = engine.compile(
      `(module ${COUNTER} (table (export "t") 1 anyref) (func (export "give") (result anyref) (global.get $g)))`,
    ).instantiate({ resettable: true });
    instance.reset();
    share(instance);
    assert.throws(() => instance.reset(), /shares objects with another instance: it cannot be reset/, way);
    assert.equal(functions(instance)["count"](), 1, `${way}: it is as before`);
  }
});

Deno.test("an instance is not reset to tables that are shorter than the imports of others require", () => {
  const engine = NewEngine({ tier: "optimizing" });
  const struct = "(type $s (struct (field i32)))";
  const owner = engine.compile(`(module ${struct} (table (export "t") 2 10 (ref null $s))
    (func (export "grow") (drop (table.grow 0 (ref.null $s) (i32.const 8)))))`);
  const user = engine.compile(`(module ${struct} (import "m" "t" (table 10 10 (ref null $s)))
    (func (export "put") (table.set 0 (i32.const 7) (struct.new $s (i32.const 42))))
    (func (export "number") (result i32) (struct.get $s 0 (table.get 0 (i32.const 7)))))`);
  const instance = owner.instantiate();
  functions(instance)["grow"]();
  instance.reset();
  assert.equal((instance.exports["t"] as { length: number }).length, 2);
  functions(instance)["grow"]();
  const { put, number } = functions(user.instantiate({}, { m: { t: instance.exports["t"] } }));
  put();
  assert.throws(() => instance.reset(), /imports table 0 with at least 10 elements, but it would have 2/);
  assert.equal(number(), 42, "it is as before");
  const other = owner.instantiate();
  functions(other)["grow"]();
  other.checkpoint();
  user.instantiate({}, { m: { t: other.exports["t"] } });
  other.reset();
  assert.equal((other.exports["t"] as { length: number }).length, 10, "the length of the checkpoint suffices");
});

Deno.test("an instance whose reset fails is closed, and keeps a state that its code expects", () => {
  const maxHeapBytes = 90 * 2 ** 20;
  const type = "(type $f (func (result i32)))";
  const instance = engine.compile(`(module (type $a (array (mut i64))) ${type}
    (func $one (type $f) (i32.const 1))
    (table $t (export "t") 2 (ref $f) (ref.func $one)) (table $known 1 1 funcref) (elem (table $known) (i32.const 0) func $one)
    (global $a (ref $a) (array.new $a (i64.const 0) (i32.const 8000000)))
    (func (export "call") (type $f) (call_ref $f (table.get $t (i32.const 1))))
    (func (export "known") (type $f) (call_indirect $known (type $f) (i32.const 0))))`)
    .instantiate({ limits: { maxHeapBytes } });
  const { call, known } = instance.exports;
  const user = functions(
    engine.compile(`(module ${type} (import "m" "call" (func $call (type $f)))
    (import "m" "known" (func $known (type $f))) (func (export "call") (type $f) (call $call))
    (func (export "known") (type $f) (call $known)))`).instantiate({}, { m: { call, known } }),
  );
  assert.throws(() => instance.reset(), TrapError);
  assert.throws(() => (call as () => unknown)(), /closed/);
  assert.throws(() => instance.reset(), /closed/);
  assert.deepEqual([user["call"](), user["known"]()], [1, 1], "code that imports its functions goes on");
});
