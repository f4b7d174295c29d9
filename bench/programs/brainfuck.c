/* Interpreter: Brainfuck with precomputed bracket targets; the program multiplies in nested loops. */
#include "bench.h"

static const char PROGRAM[] =
    "++++++++++++[>++++++++++[>+++++++[>+>++>+++<<<-]>>[<+>-]<<<-]>>.>>.<<<<<-]"
    ">>>>>>>>++++++++[>+++++[>+++++++[>+++>+<<-]>>[->+>+<<]>>[-<<+>>]<<<<<-]>>.>>.<<<<<-]";
static u8 tape[30000];
static u16 partner[sizeof PROGRAM];

EXPORT i32 run(i32 n) {
  u16 open[64];
  i32 depth = 0;
  for (i32 i = 0; PROGRAM[i]; i++) {
    if (PROGRAM[i] == '[') open[depth++] = (u16)i;
    if (PROGRAM[i] == ']') {
      partner[i] = open[--depth];
      partner[partner[i]] = (u16)i;
    }
  }
  u32 sum = 0;
  for (i32 round = 0; round < n; round++) {
    for (i32 i = 0; i < 256; i++) tape[i] = 0;
    u8 *cell = tape + 16;
    for (i32 pc = 0; PROGRAM[pc]; pc++) {
      switch (PROGRAM[pc]) {
        case '>': cell++; break;
        case '<': cell--; break;
        case '+': ++*cell; break;
        case '-': --*cell; break;
        case '.': sum = mix(sum, *cell); break;
        case '[': if (!*cell) pc = partner[pc]; break;
        case ']': if (*cell) pc = partner[pc]; break;
      }
    }
  }
  return (i32)sum;
}
