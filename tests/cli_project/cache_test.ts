/**
 * `waft run` compiles a module once; `waft cache` shows and clears the cache.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waft } from "./waft.ts";

// deno-fmt-ignore
const MODULE = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 5, 1, 0x60, 0, 1, 0x7f, 3, 2, 1, 0,
  7, 5, 1, 1, 0x66, 0, 0, 10, 6, 1, 4, 0, 0x41, 7, 0x0b);

Deno.test("run caches compiled modules, cache lists and clears them", async () => {
  const home = mkdtempSync(join(tmpdir(), "waft-cli-cache-"));
  try {
    writeFileSync(join(home, "m.wasm"), MODULE);
    const folder = join(home, "waft", "cache", "compiled");
    const ok = async (...args: string[]) => {
      const { code, out, err } = await waft(args, home, home);
      assert.equal(code, 0, err);
      return out;
    };
    assert.equal(await ok("run", "--no-cache", "m.wasm"), "7\n");
    assert.match(await ok("cache"), /^0 compiled modules/);
    assert.equal(await ok("run", "m.wasm"), "7\n");
    assert.match(await ok("cache"), /^0 compiled modules/, "a short first run stores nothing");
    assert.equal(await ok("run", "m.wasm"), "7\n");
    assert.equal(await ok("cache", "clear").then((line) => line.slice(0, 18)), "removed 1 compiled");
    assert.deepEqual(readdirSync(folder), []);
    assert.equal(await ok("run", "--tier", "optimizing", "m.wasm"), "7\n");
    const [file, ...more] = readdirSync(folder);
    assert(/^[0-9a-f]{64}\.waftbin$/.test(file!) && more.length === 0);
    const listed = await ok("cache", "list");
    assert.match(listed, new RegExp(`^${file!.slice(0, 16)} .* kB .*m\\.wasm\n1 compiled module, `));
    assert.ok(listed.includes(`  ${join(home, "m.wasm")}\n`), listed);
    assert.equal(await ok("cache", "dir"), `${folder}\n`);
    writeFileSync(join(folder, file!), "damaged");
    assert.equal(await ok("run", "--tier", "optimizing", "m.wasm"), "7\n");
    mkdirSync(join(folder, `${"0".repeat(64)}.waftbin`));
    const { code, out, err } = await waft(["cache", "clear"], home, home);
    assert.equal(code, 1);
    assert.match(out, /^removed 1 compiled module,/, "the other files are removed");
    assert.equal(
      err,
      `waft: ${folder}: cannot remove 1 file: check that they are yours and not in use, then try again\n`,
    );
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});
