/** The hash table for native unwinding: growth, entries, and its end with an image. */
import assert from "node:assert/strict";
import { THREAD, UNWIND_ENTRY, UNWIND_HASH } from "../../abi/context_layout.ts";
import { currentHost } from "../../host/current.ts";
import { type Host, PROT } from "../../host/host.ts";
import type { CodeImage } from "../../link/image.ts";
import { NativeRegion } from "../memory/native_region.ts";
import { UnwindTable } from "./unwind_table.ts";

const SITES = 40;
const IMAGES = 256;

/** An image at `base` with SITES call sites, without code. */
function imageAt(base: number): CodeImage {
  const tables = {
    callReturn: Int32Array.from({ length: SITES }, (_, k) => 16 * (k + 1)),
    callFrame: Int32Array.from({ length: SITES }, (_, k) => 8 * k),
    callLanding: new Int32Array(SITES).fill(-1),
    callCross: new Uint8Array(SITES),
  };
  return { base, tables } as unknown as CodeImage;
}

/** The frame that the table has for return address `address`; undefined if it has none. */
function frameOf(host: Host, state: NativeRegion, address: number): number | undefined {
  const mask = state.u32[THREAD.UNWIND_MASK >> 2];
  const table = new NativeRegion(host, state.word(THREAD.UNWIND), (mask + 1) * UNWIND_ENTRY.SIZE);
  let at = Math.imul(address | 0, UNWIND_HASH.FACTOR) >>> UNWIND_HASH.SHIFT & mask;
  for (;; at = (at + 1) & mask) {
    const found = table.word(at * UNWIND_ENTRY.SIZE + UNWIND_ENTRY.RETURN);
    if (found === 0) return undefined;
    if (found === address) return table.i32[(at * UNWIND_ENTRY.SIZE + UNWIND_ENTRY.FRAME) >> 2];
  }
}

Deno.test("the table has the call sites of all images, and is allocated once per doubling", () => {
  const host = currentHost();
  let allocations = 0;
  const counting = new Proxy(host, {
    get(target, name) {
      if (name === "reserve") allocations++;
      const member = Reflect.get(target, name, target);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
  const state = new NativeRegion(host, host.reserve(host.pageSize, PROT.READ | PROT.WRITE), host.pageSize);
  const table = new UnwindTable(counting, state);
  const bases = Array.from({ length: IMAGES }, (_, k) => 0x7f00_0000_0000 + k * 0x1_0000);
  for (const base of bases) table.note(imageAt(base));
  for (const base of bases) {
    for (let k = 0; k < SITES; k++) assert.equal(frameOf(host, state, base + 16 * (k + 1)), 8 * k);
  }
  assert.equal(frameOf(host, state, bases[0] + 8), undefined);
  const entries = state.u32[THREAD.UNWIND_MASK >> 2] + 1;
  assert.ok(entries >= 2 * SITES * IMAGES);
  assert.ok(allocations <= Math.log2(entries), `${allocations} allocations`);
  table.forget(bases[3]);
  assert.equal(state.word(THREAD.UNWIND), 0);
  table.note(imageAt(bases[5]));
  assert.equal(frameOf(host, state, bases[5] + 16), 0);
  assert.equal(frameOf(host, state, bases[3] + 16), undefined);
  table.forget(bases[5]);
  host.release(state.address, state.size);
});
