/* Parsing and branches: a miniature expression compiler: tokens, precedence, evaluation. */
#include "bench.h"

static char text[20000];
static i32 length;
static const char *at;

static void write_expression(i32 depth) {
  if (depth == 0) {
    u32 value = 1 + random_u32() % 99;
    if (value > 9) text[length++] = (char)('0' + value / 10);
    text[length++] = (char)('0' + value % 10);
    return;
  }
  i32 bracket = (random_u32() & 3) == 0;
  if (bracket) text[length++] = '(';
  write_expression(depth - 1);
  text[length++] = ' ';
  text[length++] = "+-*/%^&|"[random_u32() >> 29];
  text[length++] = ' ';
  write_expression(depth - 1);
  if (bracket) text[length++] = ')';
}

static i32 parse(i32 least);

static i32 atom(void) {
  while (*at == ' ') at++;
  if (*at == '(') {
    at++;
    i32 value = parse(0);
    while (*at == ' ') at++;
    at++;
    return value;
  }
  i32 value = 0;
  while (*at >= '0' && *at <= '9') value = value * 10 + (*at++ - '0');
  return value;
}

static i32 precedence(char c) {
  switch (c) {
    case '|': return 1;
    case '^': return 2;
    case '&': return 3;
    case '+': case '-': return 4;
    case '*': case '/': case '%': return 5;
    default: return 0;
  }
}

static i32 parse(i32 least) {
  i32 left = atom();
  for (;;) {
    while (*at == ' ') at++;
    char op = *at;
    i32 level = precedence(op);
    if (level == 0 || level <= least) return left;
    at++;
    u32 a = (u32)left, b = (u32)parse(level);
    switch (op) {
      case '+': a += b; break;
      case '-': a -= b; break;
      case '*': a *= b; break;
      case '/': a = b ? a / b : 0; break;
      case '%': a = b ? a % b : 0; break;
      case '^': a ^= b; break;
      case '&': a &= b; break;
      default: a |= b; break;
    }
    left = (i32)a;
  }
}

EXPORT i32 run(i32 n) {
  length = 0;
  random_state = 2718281u;
  write_expression(10);
  text[length] = 0;
  u32 sum = 0;
  i32 digit = 0;
  while (text[digit] == '(') digit++;
  for (i32 i = 0; i < n; i++) {
    at = text;
    sum = mix(sum, (u32)parse(0));
    text[digit] = (char)('1' + i % 9);
  }
  return (i32)sum;
}
