/* Memory: memory.copy and memory.fill of blocks from a few bytes to 64 KiB. */
#include "bench.h"

static u8 data[1 << 20];

EXPORT i32 run(i32 n) {
  random_state = 8675309u;
  for (u32 i = 0; i < sizeof data; i++) data[i] = (u8)(i * 167 >> 3);
  u32 sum = 0;
  for (i32 i = 0; i < n; i++) {
    u32 word = random_u32(), size = (word >> 16) >> (word & 15), from = random_u32() & 0x7ffff, to = random_u32() & 0x7ffff;
    if (i % 5 == 0) __builtin_memset(data + to, i, size);
    else __builtin_memmove(data + to, data + from, size);
    sum = mix(sum, data[to + size / 2]);
  }
  return (i32)sum;
}
