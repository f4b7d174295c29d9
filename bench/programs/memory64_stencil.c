/* A 64-bit address space: heat diffusion over a grid of floats, addressed by 32-bit and 64-bit indices. */
#include "bench.h"

enum { SIDE = 160 };
static float grid[2][SIDE][SIDE];

EXPORT float run(i32 n) {
  random_state = 2463534242u;
  for (i32 y = 0; y < SIDE; y++) {
    for (i32 x = 0; x < SIDE; x++) grid[0][y][x] = (float)(random_u32() >> 8);
  }
  for (i32 round = 0; round < n; round++) {
    float(*from)[SIDE] = grid[round & 1], (*to)[SIDE] = grid[~round & 1];
    for (i32 y = 1; y < SIDE - 1; y++) {
      for (i32 x = 1; x < SIDE - 1; x++) {
        to[y][x] = 0.5f * from[y][x] + 0.125f * (from[y - 1][x] + from[y + 1][x] + from[y][x - 1] + from[y][x + 1]);
      }
    }
  }
  float sum = 0;
  for (i64 i = 0; i < SIDE; i++) sum += grid[n & 1][i][(i * 7) % SIDE];
  return sum;
}
