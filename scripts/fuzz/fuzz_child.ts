/**
 * The child process of `deno task fuzz`, which runs cases. In: the options of its batch. Out, on stdout: `start SEED`
 * before each case, so that the parent can attribute a crash or a hang; `soft SEED KIND` for a difference that the
 * specification permits; `found SEED TEXT` for any other, whose modules and description are in the output folder; and
 * at the end `totals JSON`.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { runCase } from "../../tests/fuzz/compare.ts";
import { runScenarioCase } from "../../tests/fuzz/scenarios.ts";
import { forcedOf, generatorFor, type Options, scenarioOf, sourceOf } from "./fuzz_options.ts";
import { addScenario, countNames, emptyTotals } from "./fuzz_totals.ts";

/**
 * Cases without a turn of the event loop: weak references that were read keep their targets alive until then, which are
 * all instances of waft after a collection.
 */
const CASES_PER_TURN = 4;

const encoder = new TextEncoder();

function say(line: string): void {
  Deno.stdout.writeSync(encoder.encode(line + "\n"));
}

/** Runs the cases of the options, then exits. */
export async function runChild(options: Options): Promise<void> {
  const generator = options.scenarios.length > 0 ? undefined : await generatorFor(options.source);
  const totals = emptyTotals();
  for (let seed = options.seed; seed < options.seed + options.count; seed++) {
    if (seed % CASES_PER_TURN === 0) await new Promise((resolve) => setTimeout(resolve));
    say(`start ${seed}`);
    const source = sourceOf(seed, options);
    const scenario = scenarioOf(seed, options);
    const result = scenario === undefined
      ? runCase(seed, source, options.features, generator, forcedOf(seed, options), options.tier)
      : await runScenarioCase(scenario, seed, options.features, options.tier);
    if (scenario !== undefined) {
      addScenario(totals, scenario, { cases: 1, reached: result.reached > 0 ? 1 : 0 });
    }
    countNames(totals.executed, result.executed);
    if (source === "own" && scenario === undefined) countNames(totals.forced, forcedOf(seed, options));
    totals[source]++;
    totals.modules += result.modules.length;
    totals.runs += result.unsupported ? 0 : 2;
    totals.calls += result.calls;
    totals.traps += result.traps;
    for (const key of ["exhausted", "unsupported", "nanOnly", "depthOnly", "placeOnly"] as const) {
      if (!result[key]) continue;
      totals[key]++;
      if (key === "nanOnly" || key === "depthOnly") say(`soft ${seed} ${key}`);
    }
    if (result.differences.length === 0) continue;
    totals.found++;
    const name = join(options.out, `${scenario ?? source}-${seed}`);
    result.modules.forEach((bytes, i) => writeFileSync(`${name}.${i}.wasm`, bytes));
    const text = result.differences.map((d) => `${JSON.stringify(d.options)}\n${d.text}\n`).join("\n");
    writeFileSync(`${name}.txt`, text);
    say(`found ${seed} ${JSON.stringify(result.differences[0].text)}`);
  }
  generator?.close();
  say(`totals ${JSON.stringify(totals)}`);
  Deno.exit(0);
}
