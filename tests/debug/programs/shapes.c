// The program of the debugger's tests. Rebuild with programs/build.sh; line numbers are in the tests.
enum color { RED, GREEN = 5, BLUE };
struct point {
  int x;
  double y;
};
struct shape {
  const char *name;
  struct point corners[2];
  struct shape *next;
  enum color color;
  unsigned char visible : 1, layer : 3;
};
typedef long long total;

static struct shape last = { "last", { { 7, 0.5 }, { 8, 1.5 } }, 0, GREEN, 1, 5 };
total count = 41;

__attribute__((noinline)) static int factorial(int n) {
  if (n < 2) return 1;
  int rest = factorial(n - 1);
  return n * rest;
}

__attribute__((noinline)) static total add(struct shape *shape, const int *values, int length) {
  total sum = 0;
  for (int i = 0; i < length; i++) {
    sum += values[i];
  }
  shape->corners[0].x = (int)sum;
  return sum;
}

__attribute__((export_name("run"))) int run(int n) {
  struct shape first = { "first", { { 1, 2.5 }, { 3, -4.0 } }, &last, BLUE, 0, 2 };
  int values[3] = { 10, 20, n };
  float ratio = 0.25f;
  total sum = add(&first, values, 3);
  count = count + 1;
  return (int)sum + factorial(n) + first.corners[0].x + (int)(ratio * 4);
}

__attribute__((export_name("divide"))) int divide(int a, int b) {
  int quotient = a / b;
  return quotient;
}

__attribute__((export_name("spin"))) int spin(void) {
  volatile int turns = 0;
  while (turns >= 0) turns = (turns + 1) & 0xffff;
  return turns;
}
