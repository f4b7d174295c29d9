// deno-lint-ignore-file
// @ts-nocheck: AssemblyScript, compiled by the test
// AssemblyScript with its own garbage collector: maps, strings, closures over classes, garbage for several collections.
class Node {
  next: Node | null = null;
  constructor(public key: string, public value: i32) {}
}

export function run(n: i32): i32 {
  const counts = new Map<string, i32>();
  let head: Node | null = null;
  for (let i = 0; i < n; i++) {
    const key = "k" + (i % 97).toString() + "-" + (i & 3).toString(16);
    counts.set(key, (counts.has(key) ? counts.get(key) : 0) + i);
    const node = new Node(key.toUpperCase(), i);
    if (i % 10 == 0) {
      node.next = head;
      head = node;
    }
  }
  let sum = counts.size;
  const keys = counts.keys().sort();
  for (let i = 0; i < keys.length; i++) sum = sum * 31 + counts.get(keys[i]) + keys[i].length;
  while (head) {
    const node = head as Node;
    sum ^= node.value + node.key.charCodeAt(1);
    head = node.next;
  }
  return sum;
}
