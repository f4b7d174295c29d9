/**
 * Random modules on arm64 against results recorded on another host. `record FILE COUNT SEED` writes V8's traces of the
 * modules of COUNT seeds; `replay FILE [TIER]` runs the same modules on waft, in two configurations each, the second of
 * them with that tier, and compares the traces line by line. Generated modules hide the bits of NaNs, so traces are the
 * same on every processor.
 */
import { readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { type Tiering, TIERINGS } from "../../engine/api/settings.ts";
import { COMPILED_FEATURES, configurations, modulesOf } from "../fuzz/compare.ts";
import { runScenario } from "../fuzz/scenario.ts";
import { sameEnd, V8, waft } from "../fuzz/subject.ts";

interface Recorded {
  seed: number;
  entries: string[];
}

/** A trace without the offsets of traps, which V8 reports differently. */
function withoutPlaces(entries: readonly string[]): string[] {
  return entries.map((entry) => entry.replace(/ at [0-9a-f]+( < [0-9a-f]+)*$/, ""));
}

function record(file: string, count: number, first: number): void {
  const cases: Recorded[] = [];
  for (let seed = first; cases.length < count; seed++) {
    const trace = runScenario(modulesOf(seed, "own", COMPILED_FEATURES, undefined), seed, V8);
    // Engines differ in their maximum stack depth.
    if (!trace.exhausted) cases.push({ seed, entries: withoutPlaces(trace.entries) });
  }
  writeFileSync(file, JSON.stringify(cases));
}

function replay(file: string, tier: Tiering): number {
  const cases = JSON.parse(readFileSync(file, "utf8")) as Recorded[];
  let runs = 0;
  let different = 0;
  for (const { seed, entries } of cases) {
    const modules = modulesOf(seed, "own", COMPILED_FEATURES, undefined);
    for (const options of configurations(seed, tier)) {
      runs++;
      const trace = runScenario(modules, seed, waft("waft", options));
      if (trace.exhausted) continue;
      const actual = withoutPlaces(trace.entries);
      const at = entries.findIndex((entry, i) => !sameEnd(entry, actual[i] ?? "(nothing)"));
      if (at < 0 && actual.length === entries.length) continue;
      different++;
      console.log(`seed ${seed} ${JSON.stringify(options)}: expected ${entries[at]}, got ${actual[at]}`);
    }
  }
  console.log(`replay: ${cases.length} seeds, ${runs} runs, ${different} different`);
  return different > 0 ? 1 : 0;
}

const [command, file, third, fourth] = process.argv.slice(2);
if (command === "record") record(file, Number(third), Number(fourth));
else process.exit(replay(file, TIERINGS.find((tier) => tier === third) ?? "optimizing"));
