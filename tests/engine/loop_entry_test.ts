/**
 * On-stack replacement: frames of baseline code continue in optimized code at the header of the loop that they are in,
 * at whichever turn, with the same results, traps, stack traces and fuel.
 */
import assert from "node:assert/strict";
import { type EngineOptions, type Module, NewEngine, TrapError } from "@waft/engine";
import { THREAD } from "../../engine/abi/context_layout.ts";
import { settle } from "../support/collect_garbage.ts";

type Work = (...args: unknown[]) => unknown;

/** Programs that export `work`, a function with loops, and the arguments for it. */
const PROGRAMS: Readonly<Record<string, readonly [text: string, ...args: unknown[]]>> = {
  "nested loops, inner and outer state": [
    `(func (export "work") (param $n i32) (result i64) (local $x i64) (local $i i32)
      (loop $outer
        (local.set $i (i32.const 5))
        (loop $inner
          (local.set $x (i64.add (i64.mul (local.get $x) (i64.const 3)) (i64.extend_i32_u (local.get $i))))
          (br_if $inner (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
        (local.set $x (i64.xor (local.get $x) (i64.extend_i32_u (local.get $n))))
        (br_if $outer (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (local.get $x))`,
    6,
  ],
  "operands below the loops: values, constants, locals": [
    `(func (export "work") (param $n i32) (result i32) (local $i i32)
      (i32.mul (local.get $n) (i32.const 7))
      (i32.const 1000)
      (local.get $n)
      (block (result i32)
        (i32.const 9)
        (loop $outer (param i32) (result i32)
          (i32.add (i32.const 3))
          (i32.load8_u (i32.const 5))
          (local.set $i (i32.const 4))
          (loop $inner (param i32) (result i32)
            (i32.add (local.get $i))
            (br_if $inner (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
          (i32.add)
          (br_if $outer (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
      (i32.add) (i32.sub) (i32.xor))
     (memory 1) (data (i32.const 0) "abcdefghijkl")`,
    5,
  ],
  "both arms of an if, branches to every label": [
    `(func (export "work") (param $n i32) (result i32) (local $i i32) (local $x i32)
      (block $out (result i32)
        (loop $outer
          (local.set $i (i32.const 4))
          (if (i32.and (local.get $n) (i32.const 1))
            (then
              (loop $inner
                (local.set $x (i32.add (i32.mul (local.get $x) (i32.const 3)) (local.get $i)))
                (local.set $i (i32.sub (local.get $i) (i32.const 1)))
                (br_if $outer (i32.eq (i32.and (local.tee $n (i32.sub (local.get $n) (i32.const 1))) (i32.const 7)) (i32.const 2)))
                (br_if $inner (local.get $i)))
              (local.set $x (i32.add (local.get $x) (i32.const 100))))
            (else
              (loop $inner
                (local.set $x (i32.xor (local.get $x) (i32.const 77)))
                (block $a (block $b (block $c
                  (br_table $a $b $c $inner $outer (i32.rem_u (local.tee $i (i32.add (local.get $i) (i32.const 3))) (i32.const 5))))
                  (drop (br_if $out (local.get $x) (i32.lt_s (local.get $n) (i32.const -40)))))
                  (local.set $x (i32.add (local.get $x) (local.get $n))))
                (local.set $n (i32.sub (local.get $n) (i32.const 1))))
              (local.set $x (i32.sub (local.get $x) (i32.const 5)))))
          (br_if $outer (i32.gt_s (local.tee $n (i32.sub (local.get $n) (i32.const 1))) (i32.const 0))))
        (i32.add (local.get $x) (i32.const 1))))`,
    30,
  ],
  "locals of all types": [
    `(func (export "work") (param $n i32) (param $f f32) (param $d f64) (param $r externref) (result i64 f32 f64 externref)
      (local $v v128) (local $w v128) (local $fn funcref) (local $x i64)
      (local.set $v (i32x4.splat (local.get $n)))
      (local.set $fn (ref.func $one))
      (table.set $t (i32.const 0) (local.get $fn))
      (loop $again
        (local.set $w (i32x4.add (local.get $w) (local.get $v)))
        (local.set $f (f32.mul (local.get $f) (f32.const 1.5)))
        (local.set $d (f64.sub (local.get $d) (f64.const 0.25)))
        (if (ref.is_null (local.get $r)) (then (local.set $x (i64.add (local.get $x) (i64.const 1)))))
        (if (ref.is_null (local.get $fn)) (then (local.set $x (i64.add (local.get $x) (i64.const 100)))))
        (local.set $fn (table.get $t (i32.const 0)))
        (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
      (i64.add (local.get $x) (i64x2.extract_lane 1 (local.get $w)))
      (local.get $f) (local.get $d) (local.get $r))
     (table $t 1 funcref) (elem declare func $one)
     (func $one (result i32) (i32.const 1))`,
    8,
    1.5,
    8,
    null,
  ],
  "calls: direct, recursive, indirect, of the host": [
    `(import "host" "tick" (func $tick (param i32) (result i32)))
     (type $unary (func (param i32) (result i32)))
     (table $ops 2 funcref) (elem (table $ops) (i32.const 0) func $double $next)
     (func $double (type $unary) (i32.shl (local.get 0) (i32.const 1)))
     (func $next (type $unary) (local $k i32)
       (local.set $k (i32.const 3))
       (loop $l (local.set 0 (i32.add (local.get 0) (local.get $k)))
         (br_if $l (local.tee $k (i32.sub (local.get $k) (i32.const 1)))))
       (local.get 0))
     (func $work (export "work") (param $n i32) (result i32) (local $x i32)
       (loop $again
         (local.set $x (i32.add (call $tick (local.get $n))
           (call_indirect $ops (type $unary) (local.get $x) (i32.and (local.get $n) (i32.const 1)))))
         (if (i32.gt_u (local.get $n) (i32.const 3))
           (then (local.set $x (i32.xor (local.get $x) (call $work (i32.sub (local.get $n) (i32.const 3)))))))
         (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
       (local.get $x))`,
    8,
  ],
  "exceptions caught around, inside and outside of the loop": [
    `(tag $a (param i32)) (tag $b)
     (func $thrower (param i32)
       (if (i32.eqz (i32.rem_u (local.get 0) (i32.const 3))) (then (throw $a (local.get 0))))
       (if (i32.eqz (i32.rem_u (local.get 0) (i32.const 5))) (then (throw $b))))
     (func $part (param $n i32) (param $limit i32) (result i32) (local $x i32)
       (block $caught (result i32)
         (try_table (result i32) (catch $a $caught)
           (loop $again
             (block $b (try_table (catch $b $b)
               (call $thrower (local.get $n))
               (local.set $x (i32.add (local.get $x) (i32.const 10)))))
             (local.set $x (i32.add (local.get $x) (i32.const 1)))
             (br_if $again (i32.ne (local.tee $n (i32.add (local.get $n) (i32.const 1))) (local.get $limit))))
           (local.get $x)))
       (i32.add (i32.mul (local.get $x) (i32.const 1000))))
     (func (export "work") (param $n i32) (result i32) (local $x i32)
       (loop $again
         (local.set $x (i32.add (i32.mul (local.get $x) (i32.const 5)) (call $part (local.get $n) (i32.add (local.get $n) (i32.const 7)))))
         (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
       (local.get $x))`,
    12,
  ],
  "legacy exceptions, with operands": [
    `(tag $a (param i32))
     (func (export "work") (param $n i32) (result i32) (local $x i32) (local $m i32)
       (local.set $m (i32.sub (local.get $n) (i32.const 2)))
       (i32.clz (local.get $n))
       (try (result i32)
         (do
           (i32.ctz (local.get $n))
           (loop $again
             (try (do (if (i32.and (local.get $n) (i32.const 1)) (then (throw $a (local.get $n)))))
               (catch $a (local.set $x (i32.add (local.get $x)))
                 (loop $inside (br_if $inside (i32.and (local.tee $m (i32.add (local.get $m) (i32.const 1))) (i32.const 3))))))
             (local.set $x (i32.add (local.get $x) (local.get $m)))
             (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
           (throw $a (i32.add (local.get $x))))
         (catch $a (i32.mul (i32.const 3))))
       (i32.sub))`,
    9,
  ],
  "exceptions that leave the function, tail calls from it": [
    `(tag $a (param i32))
     (func $throws (param $n i32) (result i32)
       (loop $again
         (if (i32.eq (local.get $n) (i32.const 2)) (then (throw $a (i32.const 40))))
         (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
       (i32.const 7))
     (func $rest (param i32 i32) (result i32) (i32.sub (i32.mul (local.get 0) (i32.const 3)) (local.get 1)))
     (func $tails (param $n i32) (result i32) (local $x i32)
       (loop $again
         (local.set $x (i32.add (local.get $x) (local.get $n)))
         (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
       (return_call $rest (local.get $x) (i32.const 11)))
     (func (export "work") (param $n i32) (result i32) (local $x i32)
       (loop $again
         (local.set $x (i32.add (i32.mul (local.get $x) (i32.const 3))
           (block $caught (result i32)
             (try_table (result i32) (catch $a $caught) (call $throws (local.get $n))))))
         (local.set $x (i32.xor (local.get $x) (call $tails (local.get $n))))
         (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
       (local.get $x))`,
    6,
  ],
  "branches on references, unreachable ends, loops that never repeat": [
    `(type $node (struct (field $next (ref null $node))))
     (func (export "work") (param $n i32) (result i32) (local $list (ref null $node)) (local $x i32) (local $set (ref $node))
       (local.set $set (struct.new $node (ref.null $node)))
       (loop $build
         (local.set $list (struct.new $node (local.get $list)))
         (br_if $build (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
       (block $done
         (loop $walk
           (loop $once (local.set $x (i32.add (local.get $x) (i32.const 1))))
           (local.set $list (struct.get $node $next (br_on_null $done (local.get $list))))
           (drop (struct.get $node $next (local.get $set)))
           (loop $forever
             (block $on (br_if $on (i32.and (local.get $x) (i32.const 1))) (br $walk))
             (local.set $x (i32.add (local.get $x) (i32.const 3)))
             (br $forever))
           (unreachable)))
       (local.get $x))`,
    7,
  ],
  "objects of the collected heap": [
    `(type $node (sub (struct (field $v i32) (field $next (ref null $node)))))
     (type $big (sub $node (struct (field $v i32) (field $next (ref null $node)) (field i64))))
     (func (export "work") (param $n i32) (result i32)
       (local $list (ref null $node)) (local $x i32) (local $at (ref null $node))
       (loop $again
         (local.set $list (if (result (ref $node)) (i32.and (local.get $n) (i32.const 1))
           (then (struct.new $node (local.get $n) (local.get $list)))
           (else (struct.new $big (local.get $n) (local.get $list) (i64.const 9)))))
         (local.set $at (local.get $list))
         (loop $walk
           (local.set $x (i32.add (i32.mul (local.get $x) (i32.const 3)) (struct.get $node $v (local.get $at))))
           (if (ref.test (ref $big) (local.get $at)) (then (local.set $x (i32.xor (local.get $x) (i32.const 1)))))
           (br_if $walk (i32.eqz (ref.is_null (local.tee $at (struct.get $node $next (local.get $at)))))))
         (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
       (local.get $x))`,
    9,
  ],
  "a loop that grows the memory, and many results": [
    `(memory 1)
     (func (export "work") (param $n i32) (result i32 i32 i64 i32 f64 f64 f64)
       (local $x i32) (local $d f64)
       (loop $again
         (drop (memory.grow (i32.const 1)))
         (i32.store (i32.mul (local.get $n) (i32.const 4096)) (local.get $n))
         (i32.store (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 4)) (local.get $x))
         (local.set $x (i32.add (local.get $x) (i32.load (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 65540)))))
         (local.set $x (i32.add (local.get $x) (memory.size)))
         (local.set $d (f64.add (local.get $d) (f64.convert_i32_u (local.get $x))))
         (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
       (local.get $x) (i32.const 4) (i64.const 5) (memory.size) (local.get $d) (f64.const 2) (f64.neg (local.get $d)))`,
    12,
  ],
};

