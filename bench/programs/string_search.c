/* Strings: Boyer-Moore-Horspool and a naive search over 256 KiB of four-letter text. */
#include "bench.h"

#define SIZE 262144
static u8 text[SIZE];

static i32 horspool(const u8 *needle, i32 m) {
  i32 skip[256], hits = 0;
  for (i32 i = 0; i < 256; i++) skip[i] = m;
  for (i32 i = 0; i < m - 1; i++) skip[needle[i]] = m - 1 - i;
  for (i32 at = 0; at <= SIZE - m; at += skip[text[at + m - 1]]) {
    i32 i = m - 1;
    while (i >= 0 && text[at + i] == needle[i]) i--;
    hits += i < 0;
  }
  return hits;
}

static i32 naive(const u8 *needle, i32 m) {
  i32 hits = 0;
  for (i32 at = 0; at <= SIZE - m; at++) {
    i32 i = 0;
    while (i < m && text[at + i] == needle[i]) i++;
    hits += i == m;
  }
  return hits;
}

EXPORT i32 run(i32 n) {
  random_state = 123456789u;
  for (i32 i = 0; i < SIZE; i++) text[i] = "acgt"[random_u32() >> 30];
  u32 sum = 0;
  for (i32 i = 0; i < n; i++) {
    const u8 *needle = text + (random_u32() % (SIZE - 64));
    i32 m = 6 + i % 20;
    sum = mix(sum, (u32)horspool(needle, m));
    sum = mix(sum, (u32)naive(needle, m));
  }
  return (i32)sum;
}
