/**
 * Differential fuzzing: `deno task fuzz` runs random modules on waft and on V8 and compares the results. In: options
 * (`--help` lists them). Cases run in child processes, so that a crash or a hang of compiled code is attributed to a
 * seed. Out: for each difference the modules and a description in the output folder; progress and totals on stdout.
 *
 * `--hours H` runs everything in turn, resumes, and adds reduced modules to the corpus that the tests replay.
 * `--shrink` with `--seed S` reduces the modules of one seed while they still differ; with `--files A.wasm,B.wasm` it
 * reduces the modules in those files. Exit status: 0 no difference, 1 difference or crash, 2 usage error.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { BINARYEN_FEATURES, BinaryenModules } from "../../tests/fuzz/binaryen_modules.ts";
import {
  compareModules,
  COMPILED_FEATURES,
  configurations,
  modulesOf,
  type ModuleSource,
  runCase,
  type Source,
  SOURCES,
} from "../../tests/fuzz/compare.ts";
import { writeCorpus } from "../../tests/fuzz/corpus.ts";
import { forcedInTurn, GENERATED_FEATURES } from "../../tests/fuzz/generate_module.ts";
import { runScenarioCase, SCENARIO_NAMES, type ScenarioName } from "../../tests/fuzz/scenarios.ts";
import { SmithModules } from "../../tests/fuzz/smith_modules.ts";
import { shrink } from "../../tests/fuzz/shrink.ts";
import { type Tiering, TIERINGS } from "../../engine/settings.ts";
import { replaceFile } from "../../project/base/replace_file.ts";
import { oneOf, readTaskLine, wholeNumber } from "../task_options.ts";

const task = {
  name: "task fuzz",
  about: "Runs random modules on waft and on V8 and compares the results. Exit status 1 if any differ.",
  options: {
    count: { value: "N", help: "number of cases", default: "2000" },
    seed: { value: "S", help: "first seed", default: "1" },
    source: { value: "NAME", help: "module generator: own, binaryen or smith; the first two alternate by default" },
    scenario: { value: "A,B…", help: `scenarios in turn, or all: ${SCENARIO_NAMES.join(", ")}`, default: "" },
    feature: { value: "A,B…", help: "features that every module uses (own generator; binaryen's may)", default: "" },
    only: { value: "A,B…", help: "features that modules may use; all by default" },
    tier: {
      value: "NAME",
      help: "second configuration's compiler: baseline, optimizing, or auto for both in turn",
      default: "optimizing",
    },
    jobs: { value: "J", help: "number of parallel processes", default: "2" },
    hours: {
      value: "H",
      help: "run all generators, scenarios and tiers in turn for H hours, from where the last such run stopped, and " +
        "force every feature in turn; reduce what differs and add it to tests/fuzz/corpus",
    },
    turn: { value: "N", help: "with --hours: cases of one turn", default: "1000" },
    state: { value: "FILE", help: "with --hours: seeds and totals of earlier runs", default: ".cache/fuzz/state.json" },
    out: { value: "DIR", help: "folder for modules that differ", default: join(tmpdir(), "waft-fuzz-findings") },
    shrink: { help: "reduce the modules of --seed while they still differ" },
    files: { value: "A.wasm,…", help: "with --shrink: reduce these modules", default: "" },
    child: { help: "run as a child process", hidden: true },
    rotate: { help: "force the features in turn", hidden: true },
  },
} as const;
/** Cases per child process, and the time limit of one case. */
const BATCH = 400;
const CASE_MS = 120_000;

interface Options {
  count: number;
  seed: number;
  source: Source | undefined;
  features: readonly string[];
  forced: readonly string[];
  /** Whether own cases without a scenario force two features each, in turn. */
  rotate: boolean;
  tier: Tiering;
  /** The scenarios that cases take in turn; none for random modules alone. */
  scenarios: readonly ScenarioName[];
  jobs: number;
  out: string;
  child: boolean;
  shrink: boolean;
  files: readonly string[];
  hours: number | undefined;
  turn: number;
  state: string;
}