const IMPORTS = { host: { tick: (n: number) => (n * 7) & 15 } };

function compile(options: EngineOptions, text: string): Module {
  return NewEngine(options).compile(`(module ${text})`);
}

/** Result of a call, or its error with the frames. */
function outcome(module: Module, args: readonly unknown[]): unknown {
  const { work } = module.instantiate({}, IMPORTS).exports as unknown as { work: Work };
  try {
    return work(...args);
  } catch (error) {
    assert.ok(error instanceof TrapError, String(error));
    return [error.message, error.frames.map(({ funcIndex, offset }) => [funcIndex, offset])];
  }
}

/** Compares a program with optimized code, entered at several turns; returns the number of frames that were. */
function compareTurns(text: string, args: readonly unknown[], options: EngineOptions = {}): number {
  let entered = 0;
  for (const bounds of ["guard", "explicit"] as const) {
    const expected = outcome(compile({ ...options, bounds }, text), args);
    for (let k = 0; k < 24; k++) {
      const [tierUpIterations, tierUpBatches] = [k >> 1, k % 2 === 1];
      const module = compile({ ...options, bounds, tier: "auto", tierUpIterations, tierUpBatches, verify: true }, text);
      const how = `${bounds}, after ${tierUpIterations} turns${tierUpBatches ? ", with a batch before" : ""}`;
      assert.deepEqual(outcome(module, args), expected, how);
      entered += module.loopsEntered;
    }
  }
  return entered;
}

