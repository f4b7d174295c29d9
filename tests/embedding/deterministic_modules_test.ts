/**
 * Deterministic mode on generated modules: bit-identical results, the same traps, including stack exhaustion, and the
 * same fuel under every setting. DETERMINISTIC_SEEDS=FROM-TO selects other seeds.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { type EngineOptions, NewEngine, OPTIMIZATION_ROWS } from "@waft/engine";
import { THREAD } from "../../engine/abi/context_layout.ts";
import { COMPILED_FEATURES } from "../fuzz/compare.ts";
import { generateModules } from "../fuzz/generate_module.ts";
import { runScenario } from "../fuzz/scenario.ts";
import { waft } from "../fuzz/subject.ts";

const [FROM, TO] = (process.env["DETERMINISTIC_SEEDS"] ?? "0-12").split("-").map(Number) as [number, number];
const { i64 } = NewEngine().compile("(module)").instantiate().internal.store.thread.state;

function allOptimizations(on: boolean): NonNullable<EngineOptions["optimizations"]> {
  const keys = OPTIMIZATION_ROWS.filter(({ state }) => state === "on" || state === "off");
  return Object.fromEntries(keys.map(({ name }) => [name, on]));
}

const DETERMINISTIC: EngineOptions = { fuel: true, deterministic: true };
const SUBJECTS = [
  waft("default", { ...DETERMINISTIC, verify: true }),
  waft("explicit", { ...DETERMINISTIC, bounds: "explicit", interruptible: true }),
  waft("baseline", { ...DETERMINISTIC, tier: "baseline" }),
  waft("baseline, explicit", { ...DETERMINISTIC, tier: "baseline", bounds: "explicit", interruptible: true }),
  waft("all off", { ...DETERMINISTIC, optimizations: allOptimizations(false) }),
  waft("all on, explicit", { ...DETERMINISTIC, bounds: "explicit", optimizations: allOptimizations(true) }),
];

/** Drops the trap's position: of two out-of-bounds accesses, settings may report either one. */
function withoutPlace(entry: string): string {
  return entry.replace(/(= trap .*?) at .*$/, "$1");
}

Deno.test("generated modules do the same under every setting in deterministic mode", () => {
  const features = COMPILED_FEATURES.filter((name) => name !== "threads");
  let entries = 0;
  for (let seed = FROM; seed < TO; seed++) {
    const modules = generateModules(seed, features);
    const runs = SUBJECTS.map((subject) => {
      const before = i64[THREAD.FUEL >> 3];
      const trace = runScenario(modules, seed, subject);
      return {
        used: before - i64[THREAD.FUEL >> 3],
        exhausted: trace.exhausted,
        entries: trace.entries.map(withoutPlace),
      };
    });
    for (const [k, run] of runs.entries()) assert.deepEqual(run, runs[0], `seed ${seed}, ${SUBJECTS[k].name}`);
    entries += runs[0].entries.length;
  }
  assert.ok(entries > TO - FROM);
});
