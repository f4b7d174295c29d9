/* Calls: doubly recursive Fibonacci. */
#include "bench.h"

__attribute__((noinline)) static i32 fibonacci(i32 n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

EXPORT i32 run(i32 n) { return fibonacci(n); }
