/**
 * The code arena: placement of code, cache maintenance, and empty pages in reused chunks.
 */
import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { CodeArena } from "./code_arena.ts";
import { currentHost } from "../current.ts";
import { type Host, PROT } from "../host.ts";

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

Deno.test({
  name: "an open chunk is writable, becomes executable in its place, and gives the rest back",
  ignore: currentHost().os !== "linux", // elsewhere no chunk is opened
  fn() {
    const host = currentHost();
    const maintained: number[][] = [];
    const arena = new CodeArena(host, (first, end) => void maintained.push([first, end]));
    const chunk = arena.open(10 * host.pageSize);
    ok(chunk !== undefined);
    equal(chunk.address + chunk.pollDistance, arena.pollPage);
    equal(chunk.view(10 * host.pageSize + 1), undefined);
    const view = chunk.view(host.pageSize + 1);
    ok(view !== undefined && view.length > host.pageSize);
    view.fill(7, 0, host.pageSize + 1);
    chunk.publish(host.pageSize + 1);
    chunk.release(); // has no effect any more
    deepEqual(maintained, [[chunk.address, chunk.address + host.pageSize + 1]]);
    equal(new Uint8Array(host.view(chunk.address, host.pageSize + 1)).at(-1), 7);
    equal(arena.allocate(1), chunk.address + 2 * host.pageSize, "the rest is free");
  },
});

Deno.test("released chunks are joined, and the arena ends after the last chunk in use", () => {
  const host = currentHost();
  const arena = new CodeArena(host);
  const [first, second, third] = [arena.allocate(1), arena.allocate(1), arena.allocate(1)];
  arena.release(first, 1);
  arena.release(second, 1);
  equal(arena.allocate(2 * host.pageSize), first);
  arena.release(third, 1);
  arena.release(first, 2 * host.pageSize);
  const large = arena.allocate(8 << 20);
  equal(large % (2 << 20), 0);
  equal(arena.allocate(1), first, "before the alignment of a large chunk");
  equal(arena.open(arena.end - arena.start), undefined);
});

Deno.test("no chunk is opened where the system refuses memory that is not used", () => {
  const host = currentHost();
  const { READ, WRITE } = PROT;
  const strict = new Proxy(host, {
    get(target, name: keyof Host) {
      const value = target[name];
      if (typeof value !== "function") return value;
      if (name !== "protect") return value.bind(target);
      return (address: number, bytes: number, prot: number) => {
        if (prot === (READ | WRITE) && bytes > host.pageSize) throw new RangeError("Cannot allocate memory");
        host.protect(address, bytes, prot);
      };
    },
  });
  const arena = new CodeArena(strict);
  equal(arena.open(10 * host.pageSize), undefined);
  equal(arena.allocate(1), arena.start + host.pageSize, "the chunk is free again");
});

Deno.test({
  name: "whole pages within a chunk are dropped until it is freed",
  ignore: currentHost().os !== "linux", // elsewhere they stay
  fn() {
    const host = currentHost();
    const page = host.pageSize;
    const revoked: number[] = [];
    const arena = new CodeArena(
      new Proxy(host, {
        get(target, name: keyof Host) {
          const value = target[name];
          if (typeof value !== "function") return value;
          if (name !== "replace") return value.bind(target);
          return (address: number, bytes: number, prot: number) => {
            equal(prot, PROT.NONE);
            revoked.push((address - at) / page, bytes / page);
            host.replace(address, bytes, prot);
          };
        },
      }),
    );
    const pages = 800;
    const at = arena.allocate(pages * page);
    arena.publish(at, new Uint8Array(pages * page).fill(0xcc));
    const range = (first: number, end: number) => [at + first, at + end] as const;
    const small = [range(1, page), range(page + 1, 3 * page - 1), range(page, 2 * page)];
    equal(arena.dropPages(at, [...small, range(3 * page - 1, 6 * page + 5)]), 4 * page);
    deepEqual(revoked, [1, 1, 3, 3], "no page that is in a range in part");
    deepEqual([...new Uint8Array(host.view(at, page))].slice(-2), [0xcc, 0xcc]);
    throws(() => arena.patch(at, page, () => {}), /dropped/);
    ok(arena.allocate(page) >= at + pages * page, "dropped pages are not used again");
    arena.release(at, pages * page);
    equal(arena.allocate(page), at);
    arena.release(at, page);
    revoked.length = 0;
    equal(arena.allocate(pages * page), at);
    arena.publish(at, new Uint8Array(pages * page));
    const many = Array.from({ length: pages / 2 }, (_, k) => range(2 * k * page, (2 * k + 1) * page));
    const dropped = many.reduce((sum, one) => sum + arena.dropPages(at, [one]), 0);
    ok(dropped > 0 && dropped < many.length * page, "each range is a mapping, of which a process has few");
    equal(arena.dropPages(at, many), 0);
  },
});
