/* Vectors of i8: n passes over 64 KiB of text: line breaks found by comparison and bit masks, letters converted to
 * upper case, words counted by saturating arithmetic, tests of whole vectors. */
#include <wasm_simd128.h>
#include "bench.h"

#define SIZE 65536

static u8 text[SIZE], upper[SIZE];

EXPORT i32 run(i32 n) {
  random_state = 7;
  for (i32 i = 0; i < SIZE; i++) {
    u32 x = random_u32() % 40;
    text[i] = x < 26 ? (u8)('a' + x) : x < 33 ? ' ' : x < 38 ? (u8)('A' + x) : x == 38 ? '\n' : '.';
  }
  u32 sum = 0;
  for (i32 round = 0; round < n; round++) {
    text[round % SIZE] ^= 1;
    u32 lines = 0, lengths = 0, last = 0, words = 0, dots = 0;
    v128_t before = wasm_i8x16_splat(' ');
    for (u32 i = 0; i < SIZE; i += 16) {
      v128_t x = wasm_v128_load(text + i);
      u32 newlines = wasm_i8x16_bitmask(wasm_i8x16_eq(x, wasm_i8x16_splat('\n')));
      for (; newlines != 0; newlines &= newlines - 1) {
        u32 at = i + (u32)__builtin_ctz(newlines);
        lines++;
        lengths = mix(lengths, at - last);
        last = at;
      }
      v128_t lower = wasm_v128_and(wasm_u8x16_ge(x, wasm_i8x16_splat('a')), wasm_u8x16_le(x, wasm_i8x16_splat('z')));
      wasm_v128_store(upper + i, wasm_i8x16_sub(x, wasm_v128_and(lower, wasm_i8x16_splat(32))));
      v128_t shifted = wasm_i8x16_shuffle(before, x, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30);
      v128_t starts = wasm_v128_andnot(wasm_i8x16_gt(x, wasm_i8x16_splat(' ')), wasm_i8x16_gt(shifted, wasm_i8x16_splat(' ')));
      words += (u32)__builtin_popcount(wasm_i8x16_bitmask(starts));
      if (wasm_v128_any_true(wasm_i8x16_eq(x, wasm_i8x16_splat('.')))) dots++;
      before = x;
    }
    sum = mix(sum, lines ^ lengths ^ (words << 8) ^ dots ^ upper[(u32)round * 31 % SIZE]);
  }
  return (i32)sum;
}
