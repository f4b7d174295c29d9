/**
 * Lazy compilation: bodies are compiled when they are called. In: programs whose functions are first called in every
 * way that there is. Out: the results of eager compilation. The suite runs in this mode with
 * `deno task spec --tier auto --lazy`.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { NewEngine } from "@waft/engine";
import type { EngineOptions, Module } from "@waft/engine";

/** Compiles whatever is large enough: everything. */
const lazily = (options: EngineOptions = {}) => NewEngine({ tier: "auto", ...options, lazyFrom: 0 } as EngineOptions);

/** Elsewhere, modules are compiled as a whole. */
const IS_LAZY = process.platform === "linux";

/** Bytes of machine code so far. */
const bytesOf = (module: Module) => module.instantiate().internal.module.image.size;

const CALLS = `(module
  (import "host" "again" (func $again (param i32) (result i32)))
  (type $unary (func (param i32) (result i32)))
  (table 4 funcref)
  (elem (i32.const 0) func $double $tail)
  (tag $odd (param i32))
  (func $double (type $unary) (i32.mul (local.get 0) (i32.const 2)))
  (func $tail (type $unary) (return_call $double (i32.add (local.get 0) (i32.const 1))))
  (func $many (param i32 i64 i32 i64 i32 i64 i32 i64 i32 f64 f32 f64 f32 f64 f32 f64 f32 f64 f32) (result f64)
    (f64.add (f64.convert_i32_s (i32.sub (local.get 8) (local.get 6)))
      (f64.add (f64.promote_f32 (local.get 18)) (f64.sub (local.get 17) (local.get 9)))))
  (func $vector (param v128 v128) (result i32) (i32x4.extract_lane 3 (i32x4.add (local.get 0) (local.get 1))))
  (func $throw (param i32) (throw $odd (local.get 0)))
  (func (export "many") (result f64) (call $many
    (i32.const 1) (i64.const 2) (i32.const 3) (i64.const 4) (i32.const 5) (i64.const 6) (i32.const 70) (i64.const 8)
    (i32.const 90) (f64.const 0.5) (f32.const 2) (f64.const 3) (f32.const 4) (f64.const 5) (f32.const 6) (f64.const 7)
    (f32.const 8) (f64.const 9) (f32.const 100)))
  (func (export "vector") (result i32)
    (call $vector (v128.const i32x4 1 2 3 4) (v128.const i32x4 10 20 30 40)))
  (func (export "indirect") (param i32 i32) (result i32)
    (call_indirect (type $unary) (local.get 0) (local.get 1)))
  (func (export "ref") (param i32) (result i32) (call_ref $unary (local.get 0) (ref.func $double)))
  (func (export "caught") (param i32) (result i32)
    (block $caught (result i32)
      (try_table (catch $odd $caught) (call $throw (local.get 0)))
      (i32.const 0)))
  (func (export "nested") (param i32) (result i32) (i32.add (call $again (local.get 0)) (i32.const 1)))
  (func $countdown (export "countdown") (param i32) (result i32)
    (if (result i32) (i32.eqz (local.get 0)) (then (i32.const 7))
      (else (call $countdown (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "trap") (param i32) (result i32) (i32.div_u (i32.const 1) (local.get 0))))`;

interface Calls {
  many(): number;
  vector(): number;
  indirect(x: number, index: number): number;
  ref(x: number): number;
  caught(x: number): number;
  nested(x: number): number;
  countdown(x: number): number;
  trap(x: number): number;
}

