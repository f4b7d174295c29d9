/* Integer and branches: the longest Collatz sequence below n, with i64. */
#include "bench.h"

EXPORT i64 run(i32 n) {
  i64 longest = 0, best = 0;
  for (i64 start = 1; start < n; start++) {
    i64 length = 0;
    for (u64 x = (u64)start; x != 1; length++) x = x & 1 ? 3 * x + 1 : x >> 1;
    if (length > longest) longest = length, best = start;
  }
  return best << 16 | longest;
}