for (const [name, [text, ...args]] of Object.entries(PROGRAMS)) {
  Deno.test({
    name: `loop entries: ${name}`,
    fn: () => assert.ok(compareTurns(text, args) >= 12, "frames were entered"),
  });
}

Deno.test({
  name: "loop entries: traps have the frames of one activation",
  fn() {
    const text = `(memory 1)
      (func $inner (param $n i32) (result i32)
        (loop $again
          (drop (i32.div_u (i32.const 100) (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
          (br $again))
        (unreachable))
      (func $outer (param $n i32) (result i32)
        (loop $again
          (br_if $again (i32.gt_u (local.tee $n (i32.sub (local.get $n) (i32.const 1))) (i32.const 5))))
        (i32.add (i32.const 1) (call $inner (local.get $n))))
      (func (export "work") (param $n i32) (result i32)
        (loop $again (drop (call $outer (local.get $n))) (br $again))
        (unreachable))`;
    assert.ok(compareTurns(text, [20]) >= 12);
    const outside = `(memory 1) (func (export "work") (param $n i32)
      (loop $again (local.set $n (i32.add (local.get $n) (i32.load (local.get $n)))) 
        (local.set $n (i32.add (local.get $n) (i32.const 9999))) (br $again)))`;
    assert.ok(compareTurns(outside, [0]) >= 12);
  },
});

