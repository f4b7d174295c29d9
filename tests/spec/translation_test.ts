/**
 * The specification suite over translated functions in the IR interpreter: guard and explicit bounds mode, with and
 * without inlining, every function verified. Modules with features that are not compiled are skipped.
 */
import { Statistics } from "../../engine/base/statistics.ts";
import { noneBut } from "../../engine/testing/optimizations.ts";
import { deepEqual, ok } from "node:assert/strict";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { verifyFunction } from "../../engine/ir/verify.ts";
import { runInterpreted } from "../support/interpreted_script.ts";
import { HAS_TESTSUITE, NEEDS_TESTSUITE, suiteScripts } from "../support/testsuite.ts";

for (
  const [mode, explicitBounds, optimizations] of [
    ["guard mode", false, {}],
    ["explicit bounds and inlining", true, { "inline": true, "inline-loop-callees": true }],
  ] as const
) {
  Deno.test({
    name: `the suite runs in the interpreter: ${mode}${NEEDS_TESTSUITE}`,
    ignore: !HAS_TESTSUITE,
    fn() {
      const failures: string[] = [];
      const statistics = new Statistics();
      let passed = 0;
      for (const script of suiteScripts()) {
        const outcome = runInterpreted(readFileSync(script, "utf8"), {
          explicitBounds,
          optimizations: noneBut(optimizations),
          statistics,
          prepare: (f) => verifyFunction(f),
        });
        passed += outcome.passed;
        failures.push(...outcome.failures.map((failure) => `${basename(script)} ${failure}`));
      }
      deepEqual(failures, []);
      ok(passed > 31_000, `only ${passed} commands ran`);
      if ("inline" in optimizations) ok(statistics.of("inline") > 100, "nothing was inlined");
    },
  });
}
