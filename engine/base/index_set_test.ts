/** IndexSet against its members as a list. */
import assert from "node:assert/strict";
import { IndexSet } from "./index_set.ts";

Deno.test("IndexSet has what was added, in ascending order, until it is cleared", () => {
  const set = new IndexSet();
  const members = [0, 1, 29, 30, 31, 32, 63, 64, 1000, 9_999_999];
  for (const index of [...members].reverse()) set.add(index);
  set.add(31);
  assert.deepEqual([...set], members);
  for (const index of members) assert.ok(set.has(index) && (members.includes(index + 2) || !set.has(index + 2)));
  assert.ok(!set.has(20_000_000));
  set.clear();
  assert.deepEqual([...set], []);
});
