/* Compression: an LZ77 with a hash chain over 64 KiB, compressed, decompressed and compared. */
#include "bench.h"

#define SIZE 65536
#define WINDOW 4096
static u8 input[SIZE], packed[SIZE * 2], output[SIZE];
static i32 heads[4096], chain[SIZE];

static i32 compress(void) {
  i32 out = 0, at = 0;
  for (i32 i = 0; i < 4096; i++) heads[i] = -1;
  while (at < SIZE) {
    i32 best = 0, from = 0;
    if (at + 4 < SIZE) {
      u32 hash = ((u32)input[at] << 16 | (u32)input[at + 1] << 8 | input[at + 2]) * 2654435761u >> 20;
      i32 tries = 16;
      for (i32 other = heads[hash]; other >= 0 && at - other < WINDOW && tries--; other = chain[other]) {
        i32 length = 0;
        while (length < 18 && at + length < SIZE && input[other + length] == input[at + length]) length++;
        if (length > best) best = length, from = other;
      }
      chain[at] = heads[hash];
      heads[hash] = at;
    }
    if (best >= 3) {
      i32 distance = at - from;
      packed[out++] = 1;
      packed[out++] = (u8)distance;
      packed[out++] = (u8)(distance >> 8 << 4 | (best - 3));
      at += best;
    } else {
      packed[out++] = 0;
      packed[out++] = input[at++];
    }
  }
  return out;
}

static i32 decompress(i32 size) {
  i32 at = 0;
  for (i32 in = 0; in < size;) {
    if (packed[in] == 0) {
      output[at++] = packed[in + 1];
      in += 2;
    } else {
      i32 distance = packed[in + 1] | packed[in + 2] >> 4 << 8, length = (packed[in + 2] & 15) + 3;
      for (; length--; at++) output[at] = output[at - distance];
      in += 3;
    }
  }
  return at;
}

EXPORT i32 run(i32 n) {
  static const char WORDS[][8] = {"the ", "quick ", "brown ", "fox ", "jumps ", "over ", "a lazy ", "dog. ", "wasm ", "module\n"};
  random_state = 31337u;
  for (i32 at = 0; at < SIZE;) {
    for (const char *c = WORDS[random_u32() % 10]; *c && at < SIZE; c++) input[at++] = (u8)*c;
    if (random_u32() % 8 == 0 && at < SIZE) input[at++] = (u8)random_u32();
  }
  u32 sum = 0;
  for (i32 i = 0; i < n; i++) {
    i32 size = compress();
    if (decompress(size) != SIZE) return -1;
    for (i32 j = 0; j < SIZE; j++) {
      if (output[j] != input[j]) return -2;
    }
    sum = mix(sum, (u32)size);
    input[i * 7919 % SIZE] ^= 1;
  }
  return (i32)sum;
}
