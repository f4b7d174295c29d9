/**
 * npm packages written for the global `WebAssembly` produce the same results, unmodified, with waft in its place.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";
import { installPackages } from "../support/test_packages.ts";

const PROGRAM = fileURLToPath(new URL("./package_program.ts", import.meta.url));

/** The packages and the toolchain of each. */
const PACKAGES: readonly (readonly [name: string, toolchain: string])[] = [
  ["sql.js", "Emscripten, C"],
  ["quickjs-emscripten", "Emscripten, C"],
  ["esbuild-wasm", "Go"],
  ["@resvg/resvg-wasm", "wasm-bindgen, Rust"],
  ["@chainsafe/as-sha256", "AssemblyScript"],
  ["web-tree-sitter", "Emscripten with a side module"],
];

function work(name: string, whose: "host" | "waft"): string {
  const folder = installPackages(fileURLToPath(new URL("./packages/", import.meta.url)));
  const { status, stdout, stderr } = spawnSync(process.execPath, [...hostArguments(PROGRAM), folder, name, whose], {
    encoding: "utf8",
    maxBuffer: 1 << 26,
  });
  assert.equal(status, 0, `${name} with ${whose}: ${stderr}`);
  return stdout;
}

for (const [name, toolchain] of PACKAGES) {
  Deno.test(`${name} (${toolchain}) does the same with waft's WebAssembly as with the host's`, () => {
    const expected = work(name, "host");
    assert.ok(expected.length > 100, "it did something");
    assert.equal(work(name, "waft"), expected);
  });
}
