/**
 * Exceptions that compiled code unwinds by itself: they do not leave compiled code, payloads stay correct however many
 * exceptions are live, and the runtime and JavaScript see the same state as without native unwinding. V8 runs the same
 * programs.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { encodeModule } from "../../engine/binary/encode.ts";
import { BUILTIN_ROWS } from "../../engine/abi/builtins.ts";
import { THREAD } from "../../engine/abi/context_layout.ts";
import { collectGarbage, type Instance, NewEngine, WasmException } from "../../engine/mod.ts";

const engine = NewEngine({ verify: true });
/** Only the x64 backend unwinds natively. */
const UNWINDS = process.arch === "x64";

type Exports = Record<string, (...args: unknown[]) => number>;

function v8(text: string, imports: WebAssembly.Imports = {}): Exports {
  const bytes = encodeModule(engine.parse(text));
  return new WebAssembly.Instance(new WebAssembly.Module(bytes as Uint8Array<ArrayBuffer>), imports)
    .exports as unknown as Exports;
}

/** Counts how often compiled code parks for each builtin while `action` runs. */
function parks(instance: Instance, action: () => void): Map<string, number> {
  const { services } = instance.internal.store.thread;
  const serve = services.serveBuiltin;
  const counts = new Map<string, number>();
  services.serveBuiltin = (index, context) => {
    const { name } = BUILTIN_ROWS[index];
    counts.set(name, (counts.get(name) ?? 0) + 1);
    serve(index, context);
  };
  try {
    action();
  } finally {
    services.serveBuiltin = serve;
  }
  return counts;
}

/**
 * Throws through `$depth` frames with a cleanup in every other frame, distinguishes tags, and rethrows caught
 * exceptions.
 */
const CLEANUPS = `(module
  (tag $a (param i32 i64 f32 f64)) (tag $b (param i32)) (tag $c) (tag $many (param i32 i32 i32 i32 i32))
  (global $live (mut i32) (i32.const 0))
  (func $throw (param i32)
    (if (i32.eq (i32.and (local.get 0) (i32.const 3)) (i32.const 0)) (then (throw $a (local.get 0)
      (i64.extend_i32_s (local.get 0)) (f32.convert_i32_s (local.get 0)) (f64.convert_i32_s (local.get 0)))))
    (if (i32.eq (i32.and (local.get 0) (i32.const 3)) (i32.const 1)) (then (throw $b (local.get 0))))
    (if (i32.eq (i32.and (local.get 0) (i32.const 3)) (i32.const 2)) (then (throw $c)))
    (throw $many (local.get 0) (i32.const 2) (i32.const 3) (i32.const 4) (i32.const 5)))
  (func $descend (param $depth i32) (param $x i32)
    (if (i32.eqz (local.get $depth)) (then (call $throw (local.get $x))))
    (if (i32.and (local.get $depth) (i32.const 1))
      (then
        (global.set $live (i32.add (global.get $live) (i32.const 1)))
        (block $cleanup (result exnref)
          (try_table (catch_all_ref $cleanup)
            (call $descend (i32.sub (local.get $depth) (i32.const 1)) (local.get $x)))
          (unreachable))
        (global.set $live (i32.sub (global.get $live) (i32.const 1)))
        ;; Overwrites the caught exception and the payload's storage.
        (if (i32.and (local.get $depth) (i32.const 2)) (then (call $distract (local.get $x))))
        (throw_ref)))
    (call $descend (i32.sub (local.get $depth) (i32.const 1)) (local.get $x)))
  (func $distract (param i32)
    (block $h (result i32 exnref) (try_table (catch_ref $b $h) (throw $b (i32.const 77))) (unreachable))
    (drop) (drop))
  (func $try (param $depth i32) (param $x i32) (result i32) (local $r i32) (local $f f32) (local $i i64)
    (block $all
      (block $is_b (result i32)
        (block $is_a (result i32 i64 f32 f64)
          (try_table (catch $a $is_a) (catch $b $is_b) (catch_all $all)
            (call $descend (local.get $depth) (local.get $x)))
          (unreachable))
        (local.set $r (i32.trunc_f64_s))
        (local.set $f)
        (local.set $r (i32.add (local.get $r) (i32.trunc_f32_s (local.get $f))))
        (local.set $i)
        (return (i32.add (i32.add (local.get $r) (i32.wrap_i64 (local.get $i))))))
      (return (i32.mul (i32.const 3))))
    (i32.const -1))
  (func (export "run") (param $n i32) (result i32) (local $sum i32)
    (loop $l
      (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 31))
        (call $try (i32.and (local.get $n) (i32.const 15)) (i32.mul (local.get $n) (i32.const 5)))))
      (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (i32.add (local.get $sum) (global.get $live))))`;

Deno.test("throw, catch and rethrow do not leave compiled code", () => {
  const instance = engine.compile(CLEANUPS).instantiate();
  const { run } = instance.exports as unknown as Exports;
  assert.equal(run(100), v8(CLEANUPS)["run"](100));
  const counts = parks(instance, () => assert.equal(run(5000), v8(CLEANUPS)["run"](5000)));
  assert.equal(instance.internal.store.thread.code.stubs.unwinds, UNWINDS);
  if (!UNWINDS) {
    assert.ok((counts.get("throw") ?? 0) >= 5000, "without native unwinding, the runtime serves every throw");
    return;
  }
  assert.equal(counts.get("throw") ?? 0, 0);
  // The runtime handles payloads beyond a record's capacity, and exceptions caught before another one.
  const [all, cleanups] = [5000, 5000 / 16 * 64];
  const caught = counts.get("caught") ?? 0, again = counts.get("throw_ref") ?? 0;
  assert.ok(caught > 0 && caught < cleanups / 2, `${caught} of ${cleanups} for ${all} exceptions`);
  assert.ok(again > 0 && again < cleanups, `${again} of ${cleanups}`);
});

