/**
 * Modules opened from the cache without the compiler: they run the stored code, and no part of the compiler is loaded.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { type EngineOptions, NewEngine } from "../mod.ts";
import { openCachedModule } from "./open_cached_module.ts";
import { parseModule } from "../text/parse_module.ts";
import { encodeModule } from "../binary/encode.ts";

const binary = (text: string): Uint8Array<ArrayBuffer> => new Uint8Array(encodeModule(parseModule(text)));
const SEVEN = binary(`(module (memory 1) (data (i32.const 3) "\\07")
  (func (export "f") (result i32) (i32.load8_u (i32.const 3))))`);
const OBJECTS = binary(`(module (type $pair (struct (field i32) (field (ref null $pair))))
  (func (export "f") (result i32) (local $all (ref null $pair)) (local $k i32)
    (loop $again
      (local.set $all (struct.new $pair (local.get $k)
        (select (result (ref null $pair)) (local.get $all) (ref.null $pair) (i32.and (local.get $k) (i32.const 15)))))
      (br_if $again (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (i32.const 3000000))))
    (struct.get $pair 0 (local.get $all))))`);

async function withFolder(test: (directory: string) => Promise<void>): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), "waft-stored-"));
  try {
    await test(join(root, "compiled"));
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

Deno.test("a cached module is opened for the same bytes and options only", () =>
  withFolder(async (directory) => {
    const options: EngineOptions = { tier: "optimizing", cache: { directory } };
    assert.equal(await openCachedModule(SEVEN, options), undefined);
    NewEngine(options).compile(SEVEN);
    const module = await openCachedModule(SEVEN, options);
    assert.equal(module?.instantiate().call({}, "f"), 7);
    assert.deepEqual(module?.serialize(), NewEngine().compile(SEVEN).serialize());
    assert.equal(await openCachedModule(SEVEN, { ...options, fuel: true }), undefined);
    assert.equal(await openCachedModule(SEVEN, {}), undefined);
    assert.equal(await openCachedModule(SEVEN, { ...options, perfMap: true }), undefined);
    assert.equal(await openCachedModule(new TextEncoder().encode("(module)"), options), undefined, "text is not kept");
    assert.equal(await openCachedModule(new Uint8Array(3), options), undefined);
    await assert.rejects(openCachedModule(SEVEN, { ...options, limits: { maxMemoryPages: -1 } }), RangeError);
  }));

Deno.test("a damaged module is not opened, but removed", () =>
  withFolder(async (directory) => {
    const options: EngineOptions = { tier: "optimizing", cache: { directory } };
    NewEngine(options).compile(SEVEN);
    const [name] = readdirSync(directory);
    writeFileSync(join(directory, name!), new Uint8Array(100), { mode: 0o600 });
    assert.equal(await openCachedModule(SEVEN, options), undefined);
    assert.deepEqual(readdirSync(directory), []);
  }));

const PROGRAM = `
const { openCachedModule } = await import(Deno.args[0]);
const options = { cache: { directory: Deno.args[1] } };
for (const file of Deno.args.slice(2)) {
  const module = await openCachedModule(Deno.readFileSync(file), options);
  console.log(module?.instantiate().call({}, "f"));
}`;

Deno.test("a process without a compiler runs modules compiled by another process, including garbage-collected objects", () =>
  withFolder((directory) => {
    const files = [SEVEN, OBJECTS].map((bytes, k) => {
      NewEngine({ tier: "optimizing", cache: { directory } }).compile(bytes);
      writeFileSync(`${directory}-${k}.wasm`, bytes);
      return `${directory}-${k}.wasm`;
    });
    writeFileSync(`${directory}-program.ts`, PROGRAM);
    const entry = new URL("./open_cached_module.ts", import.meta.url).href;
    const args = ["run", "-A", "--no-check", "--quiet", `${directory}-program.ts`, entry, directory];
    assert.equal(execFileSync(process.execPath, [...args, ...files], { encoding: "utf8" }), "7\n2999999\n");
    return Promise.resolve();
  }));
