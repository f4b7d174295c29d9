/**
 * The code arena: placement of code, cache maintenance, and empty pages in reused chunks.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import { CodeArena } from "./code_arena.ts";
import { currentHost } from "./current.ts";

Deno.test("published code lies there before its caches are maintained, over exactly its bytes", () => {
  const host = currentHost();
  const maintained: number[][] = [];
  const arena = new CodeArena(host, (first, end) => {
    maintained.push([first, end, ...new Uint8Array(host.view(first, end - first))]);
  });
  const code = Uint8Array.of(1, 2, 3, 4, 5);
  const at = arena.allocate(code.length);
  ok(at >= arena.start + host.pageSize && at + code.length <= arena.end);
  arena.publish(at, code);
  deepEqual(maintained, [[at, at + 5, ...code]]);
  arena.release(at, code.length);
  equal(arena.allocate(code.length), at, "the same chunk again");
  arena.publish(at, Uint8Array.of(9));
  deepEqual(maintained[1], [at, at + 1, 9]);
  deepEqual([...new Uint8Array(host.view(at, 5))], [9, 0, 0, 0, 0]);
});
