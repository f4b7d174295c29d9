/* Float and memory: multiplies two n by n matrices of f64. */
#include "bench.h"

#define MOST 256
static double a[MOST * MOST], b[MOST * MOST], c[MOST * MOST];

EXPORT double run(i32 n) {
  if (n > MOST) n = MOST;
  for (i32 i = 0; i < n * n; i++) {
    a[i] = (i % 17) * 0.5;
    b[i] = (i % 13) - 6.0;
  }
  for (i32 i = 0; i < n; i++) {
    for (i32 j = 0; j < n; j++) {
      double sum = 0;
      for (i32 k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
      c[i * n + j] = sum;
    }
  }
  double trace = 0;
  for (i32 i = 0; i < n; i++) trace += c[i * n + i] * (i + 1);
  return trace;
}