/** The sums of the children's reports. */
interface Totals {
  own: number;
  binaryen: number;
  smith: number;
  runs: number;
  calls: number;
  traps: number;
  exhausted: number;
  unsupported: number;
  nanOnly: number;
  depthOnly: number;
  placeOnly: number;
  found: number;
  crashed: number;
  /** By feature: the number of own cases that executed an instruction of it, and of those that had to. */
  readonly executed: Record<string, number>;
  readonly forced: Record<string, number>;
  /** By scenario: the number of cases, and of those that reached it. */
  readonly scenarios: Record<string, { cases: number; reached: number }>;
}

function emptyTotals(): Totals {
  return {
    own: 0,
    binaryen: 0,
    smith: 0,
    runs: 0,
    calls: 0,
    traps: 0,
    exhausted: 0,
    unsupported: 0,
    nanOnly: 0,
    depthOnly: 0,
    placeOnly: 0,
    found: 0,
    crashed: 0,
    executed: {},
    forced: {},
    scenarios: {},
  };
}

function addCounts(sums: Record<string, number>, counts: Readonly<Record<string, number>>): void {
  for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count;
}

function addScenario({ scenarios }: Totals, name: string, counts: { cases: number; reached: number }): void {
  const sums = scenarios[name] ??= { cases: 0, reached: 0 };
  sums.cases += counts.cases;
  sums.reached += counts.reached;
}

function readOptions(): Options {
  const { values } = readTaskLine(task);
  const number = (name: "count" | "seed" | "jobs" | "turn") => wholeNumber(task, `--${name}`, values[name]);
  return {
    count: number("count"),
    seed: number("seed"),
    source: values.source === undefined ? undefined : oneOf(task, "--source", values.source, SOURCES),
    features: values.only === undefined ? COMPILED_FEATURES : featuresOf("--only", values.only),
    forced: featuresOf("--feature", values.feature),
    rotate: values.rotate,
    tier: oneOf(task, "--tier", values.tier, TIERINGS),
    scenarios: scenariosOf(values.scenario),
    jobs: number("jobs"),
    out: values.out,
    child: values.child,
    shrink: values.shrink,
    files: values.files === "" ? [] : values.files.split(","),
    hours: values.hours === undefined ? undefined : hoursOf(values.hours),
    turn: number("turn"),
    state: values.state,
  };
}

function hoursOf(text: string): number {
  const hours = Number(text);
  if (hours > 0 && Number.isFinite(hours)) return hours;
  console.error(`deno ${task.name}: --hours takes a positive number, not ${JSON.stringify(text)}`);
  Deno.exit(2);
}

function featuresOf(option: string, text: string): string[] {
  const known = [...new Set([...GENERATED_FEATURES, ...BINARYEN_FEATURES])];
  return text === "" ? [] : text.split(",").map((name) => oneOf(task, option, name, known));
}

function scenariosOf(text: string): ScenarioName[] {
  if (text === "all") return SCENARIO_NAMES;
  return text === "" ? [] : text.split(",").map((name) => oneOf(task, "--scenario", name, SCENARIO_NAMES));
}

function scenarioOf(seed: number, { scenarios }: Options): ScenarioName | undefined {
  return scenarios[seed % scenarios.length];
}

function sourceOf(seed: number, options: Options): Source {
  if (options.scenarios.length > 0) return "own";
  return options.source ?? (seed % 2 === 0 ? "own" : "binaryen");
}

/** The features that the own case of a seed must use. */
function forcedOf(seed: number, { forced, rotate }: Options): readonly string[] {
  return rotate ? forcedInTurn(seed) : forced;
}

/** Opens the generator of `source`, or the one that alternates with our own. */
async function generatorFor(source: Source | undefined): Promise<ModuleSource | undefined> {
  if (source === "own") return undefined;
  return source === "smith" ? new SmithModules() : await BinaryenModules.open();
}

// ---- the child ------------------------------------------------------------------------------------------------------

const encoder = new TextEncoder();

function say(line: string): void {
  Deno.stdout.writeSync(encoder.encode(line + "\n"));
}

