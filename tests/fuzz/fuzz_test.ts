/**
 * A small, fixed sample of fuzzer cases (`deno task fuzz` runs any number), regressions, and proof that the comparison
 * detects differences: it fails if the engines run different programs.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import type { EngineOptions } from "../../engine/api/engine.ts";
import { OPTIMIZATION_ROWS } from "../../engine/settings/optimizations.ts";
import { TIERINGS } from "../../engine/api/settings.ts";
import { runScript } from "../../engine/script/run_script.ts";
import { BinaryenModules } from "./binaryen_modules.ts";
import { compareModules, COMPILED_FEATURES, configurations, runCase } from "./compare.ts";
import { readCorpus, replayEntry } from "./corpus.ts";
import { GENERATED_FEATURES, GENERATED_PROPOSALS, generateModules } from "./generate_module.ts";
import { MARKED } from "./generate/plan.ts";
import { Random } from "./random.ts";
import { runScenario } from "./scenario.ts";
import { runScenarioCase, SCENARIO_NAMES } from "./scenarios.ts";
import { installSmith, SmithModules } from "./smith_modules.ts";
import { join, split } from "./shrink.ts";
import { V8, waft } from "./subject.ts";

const OWN_CASES = 100;
const BINARYEN_CASES = 30;
const MVP_CASES = 20;
const SMITH_CASES = 30;
const SCENARIO_CASES = 20;
const FORCED_CASES = 10;
const CHANGED_CASES = 30;
/** Why wasm-smith is missing here, if it is. */
const SMITH_PROBLEM = installSmith();

Deno.test("generated modules behave the same on waft and on V8", () => {
  for (let seed = 0; seed < OWN_CASES; seed++) {
    const { differences, unsupported } = runCase(seed, "own", COMPILED_FEATURES);
    assert.deepEqual(differences, [], `seed ${seed}`);
    assert(!unsupported, `seed ${seed} needs an unsupported feature`);
  }
});

Deno.test("generated modules behave the same in the baseline tier as on V8", () => {
  for (let seed = 0; seed < OWN_CASES; seed++) {
    const { differences } = runCase(1000 + seed, "own", COMPILED_FEATURES, undefined, [], "baseline");
    assert.deepEqual(differences, [], `seed ${1000 + seed}`);
  }
});

Deno.test("a requested feature is executed, and the result names it", () => {
  const drawn = COMPILED_FEATURES.filter((name) => (MARKED as readonly string[]).includes(name));
  for (const name of drawn) {
    let executed = 0;
    for (let seed = 0; seed < FORCED_CASES; seed++) {
      const result = runCase(seed, "own", COMPILED_FEATURES, undefined, [name]);
      assert.deepEqual(result.differences, [], `${name}, seed ${seed}`);
      if (result.executed.includes(name)) executed++;
    }
    assert(executed > FORCED_CASES * 0.5, `${name} was executed in ${executed} of ${FORCED_CASES} cases`);
  }
});

for (const name of GENERATED_PROPOSALS) {
  Deno.test(`modules with ${name} behave the same as their standard form on V8`, () => {
    let executed = 0;
    for (let seed = 0; seed < FORCED_CASES; seed++) {
      const tier = TIERINGS[seed % TIERINGS.length];
      const result = runCase(seed, "own", COMPILED_FEATURES, undefined, [name], tier);
      assert.deepEqual(result.differences, [], `seed ${seed}`);
      assert(!result.unsupported, `seed ${seed} is unsupported`);
      const plain = generateModules(seed, COMPILED_FEATURES, [name], true);
      assert(plain.every((bytes) => WebAssembly.validate(bytes)), `seed ${seed} has no standard form`);
      assert.notDeepEqual(result.modules, plain);
      if (result.executed.includes(name)) executed++;
    }
    assert(executed > FORCED_CASES * 0.5, `executed in ${executed} of ${FORCED_CASES} cases`);
  });
}

Deno.test("the comparison with the standard form detects differences in place of sums", () => {
  const forced = ["wide-arithmetic"];
  let noticed = 0;
  for (let seed = 0; seed < CHANGED_CASES; seed++) {
    const parts = generateModules(seed, COMPILED_FEATURES, forced).map((bytes) => split(bytes));
    for (const instruction of parts.flatMap(({ bodies }) => bodies.flatMap(({ code }) => code))) {
      if (instruction[0] === 0xfc && instruction[1] === 0x13) instruction[1] = 0x14; // i64.add128, i64.sub128
    }
    const plain = generateModules(seed, COMPILED_FEATURES, forced, true);
    const changed = parts.map((module) => join(module));
    const subject = (options: EngineOptions) => waft("waft", options);
    const { differences } = compareModules(changed, seed, configurations(seed), subject, plain);
    if (differences.length > 0) noticed++;
  }
  assert(noticed >= CHANGED_CASES / 10, `only ${noticed} changes were observable`);
});

Deno.test("every generated module is valid", () => {
  for (let seed = 0; seed < 300; seed++) {
    for (const bytes of generateModules(seed, GENERATED_FEATURES)) assert(WebAssembly.validate(bytes), `seed ${seed}`);
  }
});

