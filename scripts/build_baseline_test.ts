/** The generated files of the baseline tier are those that its source gives. */
import assert from "node:assert/strict";
import { generatedFiles, outOfDate } from "./build_baseline.ts";

Deno.test("the generated files of the baseline tier are up to date", async () => {
  assert.deepEqual(outOfDate(await generatedFiles()), [], "run `deno task build:baseline`");
});