/** Runs its cases; announces each seed to the parent before running it. */
async function runChild(options: Options): Promise<void> {
  const generator = options.scenarios.length > 0 ? undefined : await generatorFor(options.source);
  const totals = emptyTotals();
  for (let seed = options.seed; seed < options.seed + options.count; seed++) {
    say(`start ${seed}`);
    const source = sourceOf(seed, options);
    const scenario = scenarioOf(seed, options);
    const result = scenario === undefined
      ? runCase(seed, source, options.features, generator, forcedOf(seed, options), options.tier)
      : await runScenarioCase(scenario, seed, options.features, options.tier);
    if (scenario !== undefined) {
      addScenario(totals, scenario, { cases: 1, reached: result.reached > 0 ? 1 : 0 });
    }
    for (const name of result.executed) addCounts(totals.executed, { [name]: 1 });
    if (source === "own" && scenario === undefined) {
      for (const name of forcedOf(seed, options)) addCounts(totals.forced, { [name]: 1 });
    }
    totals[source]++;
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

// ---- the parent -----------------------------------------------------------------------------------------------------

interface Batch {
  seed: number;
  count: number;
}

/** Runs a batch in a child; returns the remaining cases if the child crashed or hung. */
async function runBatch(
  batch: Batch,
  options: Options,
  totals: Totals,
  onFound: (seed: number) => void = () => {},
): Promise<Batch | undefined> {
  const args = [
    "run",
    "-A",
    "--no-check",
    import.meta.filename!,
    "--child",
    "--seed",
    `${batch.seed}`,
    "--count",
    `${batch.count}`,
  ];
  args.push("--out", options.out, "--only", options.features.join(), "--feature", options.forced.join());
  args.push("--tier", options.tier, "--scenario", options.scenarios.join());
  if (options.source !== undefined) args.push("--source", options.source);
  if (options.rotate) args.push("--rotate");
  const child = new Deno.Command(Deno.execPath(), { args, stdout: "piped", stderr: "piped" }).spawn();
  const errors = new Response(child.stderr).text();
  let current = batch.seed;
  let finished = false;
  let hung = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const watch = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      hung = true;
      child.kill("SIGKILL");
    }, CASE_MS);
  };
  watch();
  let rest = "";
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    watch();
    const lines = (rest + chunk).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      const [word, first] = line.split(" ", 2);
      if (word === "start") current = Number(first);
      else if (word === "soft") console.log(line);
      else if (word === "found") {
        onFound(Number(first));
        console.log(
          `seed ${first} (${sourceOf(Number(first), options)}) differs:\n${JSON.parse(line.slice(7 + first.length))}`,
        );
      } else if (word === "totals") {
        finished = true;
        const part = JSON.parse(line.slice(7)) as Totals;
        for (const key of Object.keys(totals) as (keyof Totals)[]) {
          if (key !== "executed" && key !== "forced" && key !== "scenarios") totals[key] += part[key];
        }
        for (const [name, counts] of Object.entries(part.scenarios)) addScenario(totals, name, counts);
        addCounts(totals.executed, part.executed);
        addCounts(totals.forced, part.forced);
      }
    }
  }
  clearTimeout(timer);
  const status = await child.status;
  if (finished) return undefined;
  totals.crashed++;
  totals[sourceOf(current, options)] += current + 1 - batch.seed; // the child reports its counts only at the end
  const why = hung ? `hung for ${CASE_MS / 1000} s` : `died (${status.signal ?? `exit ${status.code}`})`;
  const text = `seed ${current} (${sourceOf(current, options)}) ${why}\n${(await errors).slice(-1500)}`;
  console.log(text);
  writeFileSync(join(options.out, `${sourceOf(current, options)}-${current}.crash.txt`), text);
  const left = batch.seed + batch.count - current - 1;
  return left > 0 ? { seed: current + 1, count: left } : undefined;
}