for (const bounds of ["guard", "explicit"] as const) {
  for (const interruptible of [false, true]) {
    const mode = `${bounds}${interruptible ? ", interruptible" : ""}`;
    Deno.test(`${mode}: a first call has its arguments, results, exceptions and traps`, () => {
      const exports = lazily({ bounds, interruptible }).compile(CALLS).instantiate({}, {
        host: { again: (x: number): number => x > 0 ? exports.nested(x - 1) : 40 },
      }).exports as unknown as Calls;
      assert.equal(exports.many(), 128.5);
      assert.equal(exports.vector(), 44);
      assert.equal(exports.indirect(20, 1), 42);
      assert.equal(exports.indirect(20, 0), 40);
      assert.equal(exports.ref(4), 8);
      assert.equal(exports.caught(5), 5);
      assert.equal(exports.nested(3), 44);
      assert.equal(exports.countdown(1000), 7);
      assert.equal(exports.trap(1), 1);
      assert.throws(() => exports.trap(0), { name: "TrapError", code: "integer-divide-by-zero" });
      assert.throws(() => exports.countdown(-1), { code: "stack-exhausted" });
      assert.throws(() => exports.indirect(0, 2), { code: "uninitialized-element" });
      for (let round = 0; round < 3; round++) assert.equal(exports.indirect(20, 1) + exports.caught(9), 51);
    });
  }
}

