/* Float: the spectral norm of the leading n by n block of an infinite matrix: divisions. */
#include "bench.h"

#define MOST 1000
static double u[MOST], v[MOST], t[MOST];

static double element(i32 i, i32 j) { return 1.0 / ((i + j) * (i + j + 1) / 2 + i + 1); }

static void multiply(i32 n, const double *x, double *y, i32 transposed) {
  for (i32 i = 0; i < n; i++) {
    double sum = 0;
    for (i32 j = 0; j < n; j++) sum += (transposed ? element(j, i) : element(i, j)) * x[j];
    y[i] = sum;
  }
}

EXPORT double run(i32 n) {
  if (n > MOST) n = MOST;
  for (i32 i = 0; i < n; i++) u[i] = 1;
  for (i32 i = 0; i < 4; i++) {
    multiply(n, u, t, 0), multiply(n, t, v, 1);
    multiply(n, v, t, 0), multiply(n, t, u, 1);
  }
  double uv = 0, vv = 0;
  for (i32 i = 0; i < n; i++) uv += u[i] * v[i], vv += v[i] * v[i];
  return __builtin_sqrt(uv / vv);
}
