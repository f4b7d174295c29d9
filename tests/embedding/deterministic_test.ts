/**
 * Deterministic mode: canonical NaNs from arithmetic, preserved bit patterns elsewhere, a limit on call depth, and the
 * same results, traps and fuel under every optimization and bounds mode.
 */
import assert from "node:assert/strict";
import {
  type Engine,
  type EngineOptions,
  ExhaustionError,
  type Instance,
  NewEngine,
  OPTIMIZATION_ROWS,
  type OptimizationName,
  TrapError,
  UnsupportedError,
} from "@waft/engine";

const SETTINGS: readonly EngineOptions[] = [
  {},
  { bounds: "explicit" },
  { optimizations: allOptimizations(false) },
  { optimizations: allOptimizations(true), bounds: "explicit" },
  { optimizations: { "inline": false } as Partial<Record<OptimizationName, boolean>>, interruptible: true },
];

function allOptimizations(on: boolean): Partial<Record<OptimizationName, boolean>> {
  const known = OPTIMIZATION_ROWS.filter((row) => row.state === "on" || row.state === "off");
  return Object.fromEntries(known.map(({ name }) => [name, on]));
}

function engines(): Engine[] {
  return SETTINGS.map((options) => NewEngine({ ...options, deterministic: true, fuel: true }));
}

const SCALAR: readonly (readonly [string, string, string])[] = [
  ["f32", "add", "(f32.const -inf) (f32.const inf)"],
  ["f32", "sub", "(f32.const nan:0x200001) (f32.const 1)"],
  ["f32", "mul", "(f32.const -nan) (f32.const 1)"],
  ["f32", "div", "(f32.const 0) (f32.const -0)"],
  ["f32", "min", "(f32.const 1) (f32.const -nan:0x1)"],
  ["f32", "max", "(f32.const nan:0x400001) (f32.const 1)"],
  ["f32", "sqrt", "(f32.const -1)"],
  ["f32", "ceil", "(f32.const -nan:0x200000)"],
  ["f32", "nearest", "(f32.const nan:0x7fffff)"],
  ["f32", "demote_f64", "(f64.const -nan:0x8000000000001)"],
  ["f64", "add", "(f64.const -inf) (f64.const inf)"],
  ["f64", "sub", "(f64.const inf) (f64.const inf)"],
  ["f64", "mul", "(f64.const 0) (f64.const -inf)"],
  ["f64", "div", "(f64.const -0) (f64.const 0)"],
  ["f64", "min", "(f64.const nan:0x4000000000001) (f64.const -1)"],
  ["f64", "max", "(f64.const 1) (f64.const -nan)"],
  ["f64", "sqrt", "(f64.const -1)"],
  ["f64", "floor", "(f64.const -nan:0x123)"],
  ["f64", "trunc", "(f64.const -nan:0x123)"],
  ["f64", "promote_f32", "(f32.const -nan:0x200001)"],
];

Deno.test("arithmetic makes the positive canonical NaN only", () => {
  const functions = SCALAR.flatMap(([type, op, operands], k) => {
    const [mask, int] = type === "f32" ? ["i32", "i32"] : ["i64", "i64"];
    // Once with constants, which the compiler may fold, once with values it cannot know.
    const locals = operands.match(/\((f\d\d)\.const [^)]*\)/g)!;
    const from = locals.map((text) => text.slice(1, 4));
    const sets = locals.map((text, i) => `(local.set $x${i} ${text})`).join(" ");
    const opaque = from.map((ty, i) => `(call $id_${ty} (local.get $x${i}))`).join(" ");
    const declare = from.map((ty, i) => `(local $x${i} ${ty})`).join(" ");
    return [
      `(func (export "c${k}") (result ${int}) (${mask}.reinterpret_${type} (${type}.${op} ${operands})))`,
      `(func (export "v${k}") (result ${int}) ${declare} ${sets} (${mask}.reinterpret_${type} (${type}.${op} ${opaque})))`,
    ];
  });
  const text = `(module (table funcref (elem $id_f32 $id_f64))
    (func $id_f32 (export "f32") (param f32) (result f32) (local.get 0))
    (func $id_f64 (export "f64") (param f64) (result f64) (local.get 0))
    ${functions.join("\n")})`;
  for (const engine of engines()) {
    const instance = engine.compile(text).instantiate();
    SCALAR.forEach(([type, op], k) => {
      const canonical = type === "f32" ? 0x7fc00000 : 0x7ff8000000000000n;
      assert.equal(instance.call({}, `c${k}`), canonical, `${type}.${op} of constants`);
      assert.equal(instance.call({}, `v${k}`), canonical, `${type}.${op}`);
    });
  }
});

