/* Float and branches: points of an n by n picture of the Mandelbrot set. */
#include "bench.h"

EXPORT i32 run(i32 n) {
  i32 sum = 0;
  for (i32 py = 0; py < n; py++) {
    double y0 = 2.0 * py / n - 1.0;
    for (i32 px = 0; px < n; px++) {
      double x0 = 3.0 * px / n - 2.0, x = 0, y = 0;
      i32 i = 0;
      while (i < 200) {
        double xx = x * x, yy = y * y;
        if (xx + yy > 4.0) break;
        y = 2.0 * x * y + y0;
        x = xx - yy + x0;
        i++;
      }
      sum += i;
    }
  }
  return sum;
}
