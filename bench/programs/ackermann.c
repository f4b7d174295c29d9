/* Calls: Ackermann's function and Takeuchi's, three deep argument lists. */
#include "bench.h"

__attribute__((noinline)) static i32 ackermann(i32 m, i32 n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}

__attribute__((noinline)) static i32 takeuchi(i32 x, i32 y, i32 z) {
  if (y >= x) return z;
  return takeuchi(takeuchi(x - 1, y, z), takeuchi(y - 1, z, x), takeuchi(z - 1, x, y));
}

EXPORT i32 run(i32 n) { return ackermann(2, n) + takeuchi(n / 8, n / 16, n / 32); }