async function runParent(options: Options): Promise<void> {
  mkdirSync(options.out, { recursive: true });
  const totals = emptyTotals();
  const batches: Batch[] = [];
  const end = options.seed + options.count;
  for (let seed = options.seed; seed < end; seed += BATCH) batches.push({ seed, count: Math.min(BATCH, end - seed) });
  const started = performance.now();
  let done = 0;
  const worker = async () => {
    for (let next = batches.shift(); next !== undefined; next = batches.shift()) {
      for (let left: Batch | undefined = next; left !== undefined;) left = await runBatch(left, options, totals);
      done += next.count;
      if (done % 4000 < BATCH) {
        console.log(`${done} of ${options.count}, ${Math.round((performance.now() - started) / 1000)} s`);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, options.jobs) }, worker));
  report(totals, (performance.now() - started) / 1000);
  if (totals.found + totals.crashed > 0) {
    console.log(`See ${options.out}`);
    Deno.exit(1);
  }
}

function report(totals: Totals, seconds: number): void {
  const { executed, forced, scenarios, ...counts } = totals;
  console.log(JSON.stringify(counts));
  printCounts("Own cases that executed an instruction of", executed);
  printCounts("Own cases that were forced to use", forced);
  const reached = Object.entries(scenarios).map(([name, { cases, reached }]) => [name, `${reached} of ${cases}`]);
  printCounts("Cases that reached their scenario", Object.fromEntries(reached));
  const cases = totals.own + totals.binaryen + totals.smith;
  const each = (seconds * 1000 / cases).toFixed(1);
  console.log(
    `${cases} cases in ${seconds.toFixed(0)} s (${each} ms each), ${totals.found} differ, ${totals.crashed} crashed`,
  );
}

function printCounts(title: string, counts: Readonly<Record<string, number | string>>): void {
  const rows = Object.entries(counts).sort();
  if (rows.length === 0) return;
  console.log(title);
  for (const [name, count] of rows) console.log(`  ${name.padEnd(28)} ${count}`);
}

// ---- running for hours ----------------------------------------------------------------------------------------------

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

async function runHours(options: Options, hours: number): Promise<void> {
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
    for (let left: Batch | undefined = { seed: state.seed, count: options.turn }; left !== undefined;) {
      left = await runBatch(left, turn, totals, (seed) => found.push(seed));
    }
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
  const args = ["run", "-A", "--no-check", import.meta.filename!, "--shrink", "--seed", `${seed}`];
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

// ---- shrinking ------------------------------------------------------------------------------------------------------

async function runShrink(options: Options): Promise<void> {
  const generator = options.files.length > 0 ? undefined : await generatorFor(sourceOf(options.seed, options));
  const modules = options.files.length > 0
    ? options.files.map((path) => new Uint8Array(readFileSync(path)))
    : modulesOf(
      options.seed,
      sourceOf(options.seed, options),
      options.features,
      generator,
      undefined,
      forcedOf(options.seed, options),
    );
  generator?.close();
  const failing = configurations(options.seed, options.tier).filter((o) =>
    compareModules(modules, options.seed, [o]).differences.length > 0
  );
  if (failing.length === 0) {
    console.log("Nothing differs");
    Deno.exit(1);
  }
  const config = [failing[0]];
  mkdirSync(options.out, { recursive: true });
  const save = (next: readonly Uint8Array[]) =>
    next.forEach((bytes, i) => writeFileSync(join(options.out, `small-${options.seed}.${i}.wasm`), bytes));
  const small = shrink(
    modules,
    (next) => compareModules(next, options.seed, config).differences.length > 0,
    (next) => {
      save(next);
      console.error(`${next.map((bytes) => bytes.length).join(" + ")} bytes`);
    },
  );
  console.log(JSON.stringify(config[0]));
  for (const { text } of compareModules(small, options.seed, config).differences) console.log(text);
  console.log(`Written to ${join(options.out, `small-${options.seed}.*.wasm`)}`);
  Deno.exit(0);
}

const options = readOptions();
if (options.child) await runChild(options);
else if (options.shrink) await runShrink(options);
else if (options.hours !== undefined) await runHours(options, options.hours);
else await runParent(options);
