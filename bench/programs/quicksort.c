/* Sorting: quicksort of n integers, then a binary search for each. */
#include "bench.h"

#define MOST 500000
static i32 values[MOST];

static void sort(i32 low, i32 high) {
  while (low < high) {
    i32 pivot = values[low + (high - low) / 2], i = low, j = high;
    while (i <= j) {
      while (values[i] < pivot) i++;
      while (values[j] > pivot) j--;
      if (i <= j) {
        i32 t = values[i];
        values[i++] = values[j];
        values[j--] = t;
      }
    }
    if (j - low < high - i) {
      sort(low, j);
      low = i;
    } else {
      sort(i, high);
      high = j;
    }
  }
}

EXPORT i32 run(i32 n) {
  if (n > MOST) n = MOST;
  random_state = 2463534242u;
  for (i32 i = 0; i < n; i++) values[i] = (i32)random_u32();
  sort(0, n - 1);
  u32 sum = 0;
  random_state = 2463534242u;
  for (i32 i = 0; i < n; i++) {
    i32 key = (i32)random_u32(), low = 0, high = n;
    while (low < high) {
      i32 middle = (low + high) >> 1;
      if (values[middle] < key) low = middle + 1;
      else high = middle;
    }
    sum = mix(sum, (u32)low);
  }
  return (i32)sum;
}