/** `depth` loops inside each other; the innermost turns 20 times, the others once. */
function nested(depth: number): string {
  const turn = "(local.set $x (i32.add (i32.mul (local.get $x) (i32.const 3)) (local.get $n)))";
  let text = `(loop ${turn} (br_if 0 (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))`;
  for (let k = 0; k < depth; k++) text = `(loop ${turn} ${text} (br_if 0 (i32.eq (local.get $x) (i32.const 1))))`;
  return `(func (export "work") (param $n i32) (result i32) (local $x i32) ${text} (local.get $x))`;
}

Deno.test({
  name: "loop entries: loops that are nested too deeply to be repeated stay in baseline code",
  fn() {
    for (const [depth, isEntered] of [[50, true], [2000, false]] as const) {
      const expected = outcome(compile({}, nested(depth)), [20]);
      const module = compile({ tier: "auto", tierUpIterations: depth + 5 }, nested(depth));
      assert.deepEqual(outcome(module, [20]), expected);
      assert.equal(module.loopsEntered > 0, isEntered, `${depth} loops`);
    }
  },
});

/** Calls `work`; returns its outcome and the fuel that is left of `fuel`. */
function underFuel(module: Module, args: readonly unknown[], fuel: bigint): [unknown, bigint] {
  const instance = module.instantiate({}, IMPORTS);
  const { i64 } = instance.internal.store.thread.state;
  const before = i64[THREAD.FUEL >> 3];
  i64[THREAD.FUEL >> 3] = fuel;
  try {
    const { work } = instance.exports as unknown as { work: Work };
    let result: unknown;
    try {
      result = work(...args);
    } catch (error) {
      assert.ok(error instanceof TrapError, String(error));
      result = [error.message, error.frames.map(({ funcIndex, offset }) => [funcIndex, offset])];
    }
    return [result, i64[THREAD.FUEL >> 3]];
  } finally {
    i64[THREAD.FUEL >> 3] = before;
  }
}

Deno.test({
  name: "loop entries: fuel is the same at every turn, and runs out at the same place",
  fn() {
    let entered = 0;
    for (const name of ["both arms of an if, branches to every label", "nested loops, inner and outer state"]) {
      const [text, ...args] = PROGRAMS[name];
      const optimized = compile({ fuel: true }, text);
      const [, left] = underFuel(optimized, args, 1_000_000n);
      assert.ok(left < 1_000_000n - 100n);
      for (const fuel of [1_000_000n, 1_000_000n - left, (1_000_000n - left) / 2n, 40n, 0n]) {
        const expected = underFuel(optimized, args, fuel);
        for (let tierUpIterations = 0; tierUpIterations < 8; tierUpIterations++) {
          const module = compile({ fuel: true, tier: "auto", tierUpIterations, verify: true }, text);
          assert.deepEqual(underFuel(module, args, fuel), expected, `${fuel} of fuel, after ${tierUpIterations} turns`);
          entered += module.loopsEntered;
        }
      }
    }
    assert.ok(entered >= 16);
  },
});

