/** Tokens of shared memories that do not come from `share`: pages that unchecked code could leave are refused. */
import assert from "node:assert/strict";
import { Memory, NewEngine } from "@waft/engine";

for (const bounds of ["guard", "explicit"] as const) {
  Deno.test(`${bounds}: a forged token of a shared memory is refused`, () => {
    const memory = NewEngine({ bounds }).compile(`(module (memory (export "m") 1 4 shared))`).instantiate()
      .exports["m"] as Memory;
    const token = memory.share();
    assert.equal(Memory.fromShared(token).pages, 1);
    const longer = new SharedArrayBuffer(16);
    new BigInt64Array(longer).fill(1n << 30n);
    const forged = [
      { ...token, pages: new SharedArrayBuffer(65536) },
      { ...token, pages: new SharedArrayBuffer(65536, { maxByteLength: 131072 }) },
      { ...token, maxPages: 1 << 18, guarded: false },
      { ...token, maxPages: NaN, guarded: false },
      { ...token, control: new SharedArrayBuffer(0) },
      { ...token, control: longer },
      { ...token, waft: "module" as unknown as "memory" },
    ];
    for (const [k, value] of forged.entries()) {
      if (k === 2 && token.guarded) continue; // a guarded memory has room for that many pages
      assert.throws(() => Memory.fromShared(value), TypeError, `token ${k}`);
    }
  });
}
