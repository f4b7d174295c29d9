/* Memory: builds, merge-sorts, reverses and traverses a linked list whose nodes are in random order in memory. */
#include "bench.h"

typedef struct Node {
  struct Node *next;
  u32 key;
} Node;

#define MOST 60000
static Node nodes[MOST];
static u32 order[MOST];

static Node *merge(Node *a, Node *b) {
  Node head, *tail = &head;
  while (a && b) {
    Node **least = a->key <= b->key ? &a : &b;
    tail = tail->next = *least;
    *least = (*least)->next;
  }
  tail->next = a ? a : b;
  return head.next;
}

static Node *sort(Node *list) {
  if (!list || !list->next) return list;
  Node *slow = list, *fast = list->next;
  while (fast && fast->next) slow = slow->next, fast = fast->next->next;
  Node *half = slow->next;
  slow->next = 0;
  return merge(sort(list), sort(half));
}

EXPORT i32 run(i32 n) {
  if (n > MOST) n = MOST;
  random_state = 99991u;
  for (i32 i = 0; i < n; i++) order[i] = (u32)i;
  for (i32 i = n - 1; i > 0; i--) {
    u32 j = random_u32() % (u32)(i + 1), t = order[i];
    order[i] = order[j];
    order[j] = t;
  }
  Node *list = 0;
  for (i32 i = 0; i < n; i++) {
    Node *node = &nodes[order[i]];
    node->key = random_u32() >> 8;
    node->next = list;
    list = node;
  }
  list = sort(list);
  u32 sum = 0;
  for (i32 round = 0; round < 8; round++) {
    Node *reversed = 0;
    while (list) {
      Node *next = list->next;
      list->next = reversed;
      reversed = list;
      list = next;
    }
    list = reversed;
    for (Node *node = list; node; node = node->next) sum = mix(sum, node->key);
  }
  return (i32)sum;
}
