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

Deno.test("configure: limits bind the memories, tables and objects of modules and of JavaScript", async () => {
  const worker = new TestWorker(new URL("./limits_worker.ts", import.meta.url));
  const answers = await worker.ask({});
  worker.terminate();
  assert.deepEqual(answers, {
    memory: "RangeError: Out of memory: 4 pages exceed the limit of 3",
    grown: "2, RangeError: WebAssembly.Memory.grow(): the memory cannot grow by 1 pages beyond 3",
    shared: "RangeError: Out of memory: 4 pages exceed the limit of 3",
    table: "RangeError: Out of memory: a table of 9 elements exceeds the limit of 8",
    elements: "7, RangeError: The table cannot grow by 1 elements",
    module: "RangeError: Out of memory: 4 pages exceed the limit of 3",
    code: -1,
    objects: "RuntimeError: out of memory: objects need more than the limit of 131072 bytes",
    unknown: `TypeError: Unknown limit "maxPages"`,
  });
});
