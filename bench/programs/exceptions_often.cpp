/* Frequent exceptions: a search that abandons an attempt by throwing through several frames, some with destructors, and
 * continues with the next attempt. */
#include "bench.h"
#include "exceptions.h"

static int live;
static u32 visited;

struct Scope {
  Scope() { live++; }
  ~Scope() { live--; }
};

__attribute__((noinline)) static void descend(i32 depth, u32 x) {
  visited++;
  if (depth == 0) {
    if (x & 1) throw x;
    return;
  }
  if (depth & 1) {
    Scope scope;
    descend(depth - 1, x * 3 + 1);
    visited++; // not in tail position
  } else {
    descend(depth - 1, x >> 1);
    visited += 2;
  }
}

extern "C" EXPORT u32 run(i32 n) {
  random_state = 2463534242u;
  visited = 0;
  u32 caught = 0;
  for (i32 i = 0; i < n; i++) {
    try {
      descend(4 + (i & 7), random_u32());
    } catch (...) {
      caught++;
    }
  }
  return mix(visited, caught) + (u32)live;
}
