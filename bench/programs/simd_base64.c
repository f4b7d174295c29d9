/*
 * Vectors of bytes as tables: n times 24 KiB to base64 and back, with swizzles, 16-bit products, comparisons and a
 * check of every vector.
 */
#include <wasm_simd128.h>
#include "bench.h"

#define SIZE 24576

static u8 plain[SIZE + 16], coded[SIZE / 3 * 4 + 16], decoded[SIZE + 16];

static void encode(void) {
  const v128_t spread = wasm_i8x16_make(1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10);
  const v128_t offsets = wasm_i8x16_make(71, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -19, -16, 65, 0, 0);
  for (i32 i = 0, o = 0; i < SIZE; i += 12, o += 16) {
    v128_t x = wasm_i8x16_swizzle(wasm_v128_load(plain + i), spread);
    v128_t high = wasm_v128_and(x, wasm_i32x4_splat(0x0fc0fc00));
    v128_t low = wasm_v128_and(x, wasm_i32x4_splat(0x003f03f0));
    high = wasm_v128_bitselect(wasm_u16x8_shr(high, 10), wasm_u16x8_shr(high, 6), wasm_i32x4_splat(0xffff));
    low = wasm_v128_bitselect(wasm_i16x8_shl(low, 4), wasm_i16x8_shl(low, 8), wasm_i32x4_splat(0xffff));
    v128_t index = wasm_v128_or(high, low);
    v128_t kind = wasm_u8x16_sub_sat(index, wasm_i8x16_splat(51));
    v128_t letters = wasm_i8x16_gt(wasm_i8x16_splat(26), index);
    kind = wasm_v128_or(kind, wasm_v128_and(letters, wasm_i8x16_splat(13)));
    wasm_v128_store(coded + o, wasm_i8x16_add(index, wasm_i8x16_swizzle(offsets, kind)));
  }
}

static i32 decode(void) {
  const v128_t gather = wasm_i8x16_make(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1);
  v128_t bad = wasm_i8x16_splat(0);
  for (i32 i = 0, o = 0; o < SIZE; i += 16, o += 12) {
    v128_t x = wasm_v128_load(coded + i);
    v128_t upper = wasm_v128_and(wasm_i8x16_ge(x, wasm_i8x16_splat('A')), wasm_i8x16_le(x, wasm_i8x16_splat('Z')));
    v128_t lower = wasm_v128_and(wasm_i8x16_ge(x, wasm_i8x16_splat('a')), wasm_i8x16_le(x, wasm_i8x16_splat('z')));
    v128_t digit = wasm_v128_and(wasm_i8x16_ge(x, wasm_i8x16_splat('0')), wasm_i8x16_le(x, wasm_i8x16_splat('9')));
    v128_t plus = wasm_i8x16_eq(x, wasm_i8x16_splat('+')), slash = wasm_i8x16_eq(x, wasm_i8x16_splat('/'));
    v128_t shift = wasm_v128_or(wasm_v128_and(upper, wasm_i8x16_splat(-65)), wasm_v128_and(lower, wasm_i8x16_splat(-71)));
    shift = wasm_v128_or(shift, wasm_v128_and(digit, wasm_i8x16_splat(4)));
    shift = wasm_v128_or(shift, wasm_v128_and(plus, wasm_i8x16_splat(19)));
    shift = wasm_v128_or(shift, wasm_v128_and(slash, wasm_i8x16_splat(16)));
    bad = wasm_v128_or(bad, wasm_i8x16_eq(shift, wasm_i8x16_splat(0)));
    v128_t six = wasm_i8x16_add(x, shift);
    v128_t even = wasm_i16x8_shl(wasm_v128_and(six, wasm_i16x8_splat(0xff)), 6);
    v128_t pairs = wasm_v128_or(even, wasm_u16x8_shr(six, 8));
    v128_t words = wasm_i32x4_dot_i16x8(pairs, wasm_i32x4_splat(0x00011000));
    wasm_v128_store(decoded + o, wasm_i8x16_swizzle(words, gather));
  }
  return wasm_v128_any_true(bad) != 0;
}

EXPORT i32 run(i32 n) {
  random_state = 5;
  for (i32 i = 0; i < SIZE; i++) plain[i] = (u8)random_u32();
  u32 sum = 0;
  for (i32 round = 0; round < n; round++) {
    plain[round % SIZE] += 3;
    encode();
    sum = mix(sum, (u32)decode() + coded[(u32)round * 97 % SIZE] * 256u + decoded[(u32)round * 31 % SIZE]);
  }
  return (i32)sum;
}
