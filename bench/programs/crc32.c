/* Hashing: CRC-32 by table over 64 KiB, n times. */
#include "bench.h"

static u32 table[256];
static u8 data[65536];

EXPORT i32 run(i32 n) {
  for (u32 i = 0; i < 256; i++) {
    u32 c = i;
    for (i32 k = 0; k < 8; k++) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
    table[i] = c;
  }
  for (u32 i = 0; i < sizeof data; i++) data[i] = (u8)(i * 31 + (i >> 8));
  u32 crc = ~0u;
  for (i32 i = 0; i < n; i++) {
    for (u32 j = 0; j < sizeof data; j++) crc = table[(crc ^ data[j]) & 255] ^ (crc >> 8);
  }
  return (i32)~crc;
}
