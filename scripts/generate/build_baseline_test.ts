/** The generated files of the baseline tier are those that its source gives. */
import assert from "node:assert/strict";
import { FOLDER, generatedFiles } from "./build_baseline.ts";
import { outOfDate } from "./generated_files.ts";

Deno.test("the generated files of the baseline tier are up to date", async () => {
  assert.deepEqual(outOfDate(FOLDER, await generatedFiles()), [], "run `deno task build:baseline`");
});
