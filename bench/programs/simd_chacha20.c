/* Vectors of i32: ChaCha20 key stream of n blocks, a row of the state in each vector: sums, exclusive ors, rotations
 * by shifts and by byte shuffles, and rotations of lanes. */
#include <wasm_simd128.h>
#include "bench.h"

static inline v128_t rotate(v128_t x, i32 by) {
  return wasm_v128_or(wasm_i32x4_shl(x, (u32)by), wasm_u32x4_shr(x, (u32)(32 - by)));
}

#define ROTATE16(x) wasm_i8x16_shuffle(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)
#define ROTATE8(x) wasm_i8x16_shuffle(x, x, 3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14)

#define QUARTERS(a, b, c, d)                                                   \
  a = wasm_i32x4_add(a, b), d = wasm_v128_xor(d, a), d = ROTATE16(d);          \
  c = wasm_i32x4_add(c, d), b = wasm_v128_xor(b, c), b = rotate(b, 12);        \
  a = wasm_i32x4_add(a, b), d = wasm_v128_xor(d, a), d = ROTATE8(d);           \
  c = wasm_i32x4_add(c, d), b = wasm_v128_xor(b, c), b = rotate(b, 7)

EXPORT i32 run(i32 n) {
  const v128_t a0 = wasm_i32x4_make(0x61707865, 0x3320646e, 0x79622d32, 0x6b206574);
  const v128_t b0 = wasm_i32x4_make(1, 2, 3, 4), c0 = wasm_i32x4_make(5, 6, 7, 8);
  v128_t sums = wasm_i32x4_splat(0);
  for (i32 i = 0; i < n; i++) {
    const v128_t d0 = wasm_i32x4_make(i, 9, 10, 11);
    v128_t a = a0, b = b0, c = c0, d = d0;
    for (i32 round = 0; round < 10; round++) {
      QUARTERS(a, b, c, d);
      b = wasm_i32x4_shuffle(b, b, 1, 2, 3, 0);
      c = wasm_i32x4_shuffle(c, c, 2, 3, 0, 1);
      d = wasm_i32x4_shuffle(d, d, 3, 0, 1, 2);
      QUARTERS(a, b, c, d);
      b = wasm_i32x4_shuffle(b, b, 3, 0, 1, 2);
      c = wasm_i32x4_shuffle(c, c, 2, 3, 0, 1);
      d = wasm_i32x4_shuffle(d, d, 1, 2, 3, 0);
    }
    sums = wasm_v128_xor(sums, wasm_i32x4_add(a, a0));
    sums = wasm_i32x4_add(sums, wasm_i32x4_add(b, b0));
    sums = wasm_v128_xor(sums, wasm_i32x4_add(c, c0));
    sums = wasm_i32x4_add(sums, wasm_i32x4_add(d, d0));
  }
  return wasm_i32x4_extract_lane(sums, 0) ^ wasm_i32x4_extract_lane(sums, 1) ^ wasm_i32x4_extract_lane(sums, 2) ^
         wasm_i32x4_extract_lane(sums, 3);
}