Deno.test("lanes of vectors too, and instructions that only move bits keep them", () => {
  const vectors = [
    "add",
    "sub",
    "mul",
    "div",
    "min",
    "max",
    "sqrt",
    "ceil",
    "floor",
    "trunc",
    "nearest",
    "relaxed_min",
  ];
  const functions = vectors.flatMap((op) =>
    [["f32x4", 32], ["f64x2", 64]].map(([shape, bits]) => {
      const unary = /sqrt|ceil|floor|trunc|nearest/.test(op);
      const operands = unary ? "(v128.load (i32.const 0))" : "(v128.load (i32.const 0)) (v128.load (i32.const 16))";
      return `(func (export "${shape}.${op}") (param i32) (v128.store (local.get 0) (${shape}.${op} ${operands})))
        (func (export "${op}${bits}"))`;
    })
  );
  const text = `(module (memory (export "m") 1) ${functions.join("\n")}
    (func (export "madd") (v128.store (i32.const 64)
      (f32x4.relaxed_madd (v128.load (i32.const 0)) (v128.load (i32.const 16)) (v128.load (i32.const 0)))))
    (func (export "demote") (v128.store (i32.const 64) (f32x4.demote_f64x2_zero (v128.load (i32.const 16)))))
    (func (export "moves") (result i32)
      (v128.store (i32.const 64) (f32x4.neg (f32x4.abs (v128.load (i32.const 0)))))
      (f32.store (i32.const 80) (f32.copysign (f32.load (i32.const 0)) (f32.const -1)))
      (v128.store (i32.const 96) (f32x4.pmin (v128.load (i32.const 0)) (v128.load (i32.const 0))))
      (i32.reinterpret_f32 (select (f32.load (i32.const 0)) (f32.const 1) (i32.const 1)))))`;
  for (const engine of engines()) {
    const instance = engine.compile(text).instantiate();
    const words = new Uint32Array((instance.exports["m"] as { buffer: ArrayBuffer }).buffer);
    const odd = [0xffa00001, 0x3f800000, 0xff800001, 0x7fffffff];
    const wide = [1, 0xfff40000, 2, 0xfff80000];
    for (const op of vectors) {
      words.set([...odd, ...odd]);
      instance.call({}, `f32x4.${op}`, 64);
      assert.deepEqual([words[16], words[18], words[19]], [0x7fc00000, 0x7fc00000, 0x7fc00000], `f32x4.${op}`);
      assert.notEqual(words[17], 0x7fc00000);
      words.set([...wide, ...wide]);
      instance.call({}, `f64x2.${op}`, 64);
      assert.deepEqual([...words.subarray(16, 20)], [0, 0x7ff80000, 0, 0x7ff80000], `f64x2.${op}`);
    }
    words.set([...odd, ...odd]);
    instance.call({}, "madd");
    assert.deepEqual([words[16], words[18], words[19]], [0x7fc00000, 0x7fc00000, 0x7fc00000]);
    words.set([...odd, ...wide]);
    instance.call({}, "demote");
    assert.deepEqual([...words.subarray(16, 20)], [0x7fc00000, 0x7fc00000, 0, 0]);
    assert.equal((instance.call({}, "moves") as number) >>> 0, 0xffa00001);
    assert.equal(words[16], 0xffa00001);
    assert.equal(words[20], 0xffa00001);
    assert.deepEqual([...words.subarray(24, 28)], odd);
  }
});

