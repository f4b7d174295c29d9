/* Ciphers: ChaCha20 (RFC 8439) key stream of n blocks: sixteen live words. */
#include "bench.h"

static inline u32 rotate(u32 x, i32 by) { return x << by | x >> (32 - by); }

#define QUARTER(a, b, c, d)                       \
  a += b, d ^= a, d = rotate(d, 16);              \
  c += d, b ^= c, b = rotate(b, 12);              \
  a += b, d ^= a, d = rotate(d, 8);               \
  c += d, b ^= c, b = rotate(b, 7)

EXPORT i32 run(i32 n) {
  u32 start[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, 1, 2, 3, 4, 5, 6, 7, 8, 0, 9, 10, 11}, sum = 0;
  for (i32 i = 0; i < n; i++) {
    start[12] = (u32)i;
    u32 x[16];
    for (i32 k = 0; k < 16; k++) x[k] = start[k];
    for (i32 round = 0; round < 10; round++) {
      QUARTER(x[0], x[4], x[8], x[12]);
      QUARTER(x[1], x[5], x[9], x[13]);
      QUARTER(x[2], x[6], x[10], x[14]);
      QUARTER(x[3], x[7], x[11], x[15]);
      QUARTER(x[0], x[5], x[10], x[15]);
      QUARTER(x[1], x[6], x[11], x[12]);
      QUARTER(x[2], x[7], x[8], x[13]);
      QUARTER(x[3], x[4], x[9], x[14]);
    }
    for (i32 k = 0; k < 16; k++) sum = mix(sum, x[k] + start[k]);
  }
  return (i32)sum;
}
