/**
 * Relaxed vector instructions have one result on every processor: that of the strict instruction or, where there is
 * none, the first alternative in the specification: products rounded before addition, signed bytes, saturated sums.
 */
import { deepEqual, equal } from "node:assert/strict";
import { NewEngine } from "../../engine/api/engine.ts";
import { hidingFeatures } from "./hiding_features.ts";
import { randomNumbers, randomVector } from "./random_vectors.ts";

const A = "(v128.load (local.get $p))";
const B = "(v128.load offset=16 (local.get $p))";
const C = "(v128.load offset=32 (local.get $p))";

/** Relaxed and strict expressions that must agree. */
const PAIRS: readonly (readonly [relaxed: string, strict: string])[] = [
  [`(i8x16.relaxed_swizzle ${A} ${B})`, `(i8x16.swizzle ${A} ${B})`],
  [`(i32x4.relaxed_trunc_f32x4_s ${A})`, `(i32x4.trunc_sat_f32x4_s ${A})`],
  [`(i32x4.relaxed_trunc_f32x4_u ${A})`, `(i32x4.trunc_sat_f32x4_u ${A})`],
  [`(i32x4.relaxed_trunc_f64x2_s_zero ${A})`, `(i32x4.trunc_sat_f64x2_s_zero ${A})`],
  [`(i32x4.relaxed_trunc_f64x2_u_zero ${A})`, `(i32x4.trunc_sat_f64x2_u_zero ${A})`],
  [`(f32x4.relaxed_madd ${A} ${B} ${C})`, `(f32x4.add (f32x4.mul ${A} ${B}) ${C})`],
  [`(f32x4.relaxed_nmadd ${A} ${B} ${C})`, `(f32x4.sub ${C} (f32x4.mul ${A} ${B}))`],
  [`(f64x2.relaxed_madd ${A} ${B} ${C})`, `(f64x2.add (f64x2.mul ${A} ${B}) ${C})`],
  [`(f64x2.relaxed_nmadd ${A} ${B} ${C})`, `(f64x2.sub ${C} (f64x2.mul ${A} ${B}))`],
  ...["i8x16", "i16x8", "i32x4", "i64x2"].map((shape) =>
    [`(${shape}.relaxed_laneselect ${A} ${B} ${C})`, `(v128.bitselect ${A} ${B} ${C})`] as const
  ),
  ...["f32x4", "f64x2"].flatMap((shape) =>
    ["min", "max"].map((name) => [`(${shape}.relaxed_${name} ${A} ${B})`, `(${shape}.${name} ${A} ${B})`] as const)
  ),
  [`(i16x8.relaxed_q15mulr_s ${A} ${B})`, `(i16x8.q15mulr_sat_s ${A} ${B})`],
];

const functions = PAIRS.map(([relaxed, strict], k) =>
  `(func (export "${k}") (param $p i32) (v128.store offset=64 (local.get $p) ${relaxed})
    (v128.store offset=80 (local.get $p) ${strict}))`
);
const TEXT = `(module (memory (export "m") 1) ${functions.join("\n")}
  (func (export "dot") (param $p i32) (v128.store offset=64 (local.get $p) (i16x8.relaxed_dot_i8x16_i7x16_s ${A} ${B}))
    (v128.store offset=80 (local.get $p) (i32x4.relaxed_dot_i8x16_i7x16_add_s ${A} ${B} ${C}))))`;

function checkAll(): void {
  const { exports } = NewEngine({ verify: true }).compile(TEXT).instantiate();
  const memory = new Uint8Array((exports["m"] as { buffer: ArrayBuffer }).buffer);
  const next = randomNumbers(11);
  const call = (name: string) => {
    for (let n = 0; n < 3; n++) memory.set(randomVector(next), 16 * n);
    (exports[name] as (p: number) => void)(0);
  };
  PAIRS.forEach(([relaxed], k) => {
    for (let round = 0; round < 40; round++) {
      call(String(k));
      deepEqual(memory.slice(64, 80), memory.slice(80, 96), relaxed);
    }
  });
  const bytes = new Int8Array(memory.buffer);
  const halves = new Int16Array(memory.buffer);
  const words = new Int32Array(memory.buffer);
  for (let round = 0; round < 200; round++) {
    call("dot");
    for (let lane = 0; lane < 8; lane++) {
      const sum = (bytes[2 * lane] * bytes[16 + 2 * lane] + bytes[2 * lane + 1] * bytes[17 + 2 * lane]) | 0;
      equal(halves[32 + lane], Math.min(32767, Math.max(-32768, sum)));
    }
    for (let lane = 0; lane < 4; lane++) {
      equal(words[20 + lane], (halves[32 + 2 * lane] + halves[33 + 2 * lane] + words[8 + lane]) | 0);
    }
  }
}

Deno.test("relaxed vector instructions have the deterministic result", checkAll);

Deno.test("relaxed vector instructions have the deterministic result with SSE4.1 only", () => {
  hidingFeatures(["avx", "avx2", "fma", "bmi1", "bmi2"], checkAll);
});