const DEEP = `(module (import "h" "again" (func $again (param i32) (result i32)))
  (global $deepest (export "deepest") (mut i32) (i32.const 0))
  (type $t (func (param i32) (result i32)))
  (table funcref (elem $indirect $tail))
  (tag $e)
  (func $note (param i32) (global.set $deepest (local.get 0)))
  (func $plain (export "plain") (param i32) (result i32) (call $note (local.get 0))
    (i32.add (call $plain (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))
  (func $wide (export "wide") (param i32) (result i32) (local i64 i64 i64 i64 f64 f64 v128)
    (call $note (local.get 0)) (local.set 1 (i64.extend_i32_u (local.get 0)))
    (i32.add (call $wide (i32.add (local.get 0) (i32.const 1))) (i32.wrap_i64 (local.get 1))))
  (func $indirect (export "indirect") (param i32) (result i32) (call $note (local.get 0))
    (i32.add (call_indirect (type $t) (i32.add (local.get 0) (i32.const 1)) (i32.const 0)) (i32.const 1)))
  (func $tail (export "tail") (param i32) (result i32)
    (if (i32.eqz (local.get 0)) (then (return (i32.const 9))))
    (return_call_indirect (type $t) (i32.sub (local.get 0) (i32.const 1)) (i32.const 1)))
  (func $thrower (param i32) (if (i32.rem_u (local.get 0) (i32.const 2)) (then (throw $e))))
  (func $caught (export "caught") (param i32) (result i32) (call $note (local.get 0))
    (try (do (call $thrower (local.get 0))) (catch_all))
    (i32.add (call $caught (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))
  (func $host (export "host") (param i32) (result i32) (call $note (local.get 0))
    (i32.add (call $again (i32.add (local.get 0) (i32.const 1))) (i32.const 1))))`;

Deno.test("the depth of calls is the same under every setting, and tail calls take none", async () => {
  const seen: string[] = [];
  for (const engine of engines()) {
    const instance: Instance = engine.compile(DEEP).instantiate({}, {
      h: { again: (n: number) => n < 300 ? instance.call({}, "host", n) : instance.call({}, "plain", n) },
    });
    const deepest = instance.exports["deepest"] as { value: number };
    const found: unknown[] = [];
    for (const name of ["plain", "wide", "indirect", "caught", "host", "plain"]) {
      const context = { fuel: 10n ** 9n };
      assert.throws(() => instance.call(context, name, 0), ExhaustionError, name);
      found.push(name, deepest.value, context.fuel);
    }
    assert.equal(instance.call({}, "tail", 1_000_000), 9);
    await assert.rejects(instance.callAsync({}, "plain", 0), ExhaustionError);
    found.push(deepest.value);
    const small = engine.compile(DEEP).instantiate({ limits: { maxStackBytes: 4096 } }, { h: { again: () => 0 } });
    assert.throws(() => small.call({}, "plain", 0), ExhaustionError);
    found.push((small.exports["deepest"] as { value: number }).value);
    seen.push(found.join(" "));
  }
  assert.equal(new Set(seen).size, 1, seen.join("\n"));
  assert.match(seen[0], /^plain 1\d{4} /, "as deep as 1 MiB of small activations");
});

