/**
 * Exact counts of programs whose counts are known: calls, iterations, tail calls, allocations, growth of both address
 * types.
 */
import assert from "node:assert/strict";
import { type Memory, NewEngine } from "@waft/engine";
import { countModule, readCounter } from "../../engine/instrument/count_module.ts";

/** The counters of `text` after a call of its export `run`: rows of kind, function, and the site's counters. */
function countsOf(text: string, ...args: unknown[]): (string | number)[][] {
  const bytes = new Uint8Array(NewEngine().parse(text).bytes);
  const counted = countModule(bytes);
  const instance = NewEngine().compile(counted.bytes).instantiate();
  const run = () => instance.call({}, "run", ...args);
  if (text.includes("unreachable")) assert.throws(run, /unreachable/);
  else run();
  const memory = (instance.exports as Record<string, Memory>)[counted.memory];
  return counted.sites.map(({ kind, func, counter }) => {
    const isPair = kind === "objects" || kind === "growth";
    const counters = isPair ? [counter, counter + 1] : [counter];
    return [kind, func, ...counters.map((each) => readCounter(memory.bytes, each))];
  });
}

Deno.test("calls of a recursion are counted, also those by tail calls and tables", () => {
  const counts = countsOf(
    `(module
      (table funcref (elem $down))
      (func $fib (param i32) (result i32)
        (if (result i32) (i32.lt_s (local.get 0) (i32.const 2)) (then (local.get 0))
          (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1)))
            (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
      (func $down (param i32)
        (if (local.get 0) (then (return_call $down (i32.sub (local.get 0) (i32.const 1))))))
      (func (export "run") (param i32)
        (drop (call $fib (local.get 0)))
        (call_indirect (param i32) (i32.const 6) (i32.const 0))))`,
    20,
  );
  // fib(n) makes 2 fib(n + 1) − 1 calls; fib(21) is 10946.
  assert.deepEqual(counts, [["calls", 0, 2 * 10946 - 1], ["calls", 1, 7], ["calls", 2, 1]]);
});

Deno.test("iterations of nested loops are counted, with values on the stack and after a trap", () => {
  const counts = countsOf(
    `(module (func (export "run") (param i32) (local $j i32)
      (loop $outer
        (local.set $j (i32.const 3))
        (drop (i32.const 5) (loop $inner (param i32) (result i32)
          (br_if $inner (local.tee $j (i32.sub (local.get $j) (i32.const 1))))))
        (br_if $outer (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
      unreachable))`,
    1000,
  );
  assert.deepEqual(counts, [["calls", 0, 1], ["iterations", 0, 1000], ["iterations", 0, 3000]]);
});

Deno.test("allocated objects and elements, and grown pages, are counted where they succeed", () => {
  const counts = countsOf(`(module
    (type $s (struct (field i32)))
    (type $a (array (mut i8)))
    (memory $m 1 4)
    (memory $n i64 0 100)
    (func (export "run") (local $k i32)
      (loop $l
        (drop (struct.new_default $s))
        (drop (array.new $a (i32.const 7) (local.get $k)))
        (drop (array.new_fixed $a 2 (i32.const 1) (i32.const 2)))
        (drop (memory.grow $m (i32.const 2)))
        (drop (memory.grow $n (i64.const 9)))
        (br_if $l (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (i32.const 5))))))`);
  assert.deepEqual(counts, [
    ["calls", 0, 1],
    ["iterations", 0, 5],
    ["objects", 0, 5, 0],
    ["objects", 0, 5, 0 + 1 + 2 + 3 + 4],
    ["objects", 0, 5, 10],
    ["growth", 0, 5, 2],
    ["growth", 0, 5, 45],
  ]);
});
