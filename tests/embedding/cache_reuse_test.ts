/** Modules of equal bytes share their code in memory, also with a cache on disk. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NewEngine } from "@waft/engine";

const parser = NewEngine();
const bytesOf = (n: number) =>
  new Uint8Array(parser.parse(`(module (memory 1) (func (export "f") (result i32) (i32.const ${n})))`).bytes);

for (const tier of ["optimizing", "auto"] as const) {
  Deno.test(`modules of equal bytes share their code although there is a cache: ${tier}`, () => {
    const directory = mkdtempSync(join(tmpdir(), "waft-reuse-"));
    try {
      const engine = NewEngine({ tier, cache: { directory } });
      const compile = (n: number) => engine.compile(bytesOf(n));
      const first = compile(1);
      const second = compile(1);
      assert.equal(first.internal, second.internal);
      assert.equal(second.instantiate().call({}, "f"), 1);
      assert.notEqual(compile(2).internal, first.internal);
      assert.equal(first.instantiate().call({}, "f"), 1);
      if (tier === "optimizing") {
        assert.equal(readdirSync(directory).length, 2);
        // The files are not read again while the code is in use.
        for (const name of readdirSync(directory)) rmSync(join(directory, name), { recursive: true });
        assert.equal(compile(1).internal, first.internal);
        const other = NewEngine({ tier, cache: { directory }, interruptible: true });
        assert.notEqual(other.compile(bytesOf(1)).internal, first.internal);
      }
      const explains = NewEngine({ tier, cache: { directory }, explain: () => {} });
      assert.notEqual(explains.compile(bytesOf(1)).internal, first.internal);
    } finally {
      if (existsSync(directory)) rmSync(directory, { recursive: true, force: true });
    }
  });
}
