/**
 * Programs in Java, Kotlin and Scala, as their compilers make them: collected objects, casts, exceptions, strings of JavaScript. They give the
 * same numbers on waft as on V8, and in every language. `deno task test:toolchains` fetches and runs the compilers; without it they say so.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { buildKernels, KERNELS, LANGUAGES, loadKernels } from "../../bench/kernels.ts";
import { WebAssembly as waft } from "../../engine/webassembly/mod.ts";

const wanted = process.env["WASM_TOOLCHAINS"] !== undefined;

/** What each kernel gives for its small argument. */
const EXPECTED: readonly number[] = [-268959744, 796174835, 9164, 53282975, 481232054, 606188657];

for (const language of LANGUAGES) {
  const built = wanted ? buildKernels(language) : { missing: "deno task test:toolchains" };
  const missing = "missing" in built ? ` (${built.missing})` : "";
  Deno.test({
    name: `the kernels in ${language} do the same as on V8${missing}`,
    ignore: "missing" in built,
    async fn() {
      const { folder } = built as { folder: string };
      const [v8, ours] = [await loadKernels(language, folder, WebAssembly), await loadKernels(language, folder, waft)];
      for (const [kernel, { name, small }] of KERNELS.entries()) {
        const expected = v8(kernel, small);
        assert.equal(ours(kernel, small), expected, name);
        assert.equal(expected, EXPECTED[kernel], `${name} in ${language}`);
      }
    },
  });
}
