/* Parsing: writes a JSON text once per call, parses it n times by recursive descent, and sums its contents. */
#include "bench.h"

static char text[100000];
static i32 length;
static i32 at;
static i64 total;

static void put(const char *words) {
  while (*words) text[length++] = *words++;
}

static void put_number(i32 value) {
  char digits[12];
  i32 n = 0;
  u32 rest = value < 0 ? -(u32)value : (u32)value;
  if (value < 0) text[length++] = '-';
  do digits[n++] = (char)('0' + rest % 10);
  while (rest /= 10);
  while (n) text[length++] = digits[--n];
}

static void write_text(void) {
  length = 0;
  random_state = 521288629u;
  put("{\"items\": [");
  for (i32 i = 0; i < 400; i++) {
    if (i) put(", ");
    put("{\"id\": ");
    put_number(i);
    put(", \"name\": \"item \\u00e9 \\\"quoted\\\" number\", \"price\": ");
    put_number((i32)(random_u32() % 2000) - 1000);
    put(".25e1, \"tags\": [\"red\", \"green\", \"blue\"], \"in stock\": ");
    put(i % 3 ? "true" : "false");
    put(", \"parent\": null}");
  }
  put("], \"done\": true}");
  text[length] = 0;
}

static void skip_space(void) {
  while (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') at++;
}

static i32 parse_string(void) {
  u32 hash = 2166136261u;
  for (at++; text[at] != '"'; at++) {
    u32 c = (u8)text[at];
    if (c == 0) return 0;
    if (c == '\\') {
      c = (u8)text[++at];
      if (c == 'u') {
        c = 0;
        for (i32 i = 0; i < 4; i++) {
          char d = text[++at];
          c = c << 4 | (u32)(d <= '9' ? d - '0' : (d | 32) - 'a' + 10);
        }
      } else if (c == 'n') {
        c = '\n';
      }
    }
    hash = mix(hash, c);
  }
  at++;
  total += hash & 255;
  return 1;
}

static i32 parse_number(void) {
  i32 negative = text[at] == '-', exponent = 0;
  double value = 0, scale = 1;
  if (negative) at++;
  if (text[at] < '0' || text[at] > '9') return 0;
  while (text[at] >= '0' && text[at] <= '9') value = value * 10 + (text[at++] - '0');
  if (text[at] == '.') {
    for (at++; text[at] >= '0' && text[at] <= '9'; at++) value += (text[at] - '0') * (scale /= 10);
  }
  if (text[at] == 'e' || text[at] == 'E') {
    for (at++; text[at] >= '0' && text[at] <= '9'; at++) exponent = exponent * 10 + (text[at] - '0');
  }
  while (exponent--) value *= 10;
  total += (i64)(negative ? -value : value);
  return 1;
}

static i32 parse_word(const char *word) {
  while (*word) {
    if (text[at++] != *word++) return 0;
  }
  return 1;
}

static i32 parse_value(i32 depth) {
  if (depth > 100) return 0;
  skip_space();
  switch (text[at]) {
    case '{':
    case '[': {
      char open = text[at++], close = open == '{' ? '}' : ']';
      skip_space();
      if (text[at] == close) return at++, 1;
      for (;;) {
        if (open == '{') {
          skip_space();
          if (text[at] != '"' || !parse_string()) return 0;
          skip_space();
          if (text[at++] != ':') return 0;
        }
        if (!parse_value(depth + 1)) return 0;
        skip_space();
        if (text[at] == close) return at++, 1;
        if (text[at++] != ',') return 0;
      }
    }
    case '"':
      return parse_string();
    case 't':
      total++;
      return parse_word("true");
    case 'f':
      return parse_word("false");
    case 'n':
      return parse_word("null");
    default:
      return parse_number();
  }
}

EXPORT i64 run(i32 n) {
  write_text();
  total = 0;
  for (i32 i = 0; i < n; i++) {
    at = 0;
    if (!parse_value(0) || at != length) return -1;
  }
  return total;
}
