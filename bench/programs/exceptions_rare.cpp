/* Rare exceptions: a recursive-descent parser of expressions whose every part may throw; about one input in a hundred
 * does. Scopes have destructors. */
#include "bench.h"
#include "exceptions.h"

static char text[64];
static int at, live;

struct Scope {
  Scope() { live++; }
  ~Scope() { live--; }
};

struct Error {
  int where;
};

/* A separate function: clang 14 cannot compile a throw beside calls that may throw. */
__attribute__((noinline)) static void fail() { throw Error{at}; }

__attribute__((noinline)) static i32 sum();

__attribute__((noinline)) static i32 factor() {
  Scope scope;
  char c = text[at];
  if (c == '(') {
    at++;
    i32 value = sum();
    if (text[at] != ')') fail();
    at++;
    return value;
  }
  if (c < '0' || c > '9') fail();
  i32 value = 0;
  for (; text[at] >= '0' && text[at] <= '9'; at++) value = value * 10 + (text[at] - '0');
  return value;
}

__attribute__((noinline)) static i32 product() {
  Scope scope;
  i32 value = factor();
  for (; text[at] == '*'; ) {
    at++;
    value = (i32)((u32)value * (u32)factor());
  }
  return value;
}

static i32 sum() {
  Scope scope;
  i32 value = product();
  for (; text[at] == '+'; ) {
    at++;
    value = (i32)((u32)value + (u32)product());
  }
  return value;
}

static void make() {
  int n = 0, depth = 0;
  while (n < 40) {
    if (random_u32() % 4 == 0 && depth < 4) text[n++] = '(', depth++;
    text[n++] = (char)('0' + random_u32() % 10);
    if (depth > 0 && random_u32() % 3 == 0) text[n++] = ')', depth--;
    text[n++] = random_u32() % 3 ? '+' : '*';
  }
  text[n++] = random_u32() % 200 ? '7' : '?';
  while (depth-- > 0) text[n++] = ')';
  text[n] = 0;
}

extern "C" EXPORT u32 run(i32 n) {
  random_state = 2463534242u;
  u32 check = 0;
  for (i32 i = 0; i < n; i++) {
    make();
    for (int again = 0; again < 4; again++) {
      at = 0;
      try {
        check = mix(check, (u32)sum());
      } catch (...) {
        check = mix(check, 0xbad + (u32)at);
      }
    }
  }
  return check + (u32)live;
}
