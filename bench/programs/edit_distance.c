/* Dynamic programming: Levenshtein distance of strings of n letters, two rows. */
#include "bench.h"

#define MOST 4000
static u8 a[MOST], b[MOST];
static i32 rows[2][MOST + 1];

static inline i32 least(i32 x, i32 y) { return x < y ? x : y; }

EXPORT i32 run(i32 n) {
  if (n > MOST) n = MOST;
  random_state = 1618033u;
  for (i32 i = 0; i < n; i++) a[i] = random_u32() >> 29, b[i] = random_u32() >> 29;
  for (i32 j = 0; j <= n; j++) rows[0][j] = j;
  for (i32 i = 0; i < n; i++) {
    i32 *above = rows[i & 1], *row = rows[~i & 1];
    row[0] = i + 1;
    for (i32 j = 0; j < n; j++) {
      row[j + 1] = least(least(row[j], above[j + 1]) + 1, above[j] + (a[i] != b[j]));
    }
  }
  return rows[n & 1][n];
}
