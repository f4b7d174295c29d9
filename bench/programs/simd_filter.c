/* Vectors of 16-bit numbers: a filter over sound, by dot products of pairs, with saturation. */
#include "bench.h"
#include <wasm_simd128.h>

enum { LENGTH = 1 << 13, TAPS = 32 };
static short sound[LENGTH + TAPS], out[LENGTH], taps[TAPS];

EXPORT u32 run(i32 n) {
  random_state = 2463534242u;
  for (i32 i = 0; i < LENGTH + TAPS; i++) sound[i] = (short)random_u32();
  for (i32 i = 0; i < TAPS; i++) taps[i] = (short)(random_u32() >> 20);
  for (i32 round = 0; round < n; round++) {
    for (i32 i = 0; i < LENGTH; i++) {
      v128_t sum = wasm_i32x4_const_splat(0);
      for (i32 k = 0; k < TAPS; k += 8) {
        sum = wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(wasm_v128_load(sound + i + k), wasm_v128_load(taps + k)));
      }
      sum = wasm_i32x4_add(sum, wasm_i32x4_shuffle(sum, sum, 2, 3, 0, 1));
      i32 all = wasm_i32x4_extract_lane(sum, 0) + wasm_i32x4_extract_lane(sum, 1);
      out[i] = wasm_i16x8_extract_lane(wasm_i16x8_narrow_i32x4(wasm_i32x4_splat(all >> 12), wasm_i32x4_splat(0)), 0);
    }
    for (i32 i = 0; i < LENGTH; i += 8) {
      v128_t mixed = wasm_i16x8_add_sat(wasm_v128_load(out + i), wasm_i16x8_q15mulr_sat(wasm_v128_load(sound + i), wasm_i16x8_const_splat(16384)));
      wasm_v128_store(sound + i, mixed);
    }
  }
  u32 check = 0;
  for (i32 i = 0; i < LENGTH; i++) check = mix(check, (u32)(unsigned short)sound[i]);
  return check;
}
