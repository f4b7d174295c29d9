/**
 * The suite's scripts about objects with a collection before every allocation: what compiled code or the runtime hold anywhere (registers,
 * stack, tables, globals, segments) survives, and nothing is used after it has been freed.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { NewEngine } from "../../engine/engine.ts";
import { optionsOfScript, runScript } from "../../engine/script/run_script.ts";
import { HAS_TESTSUITE, NEEDS_TESTSUITE, suiteScripts } from "../support/testsuite.ts";

const ABOUT_OBJECTS = /^(array|struct|i31|ref_|br_on|type-|extern|elem|global|table|exceptions|throw|try_table)/;

for (const bounds of ["guard", "explicit"] as const) {
  Deno.test({
    name: `objects survive a collection at every allocation (${bounds})${NEEDS_TESTSUITE}`,
    ignore: !HAS_TESTSUITE,
    async fn() {
      const { heap } = NewEngine().compile("(module)").instantiate().internal.store;
      const before = heap.statistics.collections;
      heap.stress(1);
      let passed = 0;
      try {
        for (const script of suiteScripts().filter((path) => ABOUT_OBJECTS.test(basename(path)))) {
          const options = optionsOfScript(script, { bounds, verify: true });
          const result = await runScript(readFileSync(script), options);
          assert.deepEqual(result.failures, [], basename(script));
          passed += result.passed;
        }
      } finally {
        heap.stress(0);
      }
      assert.ok(passed > 5000, `only ${passed} assertions ran`);
      const collections = heap.statistics.collections - before;
      assert.ok(collections > 100, `only ${collections} collections`);
    },
  });
}