const KEPT = `(module
  (import "h" "pass" (func $pass (param i32)))
  (tag $t (export "t") (param i32 i64)) (tag $deep (export "deep") (param i32))
  (table $kept 3000 exnref)
  (func $throw (param i32) (throw $t (local.get 0) (i64.extend_i32_u (local.get 0))))
  (func (export "keep") (param $k i32)
    (table.set $kept (local.get $k)
      (block $h (result exnref) (try_table (catch_all_ref $h) (call $throw (local.get $k))) (unreachable))))
  (func (export "value") (param $k i32) (result i32)
    (block $h (result i32 i64) (try_table (catch $t $h) (throw_ref (table.get $kept (local.get $k)))) (unreachable))
    (i32.wrap_i64) (i32.add))
  (func (export "out") (param $k i32) (throw_ref (table.get $kept (local.get $k))))
  (func (export "out at once") (param i32)
    (block $h (result exnref) (try_table (catch_all_ref $h) (call $throw (local.get 0))) (unreachable)) (throw_ref))
  (func (export "out of a legacy catch") (param i32)
    (try (do (call $throw (local.get 0))) (catch_all (rethrow 0))))
  (func (export "through the host") (param i32) (result i32)
    (block $h (result i32 i64) (try_table (catch $t $h) (call $pass (local.get 0))) (unreachable))
    (i32.wrap_i64) (i32.add))
  (func (export "drop") (param i32) (table.set $kept (local.get 0) (ref.null exn))))`;

Deno.test("thousands of exnrefs keep their payload and are freed once unreachable", () => {
  const instance = engine.compile(KEPT).instantiate({}, { h: { pass: () => {} } });
  const x = instance.exports as unknown as Exports;
  for (let k = 0; k < 3000; k++) x["keep"](k);
  for (let k = 2999; k >= 0; k -= 7) assert.equal(x["value"](k), 2 * k);
  for (let k = 0; k < 3000; k += 2) x["drop"](k);
  for (let k = 0; k < 20_000; k++) x["keep"](k % 1500 * 2);
  for (let k = 0; k < 3000; k++) assert.equal(x["value"](k), 2 * k);
  collectGarbage(); // automatic collections depend on the other tests of this realm
  const { exceptions } = instance.internal.store.thread;
  assert.ok(exceptions.size < 10_000, `${exceptions.size} are live`);
});

Deno.test("an exception that leaves compiled code has tag and payload, and keeps its identity when it returns", () => {
  let seen: unknown;
  const instance = engine.compile(KEPT).instantiate({}, {
    h: {
      pass(k: number) {
        try {
          x["out"](k);
        } catch (error) {
          seen = error;
          throw error;
        }
      },
    },
  });
  const x = instance.exports as unknown as Exports;
  for (let k = 0; k < 200; k++) x["keep"](k);
  for (const name of ["out", "out at once"]) {
    for (let k = 0; k < 200; k += 3) {
      assert.throws(() => x[name](k), (error) => {
        assert.ok(error instanceof WasmException);
        assert.equal(error.tag, instance.exports["t"]);
        assert.deepEqual(error.payload, [k, BigInt(k)]);
        return true;
      });
    }
  }
  assert.equal(x["through the host"](9), 18);
  const first = seen;
  assert.equal(x["through the host"](9), 18);
  assert.equal(seen, first, "an exnref is the same JavaScript exception each time");
});

Deno.test("a legacy catch rethrows the caught exception", () => {
  const x = engine.compile(KEPT).instantiate({}, { h: { pass: () => {} } }).exports as unknown as Exports;
  for (let k = 0; k < 20; k++) {
    assert.throws(() => x["out of a legacy catch"](k), (error) => {
      assert.ok(error instanceof WasmException);
      assert.deepEqual(error.payload, [k, BigInt(k)]);
      return true;
    });
  }
});

const TABLE_TEST = `the table of call sites is removed with its image and restored on the next use${
  UNWINDS ? "" : " (ignored: this backend does not unwind natively)"
}`;
Deno.test(TABLE_TEST, { ignore: !UNWINDS }, () => {
  const module = engine.compile(CLEANUPS);
  const instance = module.instantiate();
  const { thread } = instance.internal.store;
  const { run } = instance.exports as unknown as Exports;
  const expected = run(50);
  const other = engine.compile(KEPT).instantiate({}, { h: { pass: () => {} } });
  const keep = (other.exports as unknown as Exports)["keep"];
  keep(1);
  keep(2);
  const instance2 = module.instantiate();
  const { image } = instance.internal.module;
  assert.notEqual(thread.state.word(THREAD.UNWIND), 0);
  thread.unwindTable.forget(image.base + 1);
  assert.notEqual(thread.state.word(THREAD.UNWIND), 0);
  thread.unwindTable.forget(image.base);
  assert.equal(thread.state.word(THREAD.UNWIND), 0);
  assert.equal((instance2.exports as unknown as Exports)["run"](50), expected);
  assert.notEqual(thread.state.word(THREAD.UNWIND), 0);
  assert.equal(parks(instance, () => run(50)).get("throw") ?? 0, 0);
  keep(3);
  assert.equal(parks(other, () => keep(4)).get("throw") ?? 0, 0);
});
