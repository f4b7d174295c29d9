/**
 * `deno task fuzz --hours H`: all generators, scenarios and tiers in turn. In: options, and the state file of earlier
 * runs, after which this one continues. Out: the state file, totals, and in tests/fuzz/corpus the modules of every
 * difference, reduced.
 */
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { writeCorpus } from "../../tests/fuzz/corpus.ts";
import { SCENARIO_NAMES } from "../../tests/fuzz/scenarios.ts";
import { replaceFile } from "../../project/base/replace_file.ts";
import { batchesOf, runAll, SCRIPT } from "./fuzz_batches.ts";
import { type Options, scenarioOf, sourceOf } from "./fuzz_options.ts";
import { emptyTotals, report, type Totals } from "./fuzz_totals.ts";

/** The kinds of cases that take turns, each with the same seeds. */
const TURNS: readonly Partial<Options>[] = [
  { source: "own", tier: "optimizing" },
  { source: "own", tier: "baseline" },
  { source: "own", tier: "auto" },
  { source: "binaryen", tier: "auto" },
  { source: "smith", tier: "auto" },
  { source: "own", tier: "auto", scenarios: SCENARIO_NAMES },
];
/** The time limit for reducing one difference, since a reduced module may loop forever. */
const SHRINK_MS = 300_000;

/** The progress of all runs for hours. */
interface State {
  /** The first seed of the current turns, and the number of turns done. */
  seed: number;
  turns: number;
  seconds: number;
  totals: Totals;
}

function readState(options: Options): State {
  if (!existsSync(options.state)) return { seed: options.seed, turns: 0, seconds: 0, totals: emptyTotals() };
  return JSON.parse(readFileSync(options.state, "utf8")) as State;
}

/** Runs all kinds of cases in turn for `hours`; status 1 if any differ or crash. */
export async function runHours(options: Options, hours: number): Promise<void> {
  mkdirSync(options.out, { recursive: true });
  mkdirSync(dirname(options.state), { recursive: true });
  const state = readState(options);
  const { totals } = state;
  const faults = totals.found + totals.crashed;
  const end = Date.now() + hours * 3_600_000;
  while (Date.now() < end) {
    const started = performance.now();
    const turn = { ...options, rotate: true, ...TURNS[state.turns % TURNS.length] };
    const found: number[] = [];
    const batches = batchesOf({ seed: state.seed, count: options.turn, jobs: options.jobs });
    await runAll(batches, turn, totals, { onFound: (seed) => found.push(seed) });
    for (const seed of found) await keepFinding(seed, turn);
    if (++state.turns % TURNS.length === 0) state.seed += options.turn;
    state.seconds += (performance.now() - started) / 1000;
    replaceFile(options.state, `${JSON.stringify(state, null, 2)}\n`);
  }
  report(totals, state.seconds);
  if (totals.found + totals.crashed > faults) Deno.exit(1);
}

/** Reduces the modules of a difference in a child process, and adds them to the corpus. */
async function keepFinding(seed: number, options: Options): Promise<void> {
  const scenario = scenarioOf(seed, options);
  const files = filesNamed(join(options.out, `${scenario ?? sourceOf(seed, options)}-${seed}`));
  const small = join(options.out, `small-${seed}`);
  for (const file of filesNamed(small)) rmSync(file);
  const args = ["run", "-A", "--no-check", SCRIPT, "--shrink", "--seed", `${seed}`];
  args.push("--files", files.join(), "--tier", options.tier, "--out", options.out);
  const child = new Deno.Command(Deno.execPath(), { args, stdout: "null", stderr: "null" }).spawn();
  const timer = setTimeout(() => child.kill("SIGKILL"), SHRINK_MS);
  await child.status;
  clearTimeout(timer);
  const reduced = filesNamed(small);
  const modules = (reduced.length === files.length ? reduced : files).map((file) => new Uint8Array(readFileSync(file)));
  const about = `found by deno task fuzz --hours: ${sourceOf(seed, options)}, tier ${options.tier}`;
  const name = `found-${scenario ?? sourceOf(seed, options)}-${seed}.json`;
  writeCorpus(name, [{ about, seed, ...(scenario === undefined ? {} : { scenario }), modules }]);
  console.log(`seed ${seed}: ${modules.map(({ length }) => length).join(" + ")} bytes, tests/fuzz/corpus/${name}`);
}

/** The modules `NAME.0.wasm`, `NAME.1.wasm`, … */
function filesNamed(name: string): string[] {
  const files: string[] = [];
  while (existsSync(`${name}.${files.length}.wasm`)) files.push(`${name}.${files.length}.wasm`);
  return files;
}
