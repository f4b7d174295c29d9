/* Integer: factorials and their decimal digits with 32-bit limbs and 64-bit products and remainders. */
#include "bench.h"

static u32 limbs[2048];

EXPORT i64 run(i32 n) {
  i32 size = 1;
  limbs[0] = 1;
  for (i32 i = 2; i <= n; i++) {
    u64 carry = 0;
    for (i32 k = 0; k < size; k++) {
      carry += (u64)limbs[k] * (u32)i;
      limbs[k] = (u32)carry;
      carry >>= 32;
    }
    if (carry && size < 2047) limbs[size++] = (u32)carry;
  }
  u64 sum = 0;
  i32 digits = 0;
  while (size) {
    u64 rest = 0;
    for (i32 k = size - 1; k >= 0; k--) {
      rest = rest << 32 | limbs[k];
      limbs[k] = (u32)(rest / 1000000000u);
      rest %= 1000000000u;
    }
    while (size && limbs[size - 1] == 0) size--;
    for (i32 k = 0; k < 9; k++, rest /= 10) sum += rest % 10, digits++;
  }
  return (i64)(sum << 16 | (u32)digits);
}
