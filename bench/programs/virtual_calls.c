/* Indirect calls: an expression tree evaluated through function pointers, like virtual methods. */
#include "bench.h"

typedef struct Expression Expression;
struct Expression {
  i32 (*evaluate)(const Expression *, i32);
  const Expression *left, *right;
  i32 value;
};

static i32 eval_constant(const Expression *e, i32 x) { return e->value + (x & 0); }
static i32 eval_variable(const Expression *e, i32 x) { return x + e->value; }
static i32 eval_add(const Expression *e, i32 x) { return e->left->evaluate(e->left, x) + e->right->evaluate(e->right, x); }
static i32 eval_multiply(const Expression *e, i32 x) { return e->left->evaluate(e->left, x) * e->right->evaluate(e->right, x); }
static i32 eval_xor(const Expression *e, i32 x) { return e->left->evaluate(e->left, x) ^ e->right->evaluate(e->right, x); }
static i32 eval_choose(const Expression *e, i32 x) {
  return x & 1 ? e->left->evaluate(e->left, x >> 1) : e->right->evaluate(e->right, x >> 1);
}

static Expression pool[512];
static i32 used;

static const Expression *make(i32 depth) {
  Expression *e = &pool[used++];
  e->value = (i32)(random_u32() & 15);
  if (depth == 0) {
    e->evaluate = random_u32() & 1 ? eval_variable : eval_constant;
  } else {
    static i32 (*const KINDS[])(const Expression *, i32) = {eval_add, eval_multiply, eval_xor, eval_choose};
    e->evaluate = KINDS[random_u32() >> 30];
    e->left = make(depth - 1);
    e->right = make(depth - 1);
  }
  return e;
}

EXPORT i32 run(i32 n) {
  used = 0;
  random_state = 5551212u;
  const Expression *root = make(7);
  u32 sum = 0;
  for (i32 i = 0; i < n; i++) sum = mix(sum, (u32)root->evaluate(root, i));
  return (i32)sum;
}
