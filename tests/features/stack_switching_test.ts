/**
 * Stack switching beyond the proposal's own tests (`deno task spec stack-switching`): values of every type pass between
 * computations; references on suspended stacks survive collections, and unreachable computations are freed; traps,
 * exhaustion, deadlines, fuel and promises inside of computations leave the thread as they found it; closed and reset
 * instances; computations across instances.
 */
import assert from "node:assert/strict";
import {
  type EngineOptions,
  ExhaustionError,
  type Instance,
  NewEngine,
  TrapError,
  WasmException,
} from "../../engine/mod.ts";
import { encodeModule } from "../../engine/binary/encode.ts";
import { decodeModule } from "../../engine/binary/decode.ts";
import { parseModule } from "../../engine/text/parse_module.ts";
import { printModule } from "../../engine/text/print.ts";

const FEATURES = { features: { "stack-switching": true } } as const;
const TIERS = ["optimizing", "baseline"] as const;

/** A test with the code of each compiler, and with code that is compiled at its first call and replaced soon. */
function testTiers(name: string, body: (options: EngineOptions) => void | Promise<void>): void {
  for (const tier of TIERS) Deno.test(`${name} (${tier})`, () => body({ tier }));
  Deno.test(`${name} (both)`, () => body({ tier: "auto", lazyFrom: 0, tierUpCalls: 2 }));
}

function instantiate(text: string, options: EngineOptions = {}, imports = {}): Instance {
  return NewEngine({ ...FEATURES, ...options }).compile(text).instantiate({}, imports);
}

function threadOf(instance: Instance) {
  return instance.internal.store.thread;
}

/** Runs `body` and checks that the thread has no frames, prompts or continuations more than before. */
function leavesNothing(instance: Instance, body: () => void): void {
  const thread = threadOf(instance);
  const before = thread.state.word(8);
  body();
  assert.equal(thread.state.word(8), before, "the guest stack pointer");
  assert.equal(thread.continuations.isInside, false);
  assert.equal(thread.depth, 0);
}

/** A counter that yields the numbers from `$from` on, in a computation. */
const GENERATOR = `
  (type $f (func)) (type $k (cont $f))
  (type $start (func (param i32))) (type $begin (cont $start))
  (tag $yield (param i32))
  (elem declare func $count)
  (func $count (type $start) (param $from i32)
    (loop $next
      (suspend $yield (local.get $from))
      (local.set $from (i32.add (local.get $from) (i32.const 1)))
      (br $next)))
  (func $counter (param $from i32) (result (ref $k))
    (cont.bind $begin $k (local.get $from) (cont.new $begin (ref.func $count))))
  (func $next (param $k (ref null $k)) (result i32 (ref $k))
    (block $yielded (result i32 (ref $k))
      (resume $k (on $yield $yielded) (local.get $k))
      (unreachable)))`;

testTiers("the feature is off by default, and errors name it", (options) => {
  const engine = NewEngine(options);
  for (
    const text of [
      "(module (type $f (func)) (type (cont $f)))",
      "(module (func (param contref)))",
      "(module (tag $t) (func (suspend $t)))",
      "(module (tag (result i32)))",
      "(module (func (drop (ref.null cont))))",
      "(module (func (local contref)))",
      "(module (func (block (result contref) (unreachable)) (drop)))",
    ]
  ) assert.throws(() => engine.compile(text), { message: /stack-switching/ }, text);
});

