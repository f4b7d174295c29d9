/* Allocation: builds, walks and frees binary trees with the C library's malloc. */
#include <stdlib.h>
#include "bench.h"

typedef struct Tree {
  struct Tree *left, *right;
} Tree;

static Tree *build(i32 depth) {
  Tree *tree = malloc(sizeof *tree);
  tree->left = depth ? build(depth - 1) : 0;
  tree->right = depth ? build(depth - 1) : 0;
  return tree;
}

static i32 count(const Tree *tree) { return tree->left ? 1 + count(tree->left) + count(tree->right) : 1; }

static void drop(Tree *tree) {
  if (tree->left) drop(tree->left), drop(tree->right);
  free(tree);
}

EXPORT i32 run(i32 n) {
  i32 total = 0;
  for (i32 depth = 4; depth <= n; depth += 2) {
    for (i32 i = 0; i < 1 << (n - depth); i++) {
      Tree *tree = build(depth);
      total += count(tree);
      drop(tree);
    }
  }
  return total;
}
