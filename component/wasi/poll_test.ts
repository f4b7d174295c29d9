/** wasi:io/poll of WASI 0.2 on lists of any length. */
import assert from "node:assert/strict";
import { ComponentWasi } from "./mod.ts";
import type { Pollable } from "./streams.ts";

type Functions = Readonly<Record<string, (...args: unknown[]) => unknown>>;

Deno.test("poll waits for the earliest clock of a list, however long the list is and wherever the clock is", () => {
  const wasi = new ComponentWasi();
  const clock = wasi.imports["wasi:clocks/monotonic-clock"] as Functions;
  const { poll } = wasi.imports["wasi:io/poll"] as Functions;
  const after = (ms: bigint) => clock["subscribeDuration"](ms * 1_000_000n) as Pollable;
  for (const [before, behind] of [[0, 0], [200, 0], [200, 300], [0, 5000]]) {
    const list = [...Array.from({ length: before }, () => after(60_000n)), after(1n)];
    list.push(...Array.from({ length: behind }, () => after(60_000n)));
    assert.deepEqual([...poll(list) as Uint32Array], [before], `${before} clocks before it, ${behind} behind it`);
  }
  wasi.close();
});
