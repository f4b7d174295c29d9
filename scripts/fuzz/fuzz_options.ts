/**
 * The command line of `deno task fuzz`. In: the process's arguments. Out: the options, and for each seed its module
 * generator, its scenario and the features that it must use.
 */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BINARYEN_FEATURES, BinaryenModules } from "../../tests/fuzz/binaryen_modules.ts";
import { COMPILED_FEATURES, type ModuleSource, type Source, SOURCES } from "../../tests/fuzz/compare.ts";
import {
  forcedInTurn,
  GENERATED_FEATURES,
  GENERATED_PROPOSALS,
  proposalsOf,
} from "../../tests/fuzz/generate_module.ts";
import { SCENARIO_NAMES, type ScenarioName } from "../../tests/fuzz/scenarios.ts";
import { SmithModules } from "../../tests/fuzz/smith_modules.ts";
import { type Tiering, TIERINGS } from "../../engine/api/settings.ts";
import { oneOf, readTaskLine, wrongUsage } from "../task_options.ts";

const FEATURE_HELP = "features that every module uses (own generator; binaryen's may), and proposals: " +
  `${GENERATED_PROPOSALS.join(", ")} (own generator; V8 runs the same program without them)`;

const task = {
  name: "task fuzz",
  about: "Runs random modules on waft and on V8 and compares the results. Exit status 1 if any differ.",
  options: {
    count: { value: "N", least: 0, help: "number of cases", default: "2000" },
    seed: { value: "S", least: 0, help: "first seed", default: "1" },
    source: {
      value: "NAME",
      words: SOURCES,
      help: "module generator: own, binaryen or smith; the first two alternate by default",
    },
    scenario: { value: "A,B…", help: `scenarios in turn, or all: ${SCENARIO_NAMES.join(", ")}`, default: "" },
    feature: { value: "A,B…", help: FEATURE_HELP, default: "" },
    only: { value: "A,B…", help: "features that modules may use; all by default" },
    tier: {
      value: "NAME",
      words: TIERINGS,
      help: "second configuration's compiler: baseline, optimizing, or auto for both in turn",
      default: "optimizing",
    },
    jobs: { value: "J", least: 1, help: "number of parallel processes", default: "2" },
    hours: {
      value: "H",
      help: "run all generators, scenarios and tiers in turn for H hours, from where the last such run stopped, and " +
        "force every feature in turn; reduce what differs and add it to tests/fuzz/corpus",
    },
    turn: { value: "N", least: 1, help: "with --hours: cases of one turn", default: "8000" },
    state: { value: "FILE", help: "with --hours: seeds and totals of earlier runs", default: ".cache/fuzz/state.json" },
    out: { value: "DIR", help: "folder for modules that differ", default: join(tmpdir(), "waft-fuzz-findings") },
    shrink: { help: "reduce the modules of --seed while they still differ" },
    files: { value: "A.wasm,…", help: "with --shrink: reduce these modules", default: "" },
    child: { help: "run as a child process", hidden: true },
    rotate: { help: "force the features in turn", hidden: true },
  },
} as const;

/** The parsed options. */
export interface Options {
  count: number;
  seed: number;
  source: Source | undefined;
  features: readonly string[];
  forced: readonly string[];
  /** Whether own cases without a scenario force three features each, in turn. */
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

/** Parses the arguments; exits the process for help and for usage errors. */
export function readOptions(): Options {
  const { values } = readTaskLine(task);
  return {
    ...values,
    features: values.only === undefined ? COMPILED_FEATURES : featuresOf("--only", values.only),
    forced: forcedFeatures(values.feature, values.shrink),
    scenarios: scenariosOf(values.scenario),
    files: values.files === "" ? [] : values.files.split(","),
    hours: values.hours === undefined ? undefined : hoursOf(values.hours),
  };
}

function hoursOf(text: string): number {
  const hours = Number(text);
  if (hours > 0 && Number.isFinite(hours)) return hours;
  wrongUsage(task, `--hours takes a positive number, not '${text}'`);
}

/** The features of --feature. */
function forcedFeatures(text: string, shrink: boolean): string[] {
  const forced = featuresOf("--feature", text, GENERATED_PROPOSALS);
  if (shrink && proposalsOf(forced).length > 0) {
    wrongUsage(task, "--shrink does not reduce modules with proposals, since V8 runs another form of them");
  }
  return forced;
}

function featuresOf(option: string, text: string, more: readonly string[] = []): string[] {
  const known = [...new Set([...GENERATED_FEATURES, ...BINARYEN_FEATURES, ...more])];
  return text === "" ? [] : text.split(",").map((name) => oneOf(task, option, name, known));
}

function scenariosOf(text: string): ScenarioName[] {
  if (text === "all") return SCENARIO_NAMES;
  return text === "" ? [] : text.split(",").map((name) => oneOf(task, "--scenario", name, SCENARIO_NAMES));
}

/** The scenario of a seed, if scenarios are chosen. */
export function scenarioOf(seed: number, { scenarios }: Options): ScenarioName | undefined {
  return scenarios[seed % scenarios.length];
}

/** The generator of the modules of a seed. */
export function sourceOf(seed: number, options: Options): Source {
  if (options.scenarios.length > 0 || proposalsOf(options.forced).length > 0) return "own";
  return options.source ?? (seed % 2 === 0 ? "own" : "binaryen");
}

/** The features that the own case of a seed must use. */
export function forcedOf(seed: number, { forced, rotate }: Options): readonly string[] {
  return rotate ? forcedInTurn(seed) : forced;
}

/** Opens the generator of `source`, or the one that alternates with the own one. */
export async function generatorFor(source: Source | undefined): Promise<ModuleSource | undefined> {
  if (source === "own") return undefined;
  return source === "smith" ? new SmithModules() : await BinaryenModules.open();
}
