/* Vectors of bytes: UTF-8 validation. ASCII blocks take one test; other blocks look up byte classes with swizzle. */
#include "bench.h"
#include <wasm_simd128.h>

enum { LENGTH = 1 << 16 };
static u8 text[LENGTH + 16];

/* Errors by a byte's high nibble: the required continuation bytes, and the requirements of the previous byte. */
static v128_t check(v128_t previous, v128_t now) {
  const v128_t lengths = wasm_i8x16_const(0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, 1, 1, 2, 3);
  v128_t high = wasm_u8x16_shr(now, 4), high_before = wasm_u8x16_shr(previous, 4);
  v128_t needs = wasm_i8x16_swizzle(lengths, high), needs_before = wasm_i8x16_swizzle(lengths, high_before);
  /* Continuation bytes required one, two or three positions after a lead byte. */
  v128_t lead1 = wasm_i8x16_shuffle(needs_before, needs, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30);
  v128_t lead2 = wasm_i8x16_shuffle(needs_before, needs, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29);
  v128_t lead3 = wasm_i8x16_shuffle(needs_before, needs, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28);
  v128_t must = wasm_v128_or(wasm_i8x16_gt(lead1, wasm_i8x16_const_splat(0)),
    wasm_v128_or(wasm_i8x16_gt(lead2, wasm_i8x16_const_splat(1)), wasm_i8x16_gt(lead3, wasm_i8x16_const_splat(2))));
  v128_t is = wasm_i8x16_eq(needs, wasm_i8x16_const_splat(-1));
  return wasm_v128_xor(must, is);
}

static i32 valid(void) {
  v128_t error = wasm_i8x16_const_splat(0), previous = wasm_i8x16_const_splat(0);
  for (i32 i = 0; i < LENGTH; i += 16) {
    v128_t now = wasm_v128_load(text + i);
    if (wasm_i8x16_bitmask(wasm_v128_or(now, previous)) != 0) error = wasm_v128_or(error, check(previous, now));
    previous = now;
  }
  return !wasm_v128_any_true(error);
}

EXPORT i32 run(i32 n) {
  random_state = 2463534242u;
  i32 at = 0;
  while (at < LENGTH - 4) {
    u32 x = random_u32();
    if (x % 3) text[at++] = 32 + x % 90;
    else if (x % 2) text[at++] = 0xc3, text[at++] = 0x80 + (x >> 8) % 64;
    else text[at++] = 0xe2, text[at++] = 0x80 + (x >> 8) % 64, text[at++] = 0x80 + (x >> 16) % 64;
  }
  while (at < LENGTH) text[at++] = 'x';
  i32 sum = 0;
  for (i32 i = 0; i < n; i++) {
    i32 place = (i * 7919) % (LENGTH - 8);
    u8 old = text[place];
    if (i & 1) text[place] = 0xff;
    sum = sum * 3 + valid();
    text[place] = old;
  }
  return sum;
}
