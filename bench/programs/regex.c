/* Parsing and recursion: a backtracking matcher (. * + ? ^ $ and classes) over lines of generated text. */
#include "bench.h"

static char text[4096];

static const char *class_end(const char *p) {
  p++;
  while (*p != ']') p++;
  return p + 1;
}

static i32 matches_one(const char *p, char c) {
  if (c == 0) return 0;
  if (*p == '.') return 1;
  if (*p != '[') return *p == c;
  i32 negated = p[1] == '^';
  for (p += 1 + negated; *p != ']'; p++) {
    if (p[1] == '-' && p[2] != ']') {
      if (c >= p[0] && c <= p[2]) return !negated;
      p += 2;
    } else if (*p == c) {
      return !negated;
    }
  }
  return negated;
}

static const char *match_here(const char *p, const char *t) {
  if (*p == 0) return t;
  if (*p == '$' && p[1] == 0) return *t == 0 || *t == '\n' ? t : 0;
  const char *next = *p == '[' ? class_end(p) : p + 1;
  if (*next == '*' || *next == '+') {
    const char *end = t;
    while (matches_one(p, *end) && *end != '\n') end++;
    for (const char *least = *next == '+' ? t + 1 : t; end >= least; end--) {
      const char *found = match_here(next + 1, end);
      if (found) return found;
    }
    return 0;
  }
  if (*next == '?') {
    const char *found = matches_one(p, *t) ? match_here(next + 1, t + 1) : 0;
    return found ? found : match_here(next + 1, t);
  }
  return matches_one(p, *t) ? match_here(next, t + 1) : 0;
}

EXPORT i32 run(i32 n) {
  static const char *PATTERNS[] = {"[a-z]+@[a-z]+.com", "q.*z.*k", "[0-9]+-[0-9]+", "ab?c?d", "[^ ]+ing ", "the *end$"};
  static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyz      0123456789-@.ing \n";
  random_state = 362436069u;
  for (u32 i = 0; i < sizeof text - 1; i++) text[i] = LETTERS[random_u32() % (sizeof LETTERS - 1)];
  u32 sum = 0;
  for (i32 i = 0; i < n; i++) {
    for (u32 k = 0; k < sizeof PATTERNS / sizeof *PATTERNS; k++) {
      for (const char *t = text; *t; t++) {
        const char *end = match_here(PATTERNS[k], t);
        if (end) {
          sum = mix(sum, (u32)(end - t) + k);
          if (end > t) t = end - 1;
        }
      }
    }
  }
  return (i32)sum;
}
