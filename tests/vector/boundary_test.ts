/**
 * Vectors at the boundaries of functions, instances and the host: more of them than registers, several results, tail
 * calls, indirect calls, globals, locals that live across calls. JavaScript cannot represent vectors, so exposing one
 * is refused.
 */
import { deepEqual, throws } from "node:assert/strict";
import { NewEngine } from "../../engine/api/engine.ts";
import { textToBinary } from "../../engine/text/parse_module.ts";
import { hidingFeatures } from "./hiding_features.ts";

const PARAMS = Array.from({ length: 11 }, (_, k) => `(param $v${k} v128)`).join(" ");
const PROVIDER = `(module
  (type $many (func ${PARAMS.replace(/\$v\d+ /g, "")} (param i32 f64) (result v128 i32 v128 v128 f64)))
  (global (export "g") (mut v128) (v128.const i32x4 1 2 3 4))
  (table (export "t") 1 funcref) (elem (i32.const 0) $many)
  (func $many (export "many") ${PARAMS} (param $i i32) (param $d f64) (result v128 i32 v128 v128 f64)
    (i32x4.sub (local.get $v0) (local.get $v10)) (local.get $i)
    (i16x8.add (local.get $v9) (local.get $v8)) (local.get $v7) (local.get $d))
  (func (export "tail") ${PARAMS} (param $i i32) (param $d f64) (result v128 i32 v128 v128 f64)
    (return_call $many ${Array.from({ length: 11 }, (_, k) => `(local.get $v${10 - k})`).join(" ")}
      (local.get $i) (local.get $d))))`;
const operands = (first: number) =>
  Array.from({ length: 11 }, (_, k) => `(v128.load offset=${16 * ((first + k) % 11)} (local.get $p))`).join(" ");
const results = (at: number) =>
  `(local.set $d) (local.set $c) (local.set $b) (local.set $i) (local.set $a)
   (v128.store offset=${at} (local.get $p) (local.get $a)) (v128.store offset=${at + 16} (local.get $p) (local.get $b))
   (v128.store offset=${at + 32} (local.get $p) (local.get $c)) (i32.store offset=${
    at + 48
  } (local.get $p) (local.get $i))
   (f64.store offset=${at + 56} (local.get $p) (local.get $d))`;
const USER = `(module
  (type $many (func ${PARAMS.replace(/\$v\d+ /g, "")} (param i32 f64) (result v128 i32 v128 v128 f64)))
  (import "p" "many" (func $many (type $many))) (import "p" "tail" (func $tail (type $many)))
  (import "p" "g" (global $g (mut v128))) (import "p" "t" (table 1 funcref))
  (memory (export "m") 1)
  (func (export "run") (param $p i32) (local $a v128) (local $b v128) (local $c v128) (local $i i32) (local $d f64)
    (local $x v128) (local $y v128)
    (local.set $x (v128.load offset=5 (local.get $p))) (local.set $y (v128.load offset=21 (local.get $p)))
    ${operands(0)} (i32.const 77) (f64.const 0.5) (call $many) ${results(256)}
    ${operands(3)} (i32.const 78) (f64.const 1.5) (call $tail) ${results(320)}
    (global.set $g (i8x16.add (global.get $g) (local.get $x)))
    ${operands(5)} (i32.const 79) (f64.const 2.5) (call_indirect (type $many) (i32.const 0)) ${results(384)}
    (v128.store offset=448 (local.get $p) (i8x16.sub (local.get $x) (local.get $y)))
    (v128.store offset=464 (local.get $p) (global.get $g))))`;

interface Runner {
  m: { buffer: ArrayBuffer };
  run(p: number): void;
}

function result({ m, run }: Runner): Uint8Array {
  const memory = new Uint8Array(m.buffer);
  for (let k = 0; k < 200; k++) memory[k + 3] = (k * 37) ^ (k >> 2);
  run(3);
  run(3);
  return memory.slice(3, 3 + 480);
}

function compareInstances(): void {
  const bytes = [PROVIDER, USER].map((text) => textToBinary(text) as Uint8Array<ArrayBuffer>);
  const modules = bytes.map((binary) => new WebAssembly.Module(binary));
  const provider = new WebAssembly.Instance(modules[0]).exports;
  const v8 = new WebAssembly.Instance(modules[1], { p: provider }).exports as unknown as Runner;
  const engine = NewEngine({ verify: true });
  const own = engine.compile(bytes[0]).instantiate().exports;
  const waft = engine.compile(bytes[1]).instantiate({}, { p: own }).exports as unknown as Runner;
  deepEqual(result(waft), result(v8));
}

Deno.test("vectors cross calls between instances", compareInstances);

Deno.test("vectors cross calls between instances with SSE4.1 only", () => {
  hidingFeatures(["avx", "avx2"], compareInstances);
});

Deno.test("JavaScript can neither pass nor receive vectors", () => {
  const text = `(module (import "h" "f" (func $f (param v128)))
    (global (export "g") (mut v128) (v128.const i64x2 0 0))
    (func (export "in") (param v128)) (func (export "out") (result v128) (v128.const i64x2 0 0))
    (func (export "host") (call $f (v128.const i64x2 1 2))))`;
  let called = false;
  const { exports } = NewEngine().compile(text).instantiate({}, { h: { f: () => called = true } });
  for (const name of ["in", "out", "host"]) throws(() => (exports[name] as () => void)(), TypeError, name);
  throws(() => (exports["g"] as { value: unknown }).value, TypeError);
  throws(() => (exports["g"] as { value: unknown }).value = 1, TypeError);
  deepEqual(called, false);
});
