/*
 * Vectors of f64 and tests: the Mandelbrot set on n x n points, two at a time, until both escape or 50 iterations pass.
 */
#include <wasm_simd128.h>
#include "bench.h"

EXPORT i32 run(i32 n) {
  u32 sum = 0;
  const v128_t two = wasm_f64x2_splat(2), four = wasm_f64x2_splat(4);
  for (i32 y = 0; y < n; y++) {
    v128_t ci = wasm_f64x2_splat(2.0 * y / n - 1.0);
    for (i32 x = 0; x < n; x += 2) {
      v128_t cr = wasm_f64x2_make(2.0 * x / n - 1.5, 2.0 * (x + 1) / n - 1.5);
      v128_t zr = wasm_f64x2_splat(0), zi = zr, counts = wasm_i64x2_splat(0);
      for (i32 step = 0; step < 50; step++) {
        v128_t rr = wasm_f64x2_mul(zr, zr), ii = wasm_f64x2_mul(zi, zi);
        v128_t inside = wasm_f64x2_le(wasm_f64x2_add(rr, ii), four);
        if (!wasm_v128_any_true(inside)) break;
        counts = wasm_i64x2_sub(counts, inside);
        zi = wasm_f64x2_add(wasm_f64x2_mul(two, wasm_f64x2_mul(zr, zi)), ci);
        zr = wasm_f64x2_add(wasm_f64x2_sub(rr, ii), cr);
      }
      sum = mix(sum, (u32)wasm_i64x2_extract_lane(counts, 0) ^ ((u32)wasm_i64x2_extract_lane(counts, 1) << 8));
    }
  }
  return (i32)sum;
}
