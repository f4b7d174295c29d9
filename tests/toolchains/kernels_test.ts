/**
 * Programs compiled from Java, Kotlin and Scala: garbage-collected objects, casts, exceptions, JavaScript strings. They
 * return the same numbers on waft as on V8, and in every language. `deno task test:toolchains` fetches and runs the
 * compilers; without it the tests are ignored with that reason.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { buildKernels, KERNELS, LANGUAGES, loadKernels } from "../../bench/kernels.ts";
import { WebAssembly as waft } from "../../engine/webassembly/mod.ts";

const wanted = process.env["WASM_TOOLCHAINS"] !== undefined;

/** The results for the small arguments, by kernel. */
const EXPECTED: readonly number[] = [-268959744, 796174835, 9164, 53282975, 481232054, 606188657];

for (const language of LANGUAGES) {
  const built = wanted ? buildKernels(language) : { missing: "deno task test:toolchains" };
  const missing = "missing" in built ? ` (${built.missing})` : "";
  Deno.test({
    name: `the kernels in ${language} behave as on V8${missing}`,
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
