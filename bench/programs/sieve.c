/* Memory: the sieve of Eratosthenes on bytes, n times below 300,000. */
#include "bench.h"

#define LIMIT 300000
static u8 composite[LIMIT];

EXPORT i32 run(i32 n) {
  i32 count = 0;
  for (i32 round = 0; round < n; round++) {
    for (i32 i = 0; i < LIMIT; i++) composite[i] = 0;
    for (i32 i = 2; i < LIMIT; i++) {
      if (composite[i]) continue;
      count++;
      for (i64 j = (i64)i * i; j < LIMIT; j += i) composite[j] = 1;
    }
  }
  return count;
}
