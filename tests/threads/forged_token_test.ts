/**
 * Tokens that do not come from `share`: pages that unchecked code could leave are refused, also from and in other
 * Workers.
 */
import assert from "node:assert/strict";
import { host, Memory, NewEngine } from "@waft/engine";
import { Member } from "./team.ts";

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

for (const bounds of ["guard", "explicit"] as const) {
  Deno.test(`${bounds}: tokens that one Worker forges are refused in another one and here`, async () => {
    const module = NewEngine({ bounds }).compile(`(module (import "env" "memory" (memory 1 4 shared))
      (func (export "load") (param i32) (result i32) (i32.load (local.get 0))))`);
    const memory = host.sharedMemory(1, 4, bounds);
    const [forger, victim] = [new Member(), new Member()];
    try {
      const genuine = { module: module.share(), memory: memory.share() };
      const forged = await forger.ask({ kind: "forge", ...genuine }) as unknown[];
      const names = await victim.ask({ kind: "adopt", values: forged }) as string[];
      assert.equal(names.length, forged.length);
      for (const [k, name] of names.entries()) assert.match(name, /^(Type|Range)?Error$/, `token ${k}`);
      for (const [k, value] of forged.slice(0, 4).entries()) {
        assert.throws(() => Memory.fromShared(value as ReturnType<Memory["share"]>), TypeError, `token ${k}`);
      }
      await victim.ask({ kind: "instantiate", ...genuine });
      new Int32Array(memory.buffer)[1] = 77;
      assert.equal(await victim.call("load", 4), 77, "the genuine tokens still work");
    } finally {
      forger.terminate();
      victim.terminate();
      module.unshare();
    }
  });
}
