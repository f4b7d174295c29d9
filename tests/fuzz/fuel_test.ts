/**
 * Fuel on generated modules: a scenario consumes the same fuel under every setting, and metering does not change its
 * behaviour. FUEL_SEEDS=FROM-TO runs other seeds.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { THREAD } from "../../engine/abi/context_layout.ts";
import { type EngineOptions, NewEngine } from "../../engine/api/engine.ts";
import { OPTIMIZATION_ROWS } from "../../engine/settings/optimizations.ts";
import { COMPILED_FEATURES } from "./compare.ts";
import { generateModules } from "./generate_module.ts";
import { runScenario, type Trace } from "./scenario.ts";
import { waft } from "./subject.ts";

const [FROM, TO] = (process.env["FUEL_SEEDS"] ?? "0-40").split("-").map(Number) as [number, number];
const { i64 } = NewEngine().compile("(module)").instantiate().internal.store.thread.state;

function allOptimizations(on: boolean): NonNullable<EngineOptions["optimizations"]> {
  const keys = OPTIMIZATION_ROWS.filter(({ state }) => state === "on" || state === "off");
  return Object.fromEntries(keys.map(({ name }) => [name, on]));
}

const CONTROL: EngineOptions = { fuel: true, interruptible: true, verify: true };
const SUBJECTS = [
  waft("default", CONTROL),
  waft("explicit", { ...CONTROL, bounds: "explicit" }),
  waft("all off", { ...CONTROL, optimizations: allOptimizations(false) }),
  waft("baseline", { ...CONTROL, tier: "baseline" }),
  waft("baseline, explicit", { ...CONTROL, tier: "baseline", bounds: "explicit" }),
  waft("all on, explicit", { ...CONTROL, bounds: "explicit", optimizations: allOptimizations(true) }),
];

/** An entry without the offset of a trap: of two accesses out of bounds, a setting may report either one. */
function withoutPlace(entry: string): string {
  return entry.replace(/(= trap .*?) at .*$/, "$1");
}

Deno.test("generated modules consume the same fuel under every setting and behave as without metering", () => {
  const plain = waft("plain", {});
  let total = 0n;
  for (let seed = FROM; seed < TO; seed++) {
    const modules = generateModules(seed, COMPILED_FEATURES);
    const expected = runScenario(modules, seed, plain);
    if (expected.exhausted) continue; // the maximum stack depth varies with the setting
    const runs: { trace: Trace; used: bigint }[] = SUBJECTS.map((subject) => {
      const before = i64[THREAD.FUEL >> 3];
      const trace = runScenario(modules, seed, subject);
      return { trace, used: before - i64[THREAD.FUEL >> 3] };
    });
    if (runs.some(({ trace }) => trace.exhausted)) continue;
    runs.forEach(({ trace, used }, k) => {
      assert.deepEqual(
        trace.entries.map(withoutPlace),
        expected.entries.map(withoutPlace),
        `seed ${seed}, ${SUBJECTS[k].name}`,
      );
      assert.equal(used, runs[0].used, `seed ${seed}, ${SUBJECTS[k].name}`);
    });
    total += runs[0].used;
  }
  assert.ok(total > 1000n, `total consumption: ${total}`);
});
