/* Interpreter: a stack machine whose switch becomes br_table; its program counts primes by trial division. */
#include "bench.h"

enum { PUSH, LOAD, STORE, ADD, SUB, MUL, REM, LESS, JUMP, BRANCH_ZERO, DUP, DROP, SWAP, INCREMENT, HALT };
enum { LIMIT, CANDIDATE, DIVISOR, COUNT };

typedef struct {
  i32 op, arg;
} Instruction;

static Instruction code[64];
static i32 length;
static i32 stack[64], locals[8];

static i32 emit(i32 op, i32 arg) {
  code[length].op = op;
  code[length].arg = arg;
  return length++;
}

/* count = 0; for (candidate = 2; candidate < limit; candidate++)
     for (divisor = 2; ; divisor++) { if (candidate < divisor * divisor) { count++; break; } if (candidate % divisor == 0) break; } */
static void assemble(void) {
  length = 0;
  emit(PUSH, 0), emit(STORE, COUNT), emit(PUSH, 2), emit(STORE, CANDIDATE);
  i32 outer = emit(LOAD, CANDIDATE);
  emit(LOAD, LIMIT), emit(LESS, 0);
  i32 leave = emit(BRANCH_ZERO, 0);
  emit(PUSH, 2), emit(STORE, DIVISOR);
  i32 inner = emit(LOAD, CANDIDATE);
  emit(LOAD, DIVISOR), emit(DUP, 0), emit(MUL, 0), emit(LESS, 0);
  i32 no_prime = emit(BRANCH_ZERO, 0);
  emit(INCREMENT, COUNT);
  i32 next = emit(JUMP, 0);
  code[no_prime].arg = emit(LOAD, CANDIDATE);
  emit(LOAD, DIVISOR), emit(REM, 0);
  i32 divides = emit(BRANCH_ZERO, 0);
  emit(INCREMENT, DIVISOR), emit(JUMP, inner);
  code[next].arg = code[divides].arg = emit(INCREMENT, CANDIDATE);
  emit(JUMP, outer);
  code[leave].arg = emit(HALT, 0);
}

static void interpret(void) {
  i32 *top = stack;
  const Instruction *pc = code;
  for (;;) {
    i32 arg = pc->arg;
    switch ((pc++)->op) {
      case PUSH: *++top = arg; break;
      case LOAD: *++top = locals[arg]; break;
      case STORE: locals[arg] = *top--; break;
      case ADD: top--, top[0] += top[1]; break;
      case SUB: top--, top[0] -= top[1]; break;
      case MUL: top--, top[0] *= top[1]; break;
      case REM: top--, top[0] %= top[1]; break;
      case LESS: top--, top[0] = top[0] < top[1]; break;
      case JUMP: pc = code + arg; break;
      case BRANCH_ZERO: if (*top-- == 0) pc = code + arg; break;
      case DUP: top[1] = top[0], top++; break;
      case DROP: top--; break;
      case SWAP: { i32 t = top[0]; top[0] = top[-1]; top[-1] = t; break; }
      case INCREMENT: locals[arg]++; break;
      default: return;
    }
  }
}

EXPORT i32 run(i32 n) {
  assemble();
  locals[LIMIT] = n;
  interpret();
  return locals[COUNT];
}
