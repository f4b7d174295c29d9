/* Interpreter and indirect calls: a register machine whose handlers are called through a table. */
#include "bench.h"

typedef struct {
  u8 op, a, b, c;
} Instruction;

static i32 registers[16];
static i32 pc, running;
static Instruction code[32];

static void op_add(Instruction i) { registers[i.a] = registers[i.b] + registers[i.c]; }
static void op_subtract(Instruction i) { registers[i.a] = registers[i.b] - registers[i.c]; }
static void op_multiply(Instruction i) { registers[i.a] = registers[i.b] * registers[i.c]; }
static void op_xor(Instruction i) { registers[i.a] = registers[i.b] ^ registers[i.c]; }
static void op_shift(Instruction i) { registers[i.a] = (i32)((u32)registers[i.b] >> i.c); }
static void op_constant(Instruction i) { registers[i.a] = i.b << 8 | i.c; }
static void op_branch(Instruction i) { if (registers[i.a] != 0) pc = i.b; }
static void op_halt(Instruction i) { running = i.a; }

static void (*const HANDLERS[])(Instruction) = {op_add, op_subtract, op_multiply, op_xor, op_shift, op_constant, op_branch, op_halt};

EXPORT i32 run(i32 n) {
  static const Instruction LOOP[] = {
      {5, 1, 0, 1}, {5, 2, 3, 7},                                              /* r1 = 1, r2 = 775 */
      {2, 3, 2, 0}, {4, 4, 3, 5}, {3, 2, 3, 4}, {0, 2, 2, 1}, {1, 0, 0, 1}, {6, 0, 2, 0}, {7, 0, 0, 0}};
  for (u32 i = 0; i < sizeof LOOP / sizeof *LOOP; i++) code[i] = LOOP[i];
  registers[0] = n;
  pc = 0;
  for (running = 1; running;) {
    Instruction i = code[pc++];
    HANDLERS[i.op](i);
  }
  return registers[2];
}
