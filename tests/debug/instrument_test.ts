/**
 * Instrumented modules behave like the modules they are made of, on generated modules with every feature that this
 * build compiles. DEBUG_SEEDS=FROM-TO runs other seeds.
 */
import assert from "node:assert/strict";
import process from "node:process";
import type { ExternTable } from "@waft/engine";
import { ActivationClock } from "../../project/debug/activation_clock.ts";
import { instrument } from "../../project/debug/instrument.ts";
import { countModule } from "../../engine/instrument/count_module.ts";
import { COMPILED_FEATURES } from "../fuzz/compare.ts";
import { generateModules } from "../fuzz/generate_module.ts";
import { runScenario } from "../fuzz/scenario.ts";
import { type Subject, waft } from "../fuzz/subject.ts";

const [FROM, TO] = (process.env["DEBUG_SEEDS"] ?? "0-60").split("-").map(Number) as [number, number];
const CLOCK = new ActivationClock();
const FEATURES = COMPILED_FEATURES.filter((name) => name !== "threads");

/** waft, running the instrumented form of each module. */
function debugged(plain: Subject, isPart = false): Subject {
  return {
    ...plain,
    name: "instrumented",
    instantiate(bytes, imports) {
      const { bytes: instrumented, names } = instrument(bytes, isPart);
      const exports = plain.instantiate(new Uint8Array(instrumented), imports);
      if (isPart) CLOCK.install(exports[names.table] as ExternTable);
      if (names.start !== undefined) (exports[names.start] as () => void)();
      return exports;
    },
  };
}

/** waft, running the counting form of each module. */
function counting(plain: Subject): Subject {
  return {
    ...plain,
    name: "counting",
    instantiate: (bytes, imports) => plain.instantiate(countModule(bytes).bytes, imports),
  };
}

/**
 * An entry without the offset of a trap, which is one in the instrumented module, and without names of exports for
 * functions in tables: parts export other functions, which the code of a component cannot tell.
 */
function withoutPlace(entry: string): string {
  return entry.replace(/(trap .*?) at .*$/, "$1").replace(/function t\d+_/g, "function ");
}

/** waft, running the instrumented form that a component has of each core module. */
function part(plain: Subject): Subject {
  return debugged(plain, true);
}

for (const [name, instrumented] of Object.entries({ debugged, part, counting })) {
  Deno.test(`${name} modules have the same results, traps and effects`, () => {
    const plain = waft("plain", {});
    let compared = 0;
    for (let seed = FROM; seed < TO; seed++) {
      const modules = generateModules(seed, FEATURES);
      const expected = runScenario(modules, seed, plain);
      const actual = runScenario(modules, seed, instrumented(plain));
      if (expected.exhausted || actual.exhausted) continue; // the maximum depth differs
      assert.deepEqual(actual.entries.map(withoutPlace), expected.entries.map(withoutPlace), `seed ${seed}`);
      compared++;
    }
    assert(compared > (TO - FROM) / 2, `${compared} modules were compared`);
  });
}
