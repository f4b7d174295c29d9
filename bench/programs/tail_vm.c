/* A bytecode interpreter whose instructions are functions that tail-call the next one through a table, the usual form
 * of interpreters where tail calls are guaranteed. Counts the steps of Collatz sequences. */
#include "bench.h"

typedef struct {
  i32 op, a, b, c;
} Instruction;

static u32 registers[8];

typedef u32 (*Handler)(const Instruction *at, u32 *r, u32 steps);
static const Handler handlers[];

#define NEXT(at) __attribute__((musttail)) return handlers[(at)->op](at, r, steps + 1)

static u32 op_set(const Instruction *at, u32 *r, u32 steps) {
  r[at->a] = (u32)at->b;
  at++;
  NEXT(at);
}
static u32 op_move(const Instruction *at, u32 *r, u32 steps) {
  r[at->a] = r[at->b];
  at++;
  NEXT(at);
}
static u32 op_add(const Instruction *at, u32 *r, u32 steps) {
  r[at->a] = r[at->b] + (u32)at->c;
  at++;
  NEXT(at);
}
static u32 op_mul(const Instruction *at, u32 *r, u32 steps) {
  r[at->a] = r[at->b] * (u32)at->c;
  at++;
  NEXT(at);
}
static u32 op_half(const Instruction *at, u32 *r, u32 steps) {
  r[at->a] = r[at->b] >> 1;
  at++;
  NEXT(at);
}
static u32 op_odd(const Instruction *at, u32 *r, u32 steps) {
  at += (r[at->a] & 1) ? at->b : 1;
  NEXT(at);
}
static u32 op_jump(const Instruction *at, u32 *r, u32 steps) {
  at += at->b;
  NEXT(at);
}
static u32 op_more(const Instruction *at, u32 *r, u32 steps) {
  at += (r[at->a] > (u32)at->c) ? at->b : 1;
  NEXT(at);
}
static u32 op_less(const Instruction *at, u32 *r, u32 steps) {
  at += (r[at->a] < r[at->c]) ? at->b : 1;
  NEXT(at);
}
static u32 op_halt(const Instruction *at, u32 *r, u32 steps) {
  (void)at;
  return mix(r[2], steps);
}

enum { SET, MOVE, ADD, MUL, HALF, ODD, JUMP, MORE, LESS, HALT };
static const Handler handlers[] = {op_set, op_move, op_add, op_mul, op_half, op_odd, op_jump, op_more, op_less, op_halt};

/* for (r0 = 1; r0 < r3; r0++) for (r1 = r0; r1 > 1; r2++) r1 = odd(r1) ? 3 r1 + 1 : r1 / 2; */
static const Instruction program[] = {
  {SET, 0, 1, 0}, {SET, 2, 0, 0},
  {MOVE, 1, 0, 0},
  {ODD, 1, 3, 0},
  {HALF, 1, 1, 0}, {JUMP, 0, 3, 0},
  {MUL, 1, 1, 3}, {ADD, 1, 1, 1},
  {ADD, 2, 2, 1},
  {MORE, 1, -6, 1},
  {ADD, 0, 0, 1},
  {LESS, 0, -9, 3},
  {HALT, 0, 0, 0},
};

EXPORT u32 run(i32 n) {
  registers[3] = (u32)n;
  return handlers[program->op](program, registers, 0);
}
