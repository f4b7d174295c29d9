/* Integer: counts, rotations and shifts of i32 and i64: population counts, leading zeros, a SipHash. */
#include "bench.h"

static inline u64 rotate(u64 x, i32 by) { return x << by | x >> (64 - by); }

static u64 siphash(u64 k0, u64 k1, u64 word) {
  u64 a = k0 ^ 0x736f6d6570736575ull, b = k1 ^ 0x646f72616e646f6dull, c = k0 ^ 0x6c7967656e657261ull, d = k1 ^ 0x7465646279746573ull;
  d ^= word;
  for (i32 i = 0; i < 6; i++) {
    if (i == 2) a ^= word, c ^= 0xff;
    a += b, b = rotate(b, 13), b ^= a, a = rotate(a, 32);
    c += d, d = rotate(d, 16), d ^= c;
    a += d, d = rotate(d, 21), d ^= a;
    c += b, b = rotate(b, 17), b ^= c, c = rotate(c, 32);
  }
  return a ^ b ^ c ^ d;
}

EXPORT i64 run(i32 n) {
  u64 sum = 0;
  for (i32 i = 1; i <= n; i++) {
    u64 h = siphash(0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull, (u64)i);
    sum += h ^ (u64)__builtin_popcountll(h) << (__builtin_clzll(h | 1) & 63);
    u32 low = (u32)h;
    sum ^= (u64)(__builtin_ctz(low | 0x10000) + __builtin_clz(low | 1) + __builtin_popcount(low)) << 20;
  }
  return (i64)sum;
}
