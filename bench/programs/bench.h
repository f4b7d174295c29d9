/* Common prelude of the C programs: the exported entry, short integer names and one random generator, so that all hosts
 * compute the same. run(n) does work that grows with n and returns a checksum; it may be called repeatedly. */
#ifndef BENCH_H
#define BENCH_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;

#define EXPORT __attribute__((export_name("run")))

static u32 random_state;

/* Marsaglia's xorshift. */
static inline u32 random_u32(void) {
  u32 x = random_state;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  return random_state = x;
}

static inline u32 mix(u32 sum, u32 value) { return (sum ^ value) * 16777619u; }

#endif
