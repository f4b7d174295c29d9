/**
 * Compile options of the namespace are set before the first module, and compiled modules are cached.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TestWorker } from "../support/test_worker.ts";

Deno.test("configure: a cache, once", async () => {
  const directory = mkdtempSync(join(tmpdir(), "waft-configure-"));
  const files = () => readdirSync(directory).map((name) => [name, statSync(join(directory, name)).mtimeMs]);
  try {
    let before: unknown;
    for (let round = 0; round < 2; round++) {
      const worker = new TestWorker(new URL("./configure_worker.ts", import.meta.url));
      const { answer, late } = await worker.ask(directory) as { answer: number; late: string };
      worker.terminate();
      assert.equal(answer, 42);
      assert.match(late, /before the first module/);
      assert.equal(files().length, 1);
      assert.deepEqual(files(), before ?? files(), "it was loaded the second time");
      before = files();
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
