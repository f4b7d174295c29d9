/**
 * The specification suite's scripts about references and objects, with a collection before every allocation, and before
 * every third one: an object that the collector misses would be reused at once.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { NewEngine } from "../../engine/mod.ts";
import { optionsOfScript, runScript } from "../../engine/script/run_script.ts";
import { HAS_TESTSUITE, NEEDS_TESTSUITE, suiteScripts } from "../support/testsuite.ts";

const NAMES =
  /^(array|struct|i31|br_on_|ref_|extern|type-|table-sub|global|elem|linking|gc|throw_ref|try_table|instance)/;

for (const interval of [1, 3]) {
  Deno.test({
    name: `objects of the suite survive a collection at every ${
      interval === 1 ? "" : `${interval}rd `
    }allocation${NEEDS_TESTSUITE}`,
    ignore: !HAS_TESTSUITE,
    fn: async () => {
      const { heap } = NewEngine().compile("(module)").instantiate().internal.store;
      const before = heap.statistics.collections;
      let passed = 0;
      heap.stress(interval);
      try {
        for (const path of suiteScripts().filter((name) => NAMES.test(basename(name)))) {
          const result = await runScript(readFileSync(path), optionsOfScript(path, {}));
          assert.deepEqual(result.failures, [], path);
          passed += result.passed;
        }
      } finally {
        heap.stress(0);
      }
      assert.ok(passed > 1000, `${passed} assertions`);
      assert.ok(heap.statistics.collections - before > 30, "there were collections");
    },
  });
}
