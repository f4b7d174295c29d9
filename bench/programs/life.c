/* Memory and branches: n generations of Conway's game of life on a 256 by 256 torus. */
#include "bench.h"

#define SIDE 256
static u8 cells[2][SIDE][SIDE];

EXPORT i32 run(i32 n) {
  random_state = 777u;
  for (i32 y = 0; y < SIDE; y++) {
    for (i32 x = 0; x < SIDE; x++) cells[0][y][x] = random_u32() >> 31;
  }
  for (i32 g = 0; g < n; g++) {
    u8(*now)[SIDE] = cells[g & 1], (*next)[SIDE] = cells[~g & 1];
    for (i32 y = 0; y < SIDE; y++) {
      const u8 *up = now[(y - 1) & (SIDE - 1)], *row = now[y], *down = now[(y + 1) & (SIDE - 1)];
      for (i32 x = 0; x < SIDE; x++) {
        i32 left = (x - 1) & (SIDE - 1), right = (x + 1) & (SIDE - 1);
        i32 around = up[left] + up[x] + up[right] + row[left] + row[right] + down[left] + down[x] + down[right];
        next[y][x] = around == 3 || (around == 2 && row[x]);
      }
    }
  }
  u32 sum = 0;
  for (i32 i = 0; i < SIDE * SIDE; i++) sum = mix(sum, (&cells[n & 1][0][0])[i]);
  return (i32)sum;
}