Deno.test("generated MVP modules behave the same on waft and on V8", () => {
  for (let seed = 0; seed < MVP_CASES; seed++) {
    assert.deepEqual(runCase(seed, "own", []).differences, [], `seed ${seed}`);
  }
});

Deno.test("binaryen's random modules behave the same on waft and on V8", async () => {
  const binaryen = await BinaryenModules.open();
  let run = 0;
  for (let seed = 0; seed < BINARYEN_CASES; seed++) {
    const { differences, unsupported } = runCase(seed, "binaryen", COMPILED_FEATURES, binaryen);
    assert.deepEqual(differences, [], `seed ${seed}`);
    if (!unsupported) run++;
  }
  binaryen.close();
  assert(run > BINARYEN_CASES * 0.9, `only ${run} of ${BINARYEN_CASES} modules ran`);
});

for (const name of SCENARIO_NAMES) {
  Deno.test(`fuzzer scenario ${name}: reached, and the same on waft and on V8`, async () => {
    let reached = 0;
    for (let seed = 0; seed < SCENARIO_CASES; seed++) {
      const tier = TIERINGS[seed % TIERINGS.length];
      const result = await runScenarioCase(name, seed, COMPILED_FEATURES, tier);
      assert.deepEqual(result.differences, [], `seed ${seed}`);
      if (result.reached > 0) reached++;
    }
    assert(reached >= SCENARIO_CASES * 0.25, `${reached} of ${SCENARIO_CASES} cases reached it`);
  });
}

Deno.test({
  name: SMITH_PROBLEM === undefined
    ? "wasm-smith's random modules behave the same on waft and on V8"
    : `wasm-smith's random modules (ignored: ${SMITH_PROBLEM})`,
  ignore: SMITH_PROBLEM !== undefined,
  fn() {
    const smith = new SmithModules();
    let calls = 0;
    for (let seed = 0; seed < SMITH_CASES; seed++) {
      const result = runCase(seed, "smith", COMPILED_FEATURES, smith);
      assert.deepEqual(result.differences, [], `seed ${seed}`);
      calls += result.calls;
    }
    smith.close();
    assert(calls > SMITH_CASES * 5, `only ${calls} calls`);
  },
});

Deno.test("the comparison detects a changed instruction", () => {
  let noticed = 0;
  for (let seed = 0; seed < 120; seed++) {
    const [original, second] = generateModules(seed);
    if (second !== undefined) continue;
    const expected = runScenario([original], seed, V8);
    const changed = withChangedInstruction(original, new Random(seed));
    if (changed === undefined) continue;
    const other = runScenario([changed], seed, V8);
    if (expected.exhausted || other.exhausted || expected.entries.join() === other.entries.join()) continue;
    const actual = runScenario([changed], seed, waft("waft", { bounds: "explicit" }));
    assert.notDeepEqual(actual.entries, expected.entries, `seed ${seed}`);
    noticed++;
  }
  assert(noticed >= 5, `only ${noticed} changes were observable`);
});

/** The module with one logical operation replaced by its neighbour; loop counters do not use them. */
function withChangedInstruction(bytes: Uint8Array<ArrayBuffer>, random: Random): Uint8Array<ArrayBuffer> | undefined {
  const parts = split(bytes);
  const instructions = parts.bodies.flatMap(({ code }) => code);
  const logical = instructions.filter(([op]) => op === 0x71 || op === 0x72 || op === 0x83 || op === 0x84);
  if (logical.length === 0) return undefined;
  random.pick(logical)[0]++;
  return join(parts);
}

const ALL_OFF: EngineOptions = {
  optimizations: Object.fromEntries(OPTIMIZATION_ROWS.map((row) => [row.name, false])),
  verify: true,
};
const CONFIGURATIONS: Readonly<Record<string, EngineOptions>> = {
  "default": { verify: true },
  "explicit bounds": { bounds: "explicit", verify: true },
  "no optimizations": ALL_OFF,
  "no optimizations, explicit bounds": { ...ALL_OFF, bounds: "explicit" },
  "baseline": { tier: "baseline" },
  "baseline, explicit bounds": { tier: "baseline", bounds: "explicit" },
};

for (const [name, entries] of readCorpus()) {
  Deno.test(`fuzzer corpus ${name}: the same on waft and on V8`, async () => {
    assert(entries.length > 0);
    for (const entry of entries) assert.deepEqual(await replayEntry(entry), [], `${entry.about}, seed ${entry.seed}`);
  });
}

const REGRESSIONS = new URL("./regressions/", import.meta.url);
for (const name of readdirSync(REGRESSIONS).filter((name) => name.endsWith(".wast"))) {
  Deno.test(`fuzzer regression: ${name}`, async () => {
    const text = readFileSync(new URL(name, REGRESSIONS));
    for (const [configuration, options] of Object.entries(CONFIGURATIONS)) {
      const { passed, failures, skipped } = await runScript(text, options);
      assert.deepEqual(failures, [], configuration);
      assert.equal(skipped.size, 0, configuration);
      assert(passed > 0, configuration);
    }
  });
}
