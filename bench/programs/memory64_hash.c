/* A 64-bit address space: a chained hash table whose nodes come from an arena; dominated by chasing 8-byte pointers. */
#include "bench.h"

typedef struct Node {
  struct Node *next;
  u64 key, count;
} Node;

enum { BUCKETS = 4096, NODES = 16384 };
static Node *buckets[BUCKETS];
static Node nodes[NODES];

EXPORT u64 run(i32 n) {
  i64 used = 0;
  for (i64 i = 0; i < BUCKETS; i++) buckets[i] = 0;
  random_state = 2463534242u;
  u64 sum = 0;
  for (i32 i = 0; i < n; i++) {
    u64 key = random_u32() % (NODES * 2 - 1);
    Node **bucket = &buckets[(key * 0x9e3779b97f4a7c15ull) >> 52], *at = *bucket;
    while (at && at->key != key) at = at->next;
    if (at) sum += ++at->count;
    else if (used < NODES) {
      at = &nodes[used++];
      at->key = key, at->count = 1, at->next = *bucket;
      *bucket = at;
    }
  }
  return sum ^ (u64)used;
}
