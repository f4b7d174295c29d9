/* Vectors of i8 and i16: n pictures of 256 x 128 pixels, blended, sharpened and converted to grey: extensions, 16-bit
 * products, saturating sums and narrowing. */
#include <wasm_simd128.h>
#include "bench.h"

#define PIXELS (256 * 128)

static u8 front[PIXELS * 4], back[PIXELS * 4], out[PIXELS * 4], grey[PIXELS];

/* out = (front * alpha + back * (255 - alpha)) / 255, rounded, for 8 channels. */
static inline v128_t blend(v128_t f, v128_t b, v128_t alpha) {
  v128_t rest = wasm_i16x8_sub(wasm_i16x8_splat(255), alpha);
  v128_t x = wasm_i16x8_add(wasm_i16x8_mul(f, alpha), wasm_i16x8_mul(b, rest));
  x = wasm_i16x8_add(x, wasm_i16x8_splat(128));
  return wasm_u16x8_shr(wasm_i16x8_add(x, wasm_u16x8_shr(x, 8)), 8);
}

static void blendAll(void) {
  for (i32 i = 0; i < PIXELS * 4; i += 16) {
    v128_t f = wasm_v128_load(front + i), b = wasm_v128_load(back + i);
    v128_t alpha = wasm_i8x16_shuffle(f, f, 3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11, 15, 15, 15, 15);
    v128_t low = blend(wasm_u16x8_extend_low_u8x16(f), wasm_u16x8_extend_low_u8x16(b), wasm_u16x8_extend_low_u8x16(alpha));
    v128_t high = blend(wasm_u16x8_extend_high_u8x16(f), wasm_u16x8_extend_high_u8x16(b), wasm_u16x8_extend_high_u8x16(alpha));
    v128_t mixed = wasm_u8x16_narrow_i16x8(low, high);
    v128_t brighter = wasm_u8x16_add_sat(mixed, wasm_u8x16_sub_sat(mixed, wasm_i8x16_splat(127)));
    wasm_v128_store(out + i, wasm_u8x16_avgr(mixed, brighter));
  }
}

static void reduce(void) {
  const v128_t weights = wasm_i16x8_make(77, 150, 29, 0, 77, 150, 29, 0);
  for (i32 i = 0; i < PIXELS; i += 4) {
    v128_t x = wasm_v128_load(out + 4 * i);
    v128_t low = wasm_i32x4_dot_i16x8(wasm_u16x8_extend_low_u8x16(x), weights);
    v128_t high = wasm_i32x4_dot_i16x8(wasm_u16x8_extend_high_u8x16(x), weights);
    v128_t sums = wasm_i32x4_add(wasm_i32x4_shuffle(low, high, 0, 2, 4, 6), wasm_i32x4_shuffle(low, high, 1, 3, 5, 7));
    v128_t words = wasm_u32x4_shr(sums, 8);
    v128_t narrow = wasm_u16x8_narrow_i32x4(words, words);
    wasm_v128_store32_lane(grey + i, wasm_u8x16_narrow_i16x8(narrow, narrow), 0);
  }
}

EXPORT i32 run(i32 n) {
  random_state = 3;
  for (i32 i = 0; i < PIXELS * 4; i++) front[i] = (u8)random_u32(), back[i] = (u8)random_u32();
  u32 sum = 0;
  for (i32 round = 0; round < n; round++) {
    front[(u32)round * 5 % PIXELS] ^= 64;
    blendAll();
    reduce();
    sum = mix(sum, grey[(u32)round * 977 % PIXELS]);
  }
  return (i32)sum;
}