Deno.test("code is made for what is called, and for nothing else", () => {
  // No optimized code, which another thread could have made meanwhile and would count as well.
  const called = lazily({ tierUpCalls: 2 ** 30 } as EngineOptions).compile(
    CALLS.replace(/\(import[^\n]*\n/, "(func $again (param i32) (result i32) (local.get 0))\n"),
  );
  const before = bytesOf(called);
  const exports = called.instantiate().exports as unknown as Calls;
  exports.ref(1);
  const after = bytesOf(called);
  assert.ok(!IS_LAZY || after > before, "both functions have code now");
  exports.ref(2);
  assert.equal(bytesOf(called), after, "and need no more");
});

Deno.test("objects survive collections while functions are compiled", () => {
  const text = `(module
    (type $list (struct (field i32) (field (ref null $list))))
    (func $cons (param i32 (ref null $list)) (result (ref $list)) (struct.new $list (local.get 0) (local.get 1)))
    (func $sum (param $l (ref null $list)) (result i32) (local $s i32)
      (loop $next
        (if (ref.is_null (local.get $l)) (then (return (local.get $s))))
        (local.set $s (i32.add (local.get $s) (struct.get $list 0 (local.get $l))))
        (local.set $l (struct.get $list 1 (local.get $l)))
        (br $next))
      (unreachable))
    (func (export "run") (param $n i32) (result i32) (local $l (ref null $list))
      (loop $again
        (local.set $l (call $cons (local.get $n) (local.get $l)))
        (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (call $sum (local.get $l))))`;
  const instance = lazily().compile(text).instantiate();
  instance.internal.store.heap.stress(1);
  try {
    assert.equal(instance.call({}, "run", 300), 45150);
  } finally {
    instance.internal.store.heap.stress(0);
  }
});

Deno.test("an asynchronous call can be suspended by a function that is compiled meanwhile", async () => {
  const module = lazily().compile(`(module (import "host" "wait" (func $wait (param i32) (result i32)))
    (func $inner (param i32) (result i32) (call $wait (local.get 0)))
    (func (export "run") (param i32) (result i32) (i32.add (call $inner (local.get 0)) (i32.const 1))))`);
  const instance = module.instantiate({}, { host: { wait: (x: number) => Promise.resolve(x * 2) } });
  assert.deepEqual(await Promise.all([instance.callAsync({}, "run", 20)]), [41]);
});

for (const tierUpCalls of [0, 1, 3]) {
  Deno.test(`functions without code lead to optimized code after ${tierUpCalls} calls`, () => {
    const exports = lazily({ tierUpCalls }).compile(CALLS).instantiate({}, { host: { again: (x: number) => x } })
      .exports as unknown as Calls;
    const { ref, indirect, countdown } = exports;
    for (let k = 0; k < 6; k++) assert.equal(ref(k), 2 * k);
    assert.equal(indirect(20, 1), 42);
    assert.equal(countdown(1000), 7);
    assert.equal(exports.many(), 128.5);
  });
}

Deno.test("a module with an invalid body is refused with the same error", () => {
  const valid = `(func (result i32) (i32.const 1))`;
  for (const body of ["(result i32) (i64.const 1)", "(drop)", "(local.set 3 (i32.const 1))", "(br 9)", "(call 77)"]) {
    const messageOf = (compile: () => unknown) => {
      try {
        compile();
      } catch (error) {
        return (error as Error).message;
      }
      return assert.fail("the module was accepted");
    };
    const bytes = invalidModule(body);
    assert.equal(messageOf(() => lazily().compile(bytes)), messageOf(() => NewEngine().compile(bytes)), body);
  }
  function invalidModule(body: string): string {
    return `(module ${valid} (func ${body}) ${valid})`;
  }
});

Deno.test("modules that are compiled alternately", () => {
  const text = (n: number) =>
    `(module ${
      Array.from({ length: 40 }, (_, k) => `(func (export "f${k}") (result i32) (i32.const ${n * 100 + k}))`).join("")
    })`;
  const instances = [1, 2, 3, 4, 5].map((n) => lazily().compile(text(n)).instantiate());
  for (let k = 0; k < 40; k++) {
    assert.deepEqual(instances.map((instance) => instance.call({}, `f${k}`)), [1, 2, 3, 4, 5].map((n) => n * 100 + k));
  }
});

Deno.test("a function whose code does not fit behind its image is optimized", () => {
  // Each instruction takes two bytes, and many times as many of code: the place has room for three times as many.
  const body = `(drop (i32x4.trunc_sat_f32x4_u (local.get 0)))`.repeat(4000);
  const filler = `(func (export "filler") (result i32) (i32.const 3))`;
  const many = Array.from(
    { length: 30 },
    (_, k) => `(func (export "f${k}") (param v128) (result i32) ${body} (i32.const ${k}))`,
  );
  const instance = lazily().compile(`(module ${filler}
    ${many.join("\n")}
    (func (export "all") (result i32) (local $s i32)
      ${many.map((_, k) => `(local.set $s (i32.add (local.get $s) (call ${k + 1} (v128.const i64x2 0 0))))`).join("\n")}
      (local.get $s)))`).instantiate();
  assert.equal(instance.call({}, "all"), 435);
  assert.equal(instance.call({}, "filler"), 3);
});

Deno.test("stubs that are larger than the place of the image", () => {
  // One host thunk for each signature of an import.
  const types = Array.from({ length: 3000 }, (_, k) => {
    const bits = (k + 4096).toString(2).slice(1);
    return [...bits].map((bit) => bit === "1" ? "i64" : "f64").join(" ");
  });
  const imports = types.map((params, k) => `(import "h" "f${k}" (func (param ${params})))`).join("\n");
  const host = Object.fromEntries(types.map((_, k) => [`f${k}`, () => {}]));
  const instance = lazily().compile(`(module ${imports} (func (export "run") (result i32) (i32.const 5)))`)
    .instantiate({}, { h: host });
  assert.equal(instance.call({}, "run"), 5);
});

Deno.test("few bodies are compiled once the time of the call is up", () => {
  // Machine code may compile as many as the journal has rows.
  const LEAVES = 200;
  const leaves = Array.from({ length: LEAVES }, (_, k) => `(func $leaf${k} (result i32) (i32.const ${k}))`);
  const calls = leaves.map((_, k) => `(drop (call $leaf${k}))`);
  const module = lazily({ interruptible: true }).compile(`(module
    (import "host" "wait" (func $wait))
    ${leaves.join("\n")}
    (func (export "late") (result i32) (call $wait) ${calls.join("\n")} (i32.const 7)))`);
  let ms = 0;
  const wait = () => {
    const end = performance.now() + ms;
    while (performance.now() < end);
  };
  const instance = module.instantiate({}, { host: { wait } });
  ms = 30;
  // Code that is complete has no poll there.
  if (IS_LAZY) assert.throws(() => instance.call({ deadline: 10 }, "late"), { code: "interrupted" });
  ms = 0;
  assert.equal(instance.call({}, "late"), 7, "the instance stays usable");
});

Deno.test("large bodies are compiled with their module, since no limit of a call ends that", () => {
  const bodies = (additions: number) =>
    bytesOf(
      lazily().compile(`(module (func (export "f") (param i32) (result i32) (local.get 0)
      ${"(i32.add (i32.const 1))".repeat(additions)}))`),
    );
  assert.ok(bodies(50_000) > 50_000, "150 KB of binary code");
  assert.ok(!IS_LAZY || bodies(30_000) < 30_000);
});
