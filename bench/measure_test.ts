/**
 * Medians, means, processor times, the size of the code section, salted modules, and the report.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import process from "node:process";
import { alternate, geometricMean, median, processorTimes } from "./measure.ts";
import { codeSectionBytes } from "./modules.ts";
import { programBytes, PROGRAMS } from "./programs.ts";
import { report, summarize } from "./report.ts";
import { withSalt } from "./salt.ts";

Deno.test("median() and geometricMean() compute their means", () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
  assert.ok(Math.abs(geometricMean([1, 4, 16]) - 4) < 1e-12);
});

Deno.test("alternate() gives both sides the same number of turns", () => {
  const turns = { a: 0, b: 0 };
  alternate(() => turns.a++, () => turns.b++, 7);
  assert.deepEqual(turns, { a: 7, b: 7 });
});

Deno.test({
  name: "processorTimes() reads the times of this process, and of its children once they have ended",
  ignore: process.platform !== "linux",
  fn() {
    const before = processorTimes("self");
    const { userCPUTime, systemCPUTime } = process.resourceUsage();
    const used = (userCPUTime + systemCPUTime) / 1000;
    const after = processorTimes("self");
    const rounding = 20; // each time is cut to ticks of 10 ms
    assert.ok(before.own <= used + rounding && used <= after.own + rounding, `${before.own}, ${used}, ${after.own}`);
    execFileSync("sh", ["-c", "k=0; while [ $k -lt 100000 ]; do k=$((k + 1)); done"]);
    assert.ok(processorTimes("self").children > after.children);
  },
});

Deno.test("withSalt() changes the bytes but not the code", () => {
  const bytes = programBytes(PROGRAMS[0]);
  const [one, two] = [withSalt(bytes, 1), withSalt(bytes, 2)];
  assert.notDeepEqual(one, two);
  assert.equal(codeSectionBytes(one), codeSectionBytes(bytes));
  assert.ok(codeSectionBytes(bytes) > 0 && codeSectionBytes(bytes) < bytes.length);
  assert.ok(WebAssembly.validate(one));
});

Deno.test("report() shows which targets are met", () => {
  const row = { name: "p", kind: "k", waftMs: 2, v8Ms: 1, waftFirstMs: 1, v8FirstMs: 2, firstRatio: 0.5 };
  const programs = [{ ...row, runRatio: 2 }, { ...row, runRatio: 0.5 }];
  const results = { programs, compile: [], boundary: [], control: [], first: [], notes: ["something is missing"] };
  assert.deepEqual(summarize(results).map(({ value }) => value), [1, 0.5]);
  const text = report(results);
  assert.match(text, /run time \/ V8 after tier-up +1\.00 +≤ 1\.6 +yes/);
  assert.match(text, /note: something is missing/);
});
