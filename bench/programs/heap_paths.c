/* Data structures: Dijkstra's shortest paths over a grid with a binary heap. */
#include "bench.h"

#define SIDE 128
#define CELLS (SIDE * SIDE)
static u8 cost[CELLS];
static u32 distance[CELLS];
static u64 heap[CELLS * 4];
static i32 size;

static void push(u64 item) {
  i32 at = size++;
  while (at > 0 && heap[(at - 1) / 2] > item) {
    heap[at] = heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  heap[at] = item;
}

static u64 pop(void) {
  u64 top = heap[0], last = heap[--size];
  i32 at = 0;
  for (i32 child; (child = at * 2 + 1) < size; at = child) {
    if (child + 1 < size && heap[child + 1] < heap[child]) child++;
    if (heap[child] >= last) break;
    heap[at] = heap[child];
  }
  heap[at] = last;
  return top;
}

static void relax(u32 cell, u32 reached) {
  u32 length = reached + cost[cell];
  if (length < distance[cell]) {
    distance[cell] = length;
    push((u64)length << 32 | cell);
  }
}

EXPORT i32 run(i32 n) {
  u32 sum = 0;
  random_state = 1234567u;
  for (i32 round = 0; round < n; round++) {
    for (i32 i = 0; i < CELLS; i++) cost[i] = 1 + (random_u32() >> 25), distance[i] = ~0u;
    size = 0;
    distance[0] = 0;
    push(0);
    while (size) {
      u64 item = pop();
      u32 cell = (u32)item, reached = (u32)(item >> 32), x = cell % SIDE, y = cell / SIDE;
      if (reached != distance[cell]) continue;
      if (x > 0) relax(cell - 1, reached);
      if (x < SIDE - 1) relax(cell + 1, reached);
      if (y > 0) relax(cell - SIDE, reached);
      if (y < SIDE - 1) relax(cell + SIDE, reached);
    }
    sum = mix(sum, distance[CELLS - 1]);
  }
  return (i32)sum;
}
