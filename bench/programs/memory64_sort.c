/* A 64-bit address space: merge sort of records through arrays of pointers, each 8 bytes wide. */
#include "bench.h"

typedef struct {
  u32 key, weight;
} Record;

enum { MOST = 20000 };
static Record records[MOST];
static Record *first[MOST], *second[MOST];

static void merge(Record **from, Record **to, i64 low, i64 middle, i64 high) {
  i64 a = low, b = middle;
  for (i64 i = low; i < high; i++) {
    if (a < middle && (b >= high || from[a]->key <= from[b]->key)) to[i] = from[a++];
    else to[i] = from[b++];
  }
}

EXPORT u32 run(i32 n) {
  i64 count = n < MOST ? n : MOST;
  random_state = 2463534242u;
  for (i64 i = 0; i < count; i++) {
    records[i].key = random_u32();
    records[i].weight = (u32)i;
    first[i] = &records[i];
  }
  Record **from = first, **to = second;
  for (i64 width = 1; width < count; width *= 2) {
    for (i64 low = 0; low < count; low += 2 * width) {
      i64 middle = low + width < count ? low + width : count;
      i64 high = low + 2 * width < count ? low + 2 * width : count;
      merge(from, to, low, middle, high);
    }
    Record **t = from;
    from = to;
    to = t;
  }
  u32 sum = 0;
  for (i64 i = 0; i < count; i++) sum = mix(sum, from[i]->key ^ from[i]->weight);
  return sum;
}
