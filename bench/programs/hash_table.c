/* Hashing and memory: an open-addressing table with insertions, look-ups and deletions. */
#include "bench.h"

#define SLOTS 65536u
static u32 keys[SLOTS], counts[SLOTS];
static u8 states[SLOTS];

static u32 find(u32 key, i32 *found) {
  u32 at = key * 2654435769u >> 16, grave = SLOTS;
  for (;; at = (at + 1) & (SLOTS - 1)) {
    if (states[at] == 0) {
      *found = 0;
      return grave < SLOTS ? grave : at;
    }
    if (states[at] == 2) {
      if (grave == SLOTS) grave = at;
    } else if (keys[at] == key) {
      *found = 1;
      return at;
    }
  }
}

EXPORT i32 run(i32 n) {
  for (u32 i = 0; i < SLOTS; i++) states[i] = 0;
  random_state = 88172645u;
  u32 sum = 0, live = 0;
  for (i32 i = 0; i < n; i++) {
    u32 word = random_u32(), key = word % 40000u;
    i32 found;
    u32 at = find(key, &found);
    if (found && (word >> 28) == 3) {
      states[at] = 2;
      live--;
    } else if (found) {
      sum += ++counts[at];
    } else if (live < 30000) {
      states[at] = 1;
      keys[at] = key;
      counts[at] = 1;
      live++;
    }
  }
  return (i32)(sum ^ live << 16);
}