/** A loop in the only function that runs, without calls; ends when `stop` is set in the memory, or after `n` turns. */
const ENDLESS = `(memory (export "memory") 1)
  (func (export "work") (param $n i64) (result i64) (local $x i64)
    (block $out (loop $again
      (local.set $x (i64.add (i64.mul (local.get $x) (i64.const 31)) (local.get $n)))
      (br_if $out (i32.load (i32.const 64)))
      (br_if $again (i64.ne (local.tee $n (i64.sub (local.get $n) (i64.const 1))) (i64.const 0)))))
    (local.get $x))`;

Deno.test({
  name: "loop entries: one endless call reaches optimized code that a thread has compiled",
  fn() {
    const module = compile({ tier: "auto" }, ENDLESS);
    const instance = module.instantiate({}, IMPORTS);
    const { exports } = instance as unknown as { exports: { work: Work; memory: { buffer: ArrayBuffer } } };
    const giveUp = performance.now() + 120_000;
    instance.internal.store.thread.attention.addWork({
      advance(now) {
        if (module.loopsEntered === 0 && now < giveUp) return now + 5;
        new Int32Array(exports.memory.buffer)[16] = 1;
        return undefined;
      },
    });
    exports.work(-1n);
    assert.equal(module.loopsEntered, 1);
  },
});

Deno.test({
  name: "loop entries: deadlines end a loop that was entered",
  fn() {
    // On a slow machine the first deadlines pass before the loop is entered.
    const entered = (tierUpIterations: number, deadline: number) => {
      const module = compile({ tier: "auto", tierUpIterations, interruptible: true }, ENDLESS);
      const instance = module.instantiate({}, IMPORTS);
      assert.throws(() => instance.call({ deadline }, "work", -1n), /interrupted/);
      return module.loopsEntered;
    };
    for (let tierUpIterations = 0; tierUpIterations < 3; tierUpIterations++) {
      let deadline = 50;
      while (entered(tierUpIterations, deadline) === 0) {
        assert.ok((deadline *= 4) < 100_000, "the loop is never entered");
      }
    }
  },
});

Deno.test({
  name: "loop entries: frames of waiting calls continue after others have run on the stack",
  async fn() {
    const text = `(import "host" "wait" (func $wait (param i32) (result i32)))
      (func (export "work") (param $n i32) (result i32) (local $x i32) (local $i i32)
        (loop $again
          (local.set $i (i32.const 3))
          (loop $inner (local.set $x (i32.add (i32.mul (local.get $x) (i32.const 3)) (local.get $i)))
            (br_if $inner (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
          (local.set $x (i32.add (local.get $x) (call $wait (local.get $n))))
          (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
        (local.get $x))`;
    const imports = { host: { wait: (n: number) => Promise.resolve(n * 3) } };
    const call = (options: EngineOptions) => {
      const module = compile(options, text);
      const instances = [4, 9, 6].map((n) => [module.instantiate({}, imports), n] as const);
      return { module, results: Promise.all(instances.map(([instance, n]) => instance.callAsync({}, "work", n))) };
    };
    const expected = await call({}).results;
    for (let tierUpIterations = 0; tierUpIterations < 8; tierUpIterations++) {
      const { module, results } = call({ tier: "auto", tierUpIterations });
      assert.deepEqual(await results, expected);
      assert.ok(module.loopsEntered > 0);
    }
  },
});

Deno.test({
  name: "loop entries: a collected module that was to be switched over no longer stops the polls of others",
  async fn() {
    (() => {
      // More turns than it has.
      const instance = compile({ tier: "auto", tierUpIterations: 1000 }, ENDLESS).instantiate({}, IMPORTS);
      assert.equal(instance.call({}, "work", 3n), 2946n);
    })();
    await settle();
    const other = compile({ tier: "optimizing", interruptible: true }, ENDLESS).instantiate({}, IMPORTS);
    let polls = 0;
    let isDone = false;
    other.internal.store.thread.attention.addWork({
      advance(_now, atPoll) {
        if (atPoll && ++polls > 100) throw new Error("the same poll stops again and again");
        return isDone ? undefined : Infinity;
      },
    });
    assert.equal(other.call({}, "work", 3n), 2946n);
    isDone = true;
  },
});
