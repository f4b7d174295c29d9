/* Floats and text: formats numbers with 15 digits and an exponent, and reads them back. */
#include "bench.h"

static i32 format(double value, char *to) {
  char *start = to;
  i32 exponent = 0;
  if (value < 0) *to++ = '-', value = -value;
  if (value != 0) {
    static const double UP[] = {1e1, 1e2, 1e4, 1e8, 1e16, 1e32, 1e64, 1e128, 1e256};
    for (i32 i = 8; i >= 0; i--) {
      if (value >= UP[i]) value /= UP[i], exponent += 1 << i;
    }
    for (i32 i = 8; i >= 0; i--) {
      if (value * UP[i] < 10) value *= UP[i], exponent -= 1 << i;
    }
  }
  u64 digits = (u64)(value * 1e14 + 0.5);
  if (digits >= 1000000000000000ull) digits /= 10, exponent++;
  u64 unit = 100000000000000ull;
  *to++ = (char)('0' + digits / unit);
  *to++ = '.';
  while ((digits %= unit) != 0) *to++ = (char)('0' + digits / (unit /= 10));
  *to++ = 'e';
  if (exponent < 0) *to++ = '-', exponent = -exponent;
  if (exponent > 99) *to++ = (char)('0' + exponent / 100);
  if (exponent > 9) *to++ = (char)('0' + exponent / 10 % 10);
  *to++ = (char)('0' + exponent % 10);
  *to = 0;
  return (i32)(to - start);
}

static double parse(const char *at) {
  i32 negative = *at == '-', places = 0, exponent = 0;
  u64 digits = 0;
  if (negative) at++;
  for (; *at != 'e'; at++) {
    if (*at == '.') places = 1;
    else digits = digits * 10 + (u64)(*at - '0'), exponent -= places;
  }
  i32 below = *++at == '-', written = 0;
  if (below) at++;
  while (*at) written = written * 10 + (*at++ - '0');
  exponent += below ? -written : written;
  double value = (double)digits;
  for (; exponent > 0; exponent--) value *= 10;
  for (; exponent < 0; exponent++) value /= 10;
  return negative ? -value : value;
}

EXPORT double run(i32 n) {
  char text[40];
  double sum = 0;
  u32 hash = 0;
  random_state = 424242u;
  for (i32 i = 0; i < n; i++) {
    double value = ((double)random_u32() - 2147483648.0) / (1 + (random_u32() >> (random_u32() & 31)));
    i32 length = format(value, text);
    for (i32 k = 0; k < length; k++) hash = mix(hash, (u8)text[k]);
    sum += parse(text) / value;
  }
  return sum + hash;
}
