/* Memory: pancake flips of all permutations of n numbers. */
#include "bench.h"

EXPORT i32 run(i32 n) {
  i32 permutation[16], work[16], counts[16], most = 0, checksum = 0, r = n, round = 0;
  for (i32 i = 0; i < n; i++) permutation[i] = i;
  for (;;) {
    for (; r != 1; r--) counts[r - 1] = r;
    if (permutation[0]) {
      for (i32 i = 0; i < n; i++) work[i] = permutation[i];
      i32 flips = 0;
      for (i32 first; (first = work[0]); flips++) {
        for (i32 i = 0, j = first; i < j; i++, j--) {
          i32 t = work[i];
          work[i] = work[j];
          work[j] = t;
        }
      }
      if (flips > most) most = flips;
      checksum += round & 1 ? -flips : flips;
    }
    for (;;) {
      if (r == n) return checksum << 8 | most;
      i32 first = permutation[0];
      for (i32 i = 0; i < r; i++) permutation[i] = permutation[i + 1];
      permutation[r] = first;
      if (--counts[r] > 0) break;
      r++;
    }
    round++;
  }
}
