/**
 * The baseline tier where the host's WebAssembly is missing, replaced, or refuses to compile. Packages have the kernel
 * as machine code, which needs none of it.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { hostArguments } from "../support/host_arguments.ts";

const ENGINE = new URL("../../engine/mod.ts", import.meta.url).href;
const PROGRAM = `(module (func (export "f") (param i32) (result i32) (i32.mul (local.get 0) (i32.const 6))))`;

/** The last line of output of a process that runs `prelude`, then compiles and calls. */
function outputAfter(prelude: string): string {
  const folder = mkdtempSync(join(tmpdir(), "waft-kernel-"));
  try {
    const program = join(folder, "program.mjs");
    writeFileSync(
      program,
      `${prelude}
      const { NewEngine } = await import(${JSON.stringify(ENGINE)});
      let kernel;
      const module = NewEngine({ explain: (report) => kernel = report.kernel }).compile(${JSON.stringify(PROGRAM)});
      console.log(module.instantiate().call({}, "f", 7), module.isTieringUp, kernel);`,
    );
    return execFileSync(process.execPath, hostArguments(program), { encoding: "utf8" }).trim();
  } finally {
    rmSync(folder, { recursive: true });
  }
}

Deno.test({
  name: "without the host's WebAssembly modules compile all the same",
  ignore: process.arch !== "x64",
  fn: () => {
    const usual = outputAfter("");
    const isNative = usual === "42 true native";
    const expected = (otherwise: string) => isNative ? usual : otherwise;
    assert.equal(usual, expected("42 true wasm"));
    assert.equal(outputAfter("delete globalThis.WebAssembly;"), expected("42 true typescript"), "the kernel's source");
    const replaced = "WebAssembly.Module = class { constructor() { throw new Error('replaced'); } };";
    assert.equal(outputAfter(replaced), expected("42 true typescript"), "a replacement is not used");
    const refused = "WebAssembly.Module = (class { constructor() { throw new Error('refused'); } }).bind(null);";
    assert.equal(outputAfter(refused), expected("42 false undefined"), "the optimizing compiler");
    const later = `await import(${JSON.stringify(ENGINE)}); delete globalThis.WebAssembly;`;
    assert.equal(outputAfter(later), usual, "the host's WebAssembly is captured when the engine is loaded");
  },
});
