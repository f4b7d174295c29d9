/*
 * Vectors of f32: products of 4 x 4 blocks of matrices of 96 rows, n times: splats, multiplications, sums in registers.
 */
#include <wasm_simd128.h>
#include "bench.h"

#define SIZE 96

static float a[SIZE][SIZE], b[SIZE][SIZE], c[SIZE][SIZE];

static void multiply(void) {
  for (i32 i = 0; i < SIZE; i += 4) {
    for (i32 j = 0; j < SIZE; j += 4) {
      v128_t r0 = wasm_f32x4_splat(0), r1 = r0, r2 = r0, r3 = r0;
      for (i32 k = 0; k < SIZE; k++) {
        v128_t row = wasm_v128_load(&b[k][j]);
        r0 = wasm_f32x4_add(r0, wasm_f32x4_mul(wasm_v128_load32_splat(&a[i][k]), row));
        r1 = wasm_f32x4_add(r1, wasm_f32x4_mul(wasm_v128_load32_splat(&a[i + 1][k]), row));
        r2 = wasm_f32x4_add(r2, wasm_f32x4_mul(wasm_v128_load32_splat(&a[i + 2][k]), row));
        r3 = wasm_f32x4_add(r3, wasm_f32x4_mul(wasm_v128_load32_splat(&a[i + 3][k]), row));
      }
      wasm_v128_store(&c[i][j], r0);
      wasm_v128_store(&c[i + 1][j], r1);
      wasm_v128_store(&c[i + 2][j], r2);
      wasm_v128_store(&c[i + 3][j], r3);
    }
  }
}

EXPORT i32 run(i32 n) {
  random_state = 1;
  for (i32 i = 0; i < SIZE; i++) {
    for (i32 j = 0; j < SIZE; j++) {
      a[i][j] = (float)(random_u32() & 255) / 64;
      b[i][j] = (float)(random_u32() & 255) / 128;
    }
  }
  u32 sum = 0;
  for (i32 round = 0; round < n; round++) {
    a[round % SIZE][0] += 1;
    multiply();
    sum = mix(sum, (u32)c[round % SIZE][(round * 7) % SIZE]);
  }
  return (i32)sum;
}
