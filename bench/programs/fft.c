/* Float: a radix-2 Fourier transform and its inverse over 4096 points, with the C library's sine. */
#include <math.h>
#include "bench.h"

#define SIZE 4096
static double re[SIZE], im[SIZE], cosines[SIZE / 2], sines[SIZE / 2];

static void transform(double sign) {
  for (i32 i = 1, j = 0; i < SIZE; i++) {
    i32 bit = SIZE >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      double t = re[i];
      re[i] = re[j], re[j] = t;
      t = im[i];
      im[i] = im[j], im[j] = t;
    }
  }
  for (i32 length = 2; length <= SIZE; length <<= 1) {
    i32 step = SIZE / length;
    for (i32 i = 0; i < SIZE; i += length) {
      for (i32 k = 0; k < length / 2; k++) {
        double c = cosines[k * step], s = sign * sines[k * step];
        i32 a = i + k, b = a + length / 2;
        double x = re[b] * c - im[b] * s, y = re[b] * s + im[b] * c;
        re[b] = re[a] - x, im[b] = im[a] - y;
        re[a] += x, im[a] += y;
      }
    }
  }
}

EXPORT double run(i32 n) {
  for (i32 i = 0; i < SIZE / 2; i++) {
    cosines[i] = cos(6.283185307179586 * i / SIZE);
    sines[i] = sin(6.283185307179586 * i / SIZE);
  }
  for (i32 i = 0; i < SIZE; i++) re[i] = (i * 37 % 101) - 50, im[i] = 0;
  for (i32 i = 0; i < n; i++) {
    transform(-1);
    transform(1);
    for (i32 k = 0; k < SIZE; k++) re[k] /= SIZE, im[k] /= SIZE;
  }
  double sum = 0;
  for (i32 i = 0; i < SIZE; i++) sum += re[i] * (i % 7) + im[i];
  return sum;
}
