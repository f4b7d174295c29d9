/* Recursion and bits: counts the ways to place n queens. */
#include "bench.h"

static i32 place(u32 all, u32 columns, u32 left, u32 right) {
  if (columns == all) return 1;
  i32 ways = 0;
  for (u32 free = all & ~(columns | left | right); free;) {
    u32 bit = free & -free;
    free ^= bit;
    ways += place(all, columns | bit, (left | bit) << 1, (right | bit) >> 1);
  }
  return ways;
}

EXPORT i32 run(i32 n) { return place((1u << n) - 1, 0, 0, 0); }