Deno.test("growth fails by limits only, threads are refused", () => {
  const engine = NewEngine({ deterministic: true });
  const instance = engine.compile(`(module (memory 1 3) (table 1 3 funcref)
    (func (export "m") (param i32) (result i32) (memory.grow (local.get 0)))
    (func (export "t") (param i32) (result i32) (table.grow (ref.null func) (local.get 0))))`).instantiate();
  assert.deepEqual([3, 2, 1].map((n) => instance.call({}, "m", n)), [-1, 1, -1]);
  assert.deepEqual([3, 2, 1].map((n) => instance.call({}, "t", n)), [-1, 1, -1]);
  // More than any machine has: the system's refusal does not reach the guest.
  const huge = engine.compile(
    `(module (memory i64 1) (func (export "m") (result i64) (memory.grow (i64.const 0x3fff0))))`,
  )
    .instantiate({ limits: { maxMemoryPages: 0x40000 } });
  const { host } = huge.internal.store.thread;
  const { protect, reserve } = host;
  const refuse = () => {
    throw new RangeError("no more");
  };
  host.protect = host.reserve = refuse;
  try {
    assert.throws(() => huge.call({}, "m"), /the limit allows more than the system has/);
  } finally {
    host.protect = protect;
    host.reserve = reserve;
  }
  assert.throws(() => engine.compile(`(module (memory 1 1 shared))`), UnsupportedError);
  assert.throws(() => NewEngine({ deterministic: true, features: { threads: true } }), TypeError);
});

Deno.test("a trap in a deep call leaves the whole depth to the next", () => {
  const instance = NewEngine({ deterministic: true }).compile(`(module
    (func $down (export "down") (param i32) (result i32)
      (if (result i32) (local.get 0)
        (then (i32.add (call $down (i32.sub (local.get 0) (i32.const 1))) (i32.const 1)))
        (else (unreachable))))
    (func $count (export "count") (param i32) (result i32)
      (if (result i32) (local.get 0)
        (then (i32.add (call $count (i32.sub (local.get 0) (i32.const 1))) (i32.const 1))) (else (i32.const 0)))))`)
    .instantiate();
  for (let k = 0; k < 5; k++) {
    assert.throws(() => instance.call({}, "down", 8000), TrapError);
    assert.equal(instance.call({}, "count", 8000), 8000);
  }
});

/** Inlined functions with locals, a tail call inside one, a function that does not count, and an indirect call. */
const INLINED = `(module (table funcref (elem $outer $middle)) (type $t (func (param i32)))
  (global $steps (export "steps") (mut i32) (i32.const 0))
  (func $step (global.set $steps (i32.add (global.get $steps) (i32.const 1))))
  (func $inner (param i32) (local i64 i64) (call $step)
    (if (i32.eqz (local.get 0)) (then (return)))
    (call_indirect (type $t) (i32.sub (local.get 0) (i32.const 1)) (i32.and (local.get 0) (i32.const 1))))
  (func $middle (param i32) (local f64) (call $step) (call $inner (local.get 0)) (call $step)
    (return_call $inner (i32.shr_u (local.get 0) (i32.const 1))))
  (func $outer (param i32) (call $step) (call $middle (local.get 0)) (call $step)
    (call_indirect (type $t) (i32.const 0) (i32.const 1))
    (return_call_indirect (type $t) (i32.const 1) (i32.const 1)))
  (func (export "run") (param i32) (call $outer (local.get 0))))`;

Deno.test("inlined bodies exhaust the stack at the same step as calls, for every limit", () => {
  const limits = Array.from({ length: 160 }, (_, k) => k * 16);
  const stepsOf = (options: EngineOptions) => {
    const module = NewEngine({ ...options, deterministic: true }).compile(INLINED);
    return limits.map((maxStackBytes) => {
      const instance = module.instantiate({ limits: { maxStackBytes } });
      let end = "returned";
      try {
        instance.call({}, "run", 5);
      } catch (error) {
        assert.ok(error instanceof ExhaustionError, String(error));
        end = "exhausted";
      }
      return `${maxStackBytes}: ${end} after ${(instance.exports["steps"] as { value: number }).value}`;
    });
  };
  const [first, ...others] = [...SETTINGS, { tier: "baseline" } as const].map(stepsOf);
  for (const steps of others) assert.deepEqual(steps, first);
  assert.ok(new Set(first!.map((line) => line.split(": ")[1])).size > 10);
});
