/**
 * The cost of boundary crossings on the current JavaScript runtime: `deno run -A bench/call_costs.ts`, or `deno task
 * test:hosts --costs` for Node and Bun. Out: nanoseconds, the minimum of several rounds, because other load on the
 * machine only adds time.
 */
import { NewEngine } from "@waft/engine";

const ROUNDS = 15;

const { exports } = NewEngine().compile(`(module
  (import "h" "f" (func $f (param i32) (result i32)))
  (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
  (func (export "add64") (param i64 i64) (result i64) (i64.add (local.get 0) (local.get 1)))
  (func (export "out") (param i32) (result i32) (local i32)
    (loop $again (local.set 1 (call $f (local.get 1)))
      (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 1))
  (func (export "trap") unreachable))`).instantiate({}, { h: { f: (x: number) => x + 1 } });
const add = exports["add"] as (a: number, b: number) => number;
const add64 = exports["add64"] as (a: bigint, b: bigint) => bigint;
const out = exports["out"] as (times: number) => number;
const trap = exports["trap"] as () => void;
const small = NewEngine({ bounds: "explicit" }).compile(
  `(module (memory 1) (data (i32.const 8) "some bytes") (func (export "f")))`,
);

const ROWS: readonly (readonly [name: string, times: number, work: (times: number) => unknown])[] = [
  ["JavaScript calls wasm, i32", 1_000_000, (n) => {
    let x = 0;
    for (let k = 0; k < n; k++) x = add(x, k);
    return x;
  }],
  ["JavaScript calls wasm, i64", 300_000, (n) => {
    let x = 0n;
    for (let k = 0; k < n; k++) x = add64(x, 3n);
    return x;
  }],
  ["wasm calls JavaScript", 300_000, out],
  ["a trap, caught", 5_000, (n) => {
    for (let k = 0; k < n; k++) {
      try {
        trap();
      } catch {
        // the measured event
      }
    }
  }],
  ["an instance, made and closed", 2_000, (n) => {
    for (let k = 0; k < n; k++) small.instantiate().close();
  }],
];

for (const [name, times, work] of ROWS) {
  let least = Infinity;
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now();
    work(times);
    least = Math.min(least, (performance.now() - start) * 1e6 / times);
  }
  console.log(`${name.padEnd(30)} ${least.toFixed(least < 100 ? 1 : 0).padStart(8)} ns`);
}