Deno.test("modules with continuations are equal in both formats", () => {
  const module = parseModule(`(module ${GENERATOR}
    (rec (type $sf (func (param (ref null $sk)))) (type $sk (sub (cont $sf))))
    (tag $sw)
    (func (param contref nullcontref (ref cont) (ref null nocont)))
    (func (param $k (ref $sk)) (drop (switch $sk $sw (local.get $k))))
    (func (param $k (ref $k)) (param $e exnref)
      (resume $k (on $sw switch) (local.get $k))
      (resume_throw $k $yield (on $sw switch) (i32.const 1) (local.get $k))
      (resume_throw_ref $k (local.get $e) (local.get $k))))`);
  const bytes = new Uint8Array(encodeModule(module));
  assert.deepEqual(encodeModule(decodeModule(bytes)), encodeModule(module));
  const again = encodeModule(parseModule(printModule(decodeModule(bytes))));
  assert.deepEqual(encodeModule(decodeModule(again)), again);
  assert.match(printModule(decodeModule(bytes)), /\(on \$yield .*\(on \$sw switch\)/s);
});

for (const bounds of ["guard", "explicit"] as const) {
  for (const fuel of [false, true]) {
    const label = `${bounds}${fuel ? ", metered" : ""}`;

    testTiers(`values of every type pass in both directions, ${label}`, (tier) => {
      const options = { ...tier, bounds, fuel, interruptible: fuel };
      const all = "i32 i64 f32 f64 v128 externref i32 i64 f32 f64 i32 i32 i32 i32";
      const locals = all.split(" ").map((_, k) => `(local.get ${k})`).join(" ");
      const instance = instantiate(
        `(module
        (type $g (func (param ${all}) (result ${all}))) (type $c (cont $g))
        (type $h (func (result ${all}))) (type $d (cont $h))
        (tag $swap (param ${all}) (result ${all}))
        (elem declare func $twice)
        (func $twice (type $g) (suspend $swap (suspend $swap ${locals})))
        (func (export "run") (param i32 i64 f32 f64 i64 externref) (result i32 i64 f32 f64 i64 externref i32)
          (local $v v128) (local $k (ref null $c))
          (local.set $v (i64x2.splat (local.get 4)))
          (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get $v) (local.get 5)
          (i32.const 6) (i64.const 7) (f32.const 8) (f64.const 9) (i32.const 10) (i32.const 11) (i32.const 12) (i32.const 13)
          (cont.new $c (ref.func $twice))
          (block $first (param ${all} (ref $c)) (result ${all} (ref $c))
            (resume $c (on $swap $first)) (unreachable))
          (block $second (param ${all} (ref $c)) (result ${all} (ref $c))
            (resume $c (on $swap $second)) (unreachable))
          (resume $c)
          (drop) (drop) (drop) (local.set 0) (drop) (drop) (drop) (drop)
          (local.set 5) (local.set $v)
          (i64x2.extract_lane 1 (local.get $v)) (local.get 5) (local.get 0)))`,
        options,
      );
      const value = { value: 1 };
      const { run } = instance.exports as Record<string, (...args: unknown[]) => unknown>;
      assert.deepEqual(run(-5, -6n, 1.5, 2.5, 77n, value), [-5, -6n, 1.5, 2.5, 77n, value, 10]);
    });

    testTiers(`computations nest, return and suspend through each other, ${label}`, (tier) => {
      const options = { ...tier, bounds, fuel, interruptible: fuel };
      const instance = instantiate(
        `(module ${GENERATOR}
        (type $r (func (result i32))) (type $rk (cont $r))
        (tag $outer (param i32) (result i32))
        (elem declare func $inner $middle)
        (func $inner (type $r) (i32.add (suspend $outer (i32.const 1)) (suspend $outer (i32.const 2))))
        ;; $middle handles the yields of a counter, and lets $outer pass
        (func $middle (type $r) (local $k (ref null $k)) (local $sum i32)
          (local.set $k (call $counter (i32.const 100)))
          (call $next (local.get $k)) (local.set $k) (local.set $sum)
          (resume $rk (cont.new $rk (ref.func $inner)))
          (local.set $sum (i32.add (local.get $sum)))
          (call $next (local.get $k)) (drop)
          (i32.add (local.get $sum)))
        (type $a (func (param i32) (result i32))) (type $ak (cont $a))
        (func (export "run") (param $n i32) (result i32) (local $k (ref null $ak)) (local $v i32)
          (block $again (result i32 (ref $ak))
            (resume $rk (on $outer $again) (cont.new $rk (ref.func $middle)))
            (return))
          (loop $more (param i32 (ref $ak))
            (local.set $k) (local.set $v)
            (i32.mul (local.get $v) (local.get $n)) (local.get $k)
            (resume $ak (on $outer $more))
            (return))
          (unreachable)))`,
        options,
      );
      // 100 + (1 * n + 2 * n) + 101
      leavesNothing(instance, () => assert.equal(instance.call({}, "run", 10), 231));
      leavesNothing(instance, () => assert.equal(instance.call({}, "run", -1), 198));
    });

    testTiers(`exceptions leave computations and enter them, ${label}`, (tier) => {
      const options = { ...tier, bounds, fuel, interruptible: fuel };
      const instance = instantiate(
        `(module
        (import "h" "throw" (func $host (param i32)))
        ${GENERATOR}
        (tag $e (param i32))
        (type $r (func (result i32))) (type $rk (cont $r))
        (elem declare func $catches $throws $hosted)
        (func $catches (type $r)
          (block $h (result i32) (try_table (result i32) (catch $e $h) (suspend $yield (i32.const 0)) (i32.const 1))))
        (func $throws (type $r) (suspend $yield (i32.const 0)) (throw $e (i32.const 6)))
        (func $hosted (type $r) (call $host (i32.const 0)) (i32.const 5))
        (func (export "enter") (result i32) (local $k (ref null $rk))
          (local.set $k (block (result (ref $rk))
            (block $h (result i32 (ref $rk))
              (resume $rk (on $yield $h) (cont.new $rk (ref.func $catches))) (unreachable))
            (local.set $k) (drop) (ref.as_non_null (local.get $k))))
          (resume_throw $rk $e (i32.const 7) (local.get $k)))
        (func (export "leave") (result i32) (local $k (ref null $rk))
          (block $h (result i32 (ref $rk))
            (resume $rk (on $yield $h) (cont.new $rk (ref.func $throws))) (unreachable))
          (local.set $k) (drop)
          (block $c (result i32) (try_table (result i32) (catch $e $c) (resume $rk (local.get $k)))))
        (func (export "uncaught") (result i32) (resume_throw $rk $e (i32.const 8) (cont.new $rk (ref.func $catches))))
        (func (export "hosted") (result i32)
          (block $c (try_table (catch_all $c) (return (resume $rk (cont.new $rk (ref.func $hosted))))))
          (i32.const 9)))`,
        options,
        {
          h: {
            throw: () => {
              throw new Error("from the host");
            },
          },
        },
      );
      leavesNothing(instance, () => assert.equal(instance.call({}, "enter"), 7));
      leavesNothing(instance, () => assert.equal(instance.call({}, "leave"), 6));
      leavesNothing(instance, () => assert.equal(instance.call({}, "hosted"), 9));
      leavesNothing(instance, () =>
        assert.throws(() => instance.call({}, "uncaught"), (error) => {
          assert.ok(error instanceof WasmException);
          assert.deepEqual(error.payload, [8]);
          return true;
        }));
    });

    testTiers(`traps and exhaustion inside of computations, ${label}`, (tier) => {
      const options = { ...tier, bounds, fuel, interruptible: fuel };
      const instance = instantiate(
        `(module ${GENERATOR} (memory 1)
        (elem declare func $trap $deep $unhandled $endless)
        (func $trap (type $f) (drop (i32.load (i32.const -1))))
        (func $endless (type $f) (call $endless))
        (func $dig (param $n i32) (result i32)
          (if (result i32) (local.get $n)
            (then (i32.add (i32.const 1) (call $dig (i32.sub (local.get $n) (i32.const 1)))))
            (else (suspend $yield (i32.const 0)) (i32.const 0))))
        (global $depth (mut i32) (i32.const 0))
        (func $deep (type $f) (global.set $depth (call $dig (i32.const 5000))))
        (func $unhandled (type $f) (suspend $other))
        (tag $other)
        (func (export "trap") (resume $k (cont.new $k (ref.func $trap))))
        (func (export "endless") (resume $k (cont.new $k (ref.func $endless))))
        (func (export "unhandled") (drop (block $h (result i32 (ref $k))
          (resume $k (on $yield $h) (cont.new $k (ref.func $unhandled))) (unreachable))) (drop))
        (func (export "deep") (result i32) (local $k (ref null $k))
          (call $next (cont.new $k (ref.func $deep))) (local.set $k) (drop)
          (resume $k (local.get $k)) (global.get $depth)))`,
        options,
      );
      leavesNothing(instance, () => {
        assert.throws(() => instance.call({}, "trap"), (error) => {
          assert.ok(error instanceof TrapError && error.code === "memory-out-of-bounds");
          // The frames of the code that has resumed the computation follow.
          assert.equal(error.frames.length, 2);
          return true;
        });
      });
      leavesNothing(instance, () => assert.throws(() => instance.call({}, "endless"), ExhaustionError));
      leavesNothing(instance, () => {
        assert.throws(() => instance.call({}, "unhandled"), { code: "unhandled-tag", message: /unhandled tag/ });
      });
      for (let k = 0; k < 3; k++) leavesNothing(instance, () => assert.equal(instance.call({}, "deep"), 5000));
    });
  }
}

for (const bounds of ["guard", "explicit"] as const) {
  testTiers(`memories grow while computations of two instances are suspended, ${bounds}`, (options) => {
    const other = NewEngine({ ...FEATURES, bounds, tier: options.tier === "baseline" ? "optimizing" : "baseline" });
    const engine = NewEngine({ ...FEATURES, ...options, bounds });
    const shared = (value: number) => `
      (type $f (func (result i32))) (type $k (cont $f))
      (memory 1)
      (func $step (export "step") (type $f)
        (i32.store (i32.const 8) (i32.const ${value}))
        (suspend $yield)
        (i32.store (i32.const 0x1fff8) (i32.const ${value * 10}))
        (suspend $yield)
        (i32.add (i32.load (i32.const 8)) (i32.load (i32.const 0x1fff8))))
      (func (export "grow") (drop (memory.grow (i32.const 1))))`;
    const library = other.compile(`(module (tag $yield (export "yield")) ${shared(1)})`).instantiate();
    const instance = engine.compile(`(module
      (import "l" "yield" (tag $yield))
      (import "l" "step" (func $theirs (result i32)))
      (import "l" "grow" (func $grow))
      ${shared(2)}
      (elem declare func $step $theirs)
      (func $next (param $k (ref null $k)) (result (ref $k))
        (block $h (result (ref $k)) (drop (resume $k (on $yield $h) (local.get $k))) (unreachable)))
      (func (export "run") (result i32) (local $a (ref null $k)) (local $b (ref null $k))
        (local.set $a (call $next (cont.new $k (ref.func $theirs))))
        (local.set $b (call $next (cont.new $k (ref.func $step))))
        (call $grow) (drop (memory.grow (i32.const 1)))
        (local.set $a (call $next (local.get $a)))
        (local.set $b (call $next (local.get $b)))
        (i32.add (i32.mul (resume $k (local.get $a)) (i32.const 100)) (resume $k (local.get $b)))))`)
      .instantiate({}, { l: library.exports });
    assert.equal(instance.call({}, "run"), 1122);
  });
}

testTiers("handlers branch out of blocks with operands below, and to the end of the function", (options) => {
  const instance = instantiate(
    `(module
    (type $f (func (param i32) (result i32))) (type $k (cont $f)) (type $g (func (result i32))) (type $j (cont $g))
    (tag $a (param i32 i64 f64 v128 i32 i64)) (tag $b (param i32))
    (elem declare func $body)
    (func $body (type $f)
      (suspend $a (local.get 0) (i64.const 2) (f64.const 3) (v128.const i64x2 4 5) (i32.const 6) (i64.const 7))
      (suspend $b (i32.add (local.get 0) (i32.const 1)))
      (suspend $b (i32.add (local.get 0) (i32.const 2)))
      (i32.add (local.get 0) (i32.const 3)))
    ;; The label is that of the function: the handler returns results in registers and in memory.
    (func $first (param $n i32) (result i32 i64 f64 v128 i32 i64 (ref $j))
      i64.const 9
      i32.const 8
      (resume $k (on $a 0) (local.get $n) (cont.new $k (ref.func $body)))
      unreachable)
    (func (export "run") (param $n i32) (result i32) (local $j (ref null $j)) (local $sum i32)
      (call $first (local.get $n))
      local.set $j
      i32.wrap_i64 local.set $sum
      local.get $sum i32.add local.set $sum
      i64x2.extract_lane 1 i32.wrap_i64 local.get $sum i32.add local.set $sum
      i32.trunc_f64_s local.get $sum i32.add local.set $sum
      i32.wrap_i64 local.get $sum i32.add local.set $sum
      local.get $sum i32.add local.set $sum
      i32.const 1000
      (block $done
        (loop $more
          (block $yielded (result i32 (ref $j))
            i64.const 1
            i32.const 5
            (resume $j (on $b $yielded) (local.get $j))
            local.get $sum i32.add local.set $sum
            local.get $sum i32.add local.set $sum
            drop
            br $done)
          local.set $j
          local.get $sum i32.add local.set $sum
          br $more))
      local.get $sum
      i32.add))`,
    options,
  );
  for (const n of [0, 7]) assert.equal(instance.call({}, "run", n), 1000 + (23 + n) + 3 * n + 6 + 5);
});

testTiers("there are handlers with labels and for switches, and no others", (options) => {
  const bytes = new Uint8Array(encodeModule(parseModule(`(module
    (type $f (func)) (type $k (cont $f)) (tag $t)
    (func (param (ref $k)) (resume $k (on $t switch) (local.get 0))))`)));
  const at = bytes.findLastIndex((byte, k) => byte === 0xe3 && bytes[k + 1] === 1);
  assert.deepEqual([...bytes.subarray(at, at + 5)], [0xe3, 1, 1, 1, 0]);
  const engine = NewEngine({ ...FEATURES, ...options });
  engine.compile(bytes);
  bytes[at + 3] = 2;
  assert.throws(() => engine.compile(bytes), /malformed on clause/);
});

testTiers("no continuation is bound to one with more parameters", (options) => {
  // The results of the type before it are those parameters.
  const text = `(module
    (type $before (func (result i32))) (type $from (func (param i64))) (type $to (func (param i32 i64)))
    (type $k (cont $from)) (type $j (cont $to))
    (func (param (ref $k)) (drop (cont.bind $k $j (local.get 0)))))`;
  assert.throws(() => instantiate(text, options), /no arguments make a continuation/);
});

testTiers("a computation is resumed with as many handlers as possible", (options) => {
  const MOST = 999;
  const used = [0, 1, 500, MOST - 1];
  const suspends = used.map((tag, k) =>
    `(if (i32.eq (local.get 0) (i32.const ${k})) (then (return (suspend $t${tag} (i32.const ${k})))))`
  );
  const textOf = (all: readonly number[]) =>
    `(module
    (type $f (func (param i32) (result i32))) (type $k (cont $f))
    ${all.map((k) => `(tag $t${k} (param i32) (result i32))`).join(" ")}
    (elem declare func $body)
    (func $body (type $f) ${suspends.join("\n")} (i32.const -1))
    (func (export "run") (param i32) (result i32)
      (block $odd (result i32 (ref $k))
        (block $even (result i32 (ref $k))
          (return (resume $k ${all.map((k) => `(on $t${k} ${k % 2 === 0 ? "$even" : "$odd"})`).join(" ")}
            (local.get 0) (cont.new $k (ref.func $body)))))
        (drop)
        (return (i32.add (i32.const 10))))
      (drop)
      (i32.add (i32.const 20))))`;
  const numbers = (length: number) => Array.from({ length }, (_, k) => k);
  const instance = instantiate(textOf(numbers(MOST)), options);
  assert.deepEqual([0, 1, 2, 3, 4].map((k) => instance.call({}, "run", k)), [10, 21, 12, 13, -1]);
  assert.throws(() => instantiate(textOf(numbers(MOST + 1)), options), /too many handlers/);
});

testTiers("collections at every allocation find the objects of suspended computations", (options) => {
  const instance = instantiate(
    `(module
    (rec (type $box (struct (field i32) (field (ref null $box)))))
    (type $f (func (param i32) (result i32))) (type $k (cont $f))
    (type $pass (func (param (ref $box)) (result i32))) (type $p (cont $pass))
    (tag $wait (param (ref $box)) (result (ref $box)))
    (elem declare func $body)
    ;; Objects in a local, below the operands of a suspension, in its payload and in its answer.
    (func $body (type $f) (local $kept (ref null $box))
      (local.set $kept (struct.new $box (local.get 0) (ref.null $box)))
      (struct.new $box (i32.const 10) (local.get $kept))
      (suspend $wait (struct.new $box (i32.const 100) (ref.null $box)))
      (struct.get $box 0)
      (call $sum)
      (i32.add (struct.get $box 0 (local.get $kept))))
    (func $sum (param $b (ref $box)) (param $x i32) (result i32)
      (i32.add (i32.add (local.get $x) (struct.get $box 0 (local.get $b)))
        (struct.get $box 0 (struct.get $box 1 (local.get $b)))))
    (func $begin (param $n i32) (result (ref $box) (ref $p))
      (block $h (result (ref $box) (ref $p))
        (resume $k (on $wait $h) (local.get $n) (cont.new $k (ref.func $body)))
        (unreachable)))
    (func (export "run") (param $n i32) (result i32)
      (local $p (ref null $p)) (local $q (ref null $p)) (local $a (ref null $box)) (local $b (ref null $box))
      (call $begin (local.get $n)) (local.set $p) (local.set $a)
      (call $begin (i32.const 3)) (local.set $q) (local.set $b)
      (i32.add
        (i32.add
          (resume $p (struct.new $box (i32.const 1000) (local.get $a)) (local.get $p))
          (resume $p (struct.new $box (i32.const 2000) (local.get $b)) (local.get $q)))
        (i32.add (struct.get $box 0 (local.get $a)) (struct.get $box 0 (local.get $b))))))`,
    options,
  );
  const { heap } = instance.internal.store;
  heap.stress(1);
  try {
    // Each computation: its answer, 10, and its argument twice.
    for (let n = 0; n < 20; n++) assert.equal(instance.call({}, "run", n), 1010 + 2 * n + 2010 + 6 + 200);
  } finally {
    heap.stress(0);
  }
});

testTiers(
  "references on suspended stacks survive collections; unreachable computations are freed, cycles too",
  (options) => {
    for (const objects of [false, true]) {
      const box = objects ? `(type $box (struct (field (mut externref)) (field (mut (ref null $k)))))` : "";
      const make = objects ? "(struct.new $box (local.get $x) (ref.null $k))" : "(local.get $x)";
      const kept = objects ? "(ref null $box)" : "externref";
      const read = objects ? "(struct.get $box 0 (local.get $kept))" : "(local.get $kept)";
      const instance = instantiate(
        `(module
      (rec (type $f (func (param externref))) (type $k0 (cont $f)) (type $g (func)) (type $k (cont $g)) ${box})
      (import "h" "next" (func $fresh (result externref)))
      (import "h" "given" (func $given (param externref)))
      (tag $wait)
      (table $all 0 (ref null $k))
      (elem declare func $holds)
      (func $holds (type $f) (param $x externref) (local $kept ${kept})
        (local.set $kept ${make})
        (suspend $wait)
        (call $given ${read}))
      (func $suspended (result (ref $k))
        (block $h (result (ref $k))
          (resume $k (on $wait $h) (cont.bind $k0 $k (call $fresh) (cont.new $k0 (ref.func $holds))))
          (unreachable)))
      (func (export "make") (param $n i32)
        (drop (table.grow $all (ref.null $k) (local.get $n)))
        (loop $l
          (table.set $all (local.tee $n (i32.sub (local.get $n) (i32.const 1))) (call $suspended))
          (br_if $l (local.get $n))))
      (func (export "finish") (param $i i32) (resume $k (table.get $all (local.get $i))))
      (func (export "drop") (param $n i32)
        (loop $l (drop (call $suspended)) (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
      (func (export "clear") (table.fill $all (i32.const 0) (ref.null $k) (table.size $all))))`,
        options,
        {
          h: { next: () => ({ number: made++ }), given: (value: { number: number }) => given.push(value.number) },
        },
      );
      let made = 0;
      const given: number[] = [];
      const count = 3000;
      const { live } = threadOf(instance).continuations;
      const before = live.length;
      instance.call({}, "make", count);
      // More than the threshold of sweeps, each with an object that only its frames hold.
      instance.call({}, "drop", 20_000);
      instance.internal.store.sweeps.collect();
      assert.ok(live.length - before < count + 10_000, `${live.length} live`);
      for (let k = 0; k < count; k += 7) instance.call({}, "finish", k);
      assert.deepEqual(given, Array.from({ length: Math.ceil(count / 7) }, (_, k) => count - 1 - 7 * k));
      instance.call({}, "clear");
      instance.internal.store.sweeps.sweepContinuations();
      assert.ok(live.length - before <= 2, `${live.length} live, ${before} before`);
    }
  },
);

testTiers("a computation that holds itself is freed", (options) => {
  const instance = instantiate(
    `(module
    (rec (type $f (func)) (type $k (cont $f)) (type $box (struct (field (mut (ref null $k))))))
    (tag $give (param (ref $box)))
    (elem declare func $self)
    (func $self (type $f) (local $b (ref null $box))
      (local.set $b (struct.new $box (ref.null $k)))
      (suspend $give (ref.as_non_null (local.get $b)))
      (struct.set $box 0 (local.get $b) (ref.null $k)))
    (func (export "run") (param $n i32) (local $b (ref null $box)) (local $k (ref null $k))
      (loop $l
        (block $h (result (ref $box) (ref $k))
          (resume $k (on $give $h) (cont.new $k (ref.func $self))) (unreachable))
        (local.set $k) (local.set $b)
        (struct.set $box 0 (local.get $b) (local.get $k))
        (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))))`,
    options,
  );
  const { live } = threadOf(instance).continuations;
  const before = live.length;
  instance.call({}, "run", 5000);
  instance.internal.store.sweeps.collect();
  assert.ok(live.length - before <= 2, `${live.length} live, ${before} before`);
});

testTiers(
  "sweeps are rare while computations are resumed, but frames of unreachable ones are freed soon",
  (options) => {
    const instance = instantiate(
      `(module ${GENERATOR}
    (func (export "values") (param $n i32) (local $k (ref null $k))
      (local.set $k (call $counter (i32.const 0)))
      (loop $l
        (call $next (local.get $k)) (local.set $k) (drop)
        (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
    (func (export "abandon") (param $n i32)
      (loop $l
        (call $next (call $counter (local.get $n))) (drop) (drop)
        (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))))`,
      options,
    );
    const { continuations: { live }, exceptions } = threadOf(instance);
    instance.internal.store.sweeps.sweepContinuations();
    // Each value takes a reference, which is consumed when it is resumed.
    instance.call({}, "values", 7000);
    assert.ok(exceptions.identities > 7000, `${exceptions.identities} references`);
    instance.call({}, "values", 50_000);
    assert.ok(exceptions.identities < 10_000, `${exceptions.identities} references`);
    instance.call({}, "abandon", 20_000);
    assert.ok(live.length < 2100, `${live.length} live`);
  },
);

testTiers("a deadline ends a call inside of a computation, and fuel is that of the call", (options) => {
  const instance = instantiate(
    `(module ${GENERATOR}
    (elem declare func $spin)
    (func $spin (type $f) (loop $l (br $l)))
    (func (export "spin") (resume $k (cont.new $k (ref.func $spin))))
    (func (export "count") (param $n i32) (result i32) (local $k (ref null $k)) (local $v i32)
      (local.set $k (call $counter (i32.const 1)))
      (loop $l
        (call $next (local.get $k)) (local.set $k) (local.set $v)
        (br_if $l (i32.lt_u (local.get $v) (local.get $n))))
      (local.get $v)))`,
    { ...options, interruptible: true, fuel: true },
  );
  leavesNothing(instance, () => {
    assert.throws(() => instance.call({ deadline: 20 }, "spin"), { code: "interrupted" });
  });
  leavesNothing(instance, () => {
    assert.throws(() => instance.call({ fuel: 10_000 }, "spin"), { code: "out-of-fuel" });
  });
  const [small, large] = [{ fuel: 100_000 }, { fuel: 100_000 }];
  assert.equal(instance.call(small, "count", 10), 10);
  assert.equal(instance.call(large, "count", 20), 20);
  assert.equal((100_000 - large.fuel) % 10, (100_000 - small.fuel) % 10);
  assert.ok(large.fuel < small.fuel);
});

testTiers("computations wait for promises, and are preempted", async (options) => {
  const instance = instantiate(
    `(module
    (import "h" "wait" (func $wait (param i32) (result i32)))
    ${GENERATOR}
    (type $r (func (param i32) (result i32))) (type $rk (cont $r))
    (elem declare func $waits $inner $long)
    (func $inner (type $r) (param $n i32) (result i32)
      (suspend $yield (call $wait (local.get $n)))
      (call $wait (i32.const 3)))
    (func $waits (type $r) (param $n i32) (result i32) (resume $rk (local.get $n) (cont.new $rk (ref.func $inner))))
    (func $long (type $r) (param $n i32) (result i32)
      (loop $l (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))) (i32.const 4))
    (type $ur (func (result i32))) (type $uk (cont $ur))
    (func (export "waits") (param $n i32) (result i32) (local $k (ref null $uk)) (local $v i32)
      (block $h (result i32 (ref $uk))
        (resume $rk (on $yield $h) (local.get $n) (cont.new $rk (ref.func $waits)))
        (return))
      (local.set $k) (local.set $v)
      (i32.add (local.get $v) (resume $uk (local.get $k))))
    (func (export "long") (param $n i32) (result i32)
      (resume $rk (local.get $n) (cont.new $rk (ref.func $long)))))`,
    { ...options, interruptible: true },
    { h: { wait: (n: number) => Promise.resolve(n * 10) } },
  );
  const thread = threadOf(instance);
  const calls = [1, 2, 3, 4].map((n) => instance.callAsync({}, "waits", n));
  assert.deepEqual(await Promise.all(calls), [40, 50, 60, 70]);
  const slice = thread.sliceMs;
  thread.sliceMs = 1;
  try {
    const before = thread.preemptions;
    // A call that is long enough on any machine.
    for (let n = 1 << 20; thread.preemptions === before; n *= 2) {
      assert.equal(await instance.callAsync({}, "long", n), 4);
    }
    await assert.rejects(instance.callAsync({ deadline: 30 }, "long", 0), { code: "interrupted" });
  } finally {
    thread.sliceMs = slice;
  }
  leavesNothing(instance, () => {});
  assert.equal(thread.stack.suspended.size, 0);
});

testTiers("computations do not suspend across JavaScript", (options) => {
  const instance: Instance = instantiate(
    `(module
    (import "h" "back" (func $back))
    ${GENERATOR}
    (elem declare func $through)
    (func $through (type $f) (call $back))
    (func (export "inner") (suspend $yield (i32.const 1)))
    (func (export "run") (result i32)
      (block $h (result i32 (ref $k)) (resume $k (on $yield $h) (cont.new $k (ref.func $through))) (return (i32.const 2)))
      (drop)))`,
    options,
    { h: { back: () => assert.throws(() => instance.call({}, "inner"), { code: "unhandled-tag" }) } },
  );
  leavesNothing(instance, () => assert.equal(instance.call({}, "run"), 2));
});

testTiers("functions of other instances, and of the host, are computations", (options) => {
  // A library in the other tier.
  const other = NewEngine({ ...FEATURES, tier: options.tier === "baseline" ? "optimizing" : "baseline" });
  const engine = NewEngine({ ...FEATURES, ...options });
  const library = other.compile(`(module
    (tag $yield (export "yield") (param i32))
    (global $n (mut i32) (i32.const 0))
    (func (export "step") (global.set $n (i32.add (global.get $n) (i32.const 1)))
      (suspend $yield (global.get $n)) (suspend $yield (i32.mul (global.get $n) (i32.const 10)))))`).instantiate();
  const seen: number[] = [];
  const instance = engine.compile(`(module
    (type $f (func)) (type $k (cont $f)) (type $p (func (param i32))) (type $pk (cont $p))
    (import "l" "yield" (tag $yield (param i32)))
    (import "l" "step" (func $step (type $f)))
    (import "h" "see" (func $see (type $p)))
    (elem declare func $step $see $indirect)
    (func $indirect (type $f) (call $step))
    (func (export "run") (param $own i32) (result i32 i32) (local $k (ref null $k)) (local $a i32) (local $b i32)
      (local.set $k (cont.new $k (select (result (ref $f)) (ref.func $indirect) (ref.func $step) (local.get $own))))
      (block $h (result i32 (ref $k)) (resume $k (on $yield $h) (local.get $k)) (unreachable))
      (local.set $k) (local.set $a)
      (block $i (result i32 (ref $k)) (resume $k (on $yield $i) (local.get $k)) (unreachable))
      (local.set $k) (local.set $b)
      (resume $k (local.get $k))
      (resume $pk (local.get $b) (cont.new $pk (ref.func $see)))
      (local.get $a) (local.get $b)))`).instantiate({}, {
    l: library.exports,
    h: { see: (n: number) => seen.push(n) },
  });
  assert.deepEqual(instance.call({}, "run", 0), [1, 10]);
  assert.deepEqual(instance.call({}, "run", 1), [2, 20]);
  assert.deepEqual(seen, [10, 20]);
});

Deno.test("references to continuations do not reach JavaScript", () => {
  const instance = instantiate(`(module ${GENERATOR}
    (table (export "table") 1 (ref null $k))
    (global (export "global") (mut contref) (ref.null cont))
    (func (export "result") (result contref) (call $counter (i32.const 0)))
    (func (export "param") (param (ref null $k))))`);
  const { table, result, param } = instance.exports as unknown as Record<string, (...args: unknown[]) => unknown>;
  assert.throws(() => result(), { name: "TypeError", message: /continuation/ });
  assert.throws(() => param(null), { name: "TypeError", message: /continuation/ });
  assert.throws(() => (table as unknown as { get(index: number): unknown }).get(0), { name: "TypeError" });
});

testTiers(
  "an instance with a suspended computation is not reset, and keeps its memory when it is closed",
  (options) => {
    const instance = instantiate(
      `(module ${GENERATOR} (memory 1)
    (global $k (mut (ref null $k)) (ref.null $k))
    (func (export "begin") (call $next (call $counter (i32.const 5))) (global.set $k) (drop))
    (func (export "end") (global.set $k (ref.null $k))))`,
      options,
    );
    instance.call({}, "begin");
    assert.throws(() => instance.reset(), { message: /not idle/ });
    instance.call({}, "end");
    instance.reset();
    instance.call({}, "begin");
    instance.close();
    assert.throws(() => instance.call({}, "end"), { message: /closed/ });
  },
);

for (const tier of TIERS) {
  Deno.test(`the verifier of machine code refuses what it has no rules for (${tier})`, () => {
    const engine = NewEngine({ ...FEATURES, tier, verify: "code" });
    assert.throws(() => engine.compile(`(module ${GENERATOR})`), { message: /stack switching/ });
    engine.compile('(module (func (export "f") (result i32) (i32.const 1)))').instantiate();
  });
}

Deno.test("the baseline tier compiles all functions with these instructions", () => {
  const tiers: string[] = [];
  const explain: EngineOptions["explain"] = ({ functions }) => tiers.push(...functions.map(({ tier }) => `${tier}`));
  NewEngine({ ...FEATURES, tier: "baseline", explain }).compile(`(module ${GENERATOR})`);
  assert.deepEqual(tiers, ["baseline", "baseline", "baseline"]);
});

Deno.test("deterministic code reaches the same depth of computations in both tiers", () => {
  const text = `(module ${GENERATOR}
    (global $depth (export "depth") (mut i32) (i32.const 0))
    (elem declare func $deeper)
    (func $deeper (type $f) (local i64 i64)
      (global.set $depth (i32.add (global.get $depth) (i32.const 1)))
      (resume $k (cont.new $k (ref.func $deeper))))
    (func (export "run") (call $deeper)))`;
  const depths = TIERS.map((tier) => {
    const instance = instantiate(text, { tier, deterministic: true });
    leavesNothing(instance, () => assert.throws(() => instance.call({}, "run"), ExhaustionError));
    return (instance.exports["depth"] as { value: number }).value;
  });
  assert.ok(depths[0] > 100, `${depths}`);
  assert.equal(depths[1], depths[0]);
});

testTiers("computations that switch to new ones do not exhaust the stack, deterministic or not", (options) => {
  // $next recurses, so it counts; the computations begin below some of its activations, one after the other.
  const text = `(module
    (rec (type $f (func (param (ref null $k)) (result i32))) (type $k (cont $f)))
    (type $p (func (param (ref null $k)) (result i32)))
    (tag $sw (result i32))
    (global $left (mut i32) (i32.const 0))
    (elem declare func $next)
    (func $next (type $f) (local ${"i64 ".repeat(40)})
      (global.set $left (i32.sub (global.get $left) (i32.const 1)))
      (if (i32.eqz (global.get $left)) (then (return (i32.const 42))))
      (if (i32.and (global.get $left) (i32.const 7)) (then (return (call $next (ref.null $k)))))
      (switch $k $sw (cont.new $k (ref.func $next)))
      (unreachable))
    (func (export "run") (param $n i32) (result i32)
      (global.set $left (local.get $n))
      (resume $k (on $sw switch) (ref.null $k) (cont.new $k (ref.func $next)))))`;
  const modes = options.tier === "auto" ? [options] : [options, { ...options, deterministic: true }];
  for (const mode of modes) {
    const instance = instantiate(text, mode);
    leavesNothing(instance, () => assert.equal(instance.call({}, "run", 40_000), 42));
  }
});
