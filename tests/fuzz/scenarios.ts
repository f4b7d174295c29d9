/**
 * The scenarios of the fuzzer: situations that random modules reach rarely, each of which can be forced
 * (`deno task fuzz --scenario NAME`). In: a scenario and a seed. Out: the differences from V8, and how often the
 * scenario was reached.
 *
 * V8 has no reset, snapshots or tiers of a caller's choice. There the program runs on V8 from the start, which must be
 * the same as on an instance of ours that was used and reset, or restored from a snapshot.
 */
import { Engine, type EngineOptions, type Instance } from "../../engine/api/engine.ts";
import { Bug, UnsupportedError } from "../../engine/base/errors.ts";
import type { Tiering } from "../../engine/api/settings.ts";
import { ASYNC_V8, asyncWaft, runAsync } from "./async_scenario.ts";
import { type CaseResult, compareModules, configurations, type Difference, UNCOMPARED } from "./compare.ts";
import { generateModules } from "./generate_module.ts";
import { type ModuleInterface, readInterface, UnknownInterface } from "./read_interface.ts";
import { exceptionsAcross, manyValues, typesAcross } from "./scenario_modules.ts";
import { type Exports, type ImportObject, sameEnd, type Subject, waft, type WasmFunction } from "./subject.ts";
import type { Signature } from "./value_types.ts";

type Binary = Uint8Array<ArrayBuffer>;
/** Counts that the scenario was reached. */
type Reach = () => void;

interface ScenarioRow {
  readonly about: string;
  modules(seed: number, features: readonly string[]): Binary[];
  /** Runs the modules; by default they count in their globals "reached". */
  subject?(options: EngineOptions, reach: Reach): Subject;
  /** True for {@linkcode runAsync}. */
  readonly isAsync?: true;
}

/** Attempts to generate a module of a shape. */
const ATTEMPTS = 40;

/** The first random module of a few whose interface `fits`; without shared memories, which cannot be reset. */
function fitting(seed: number, features: readonly string[], fits: (face: ModuleInterface) => boolean): Binary[] {
  const allowed = features.filter((name) => name !== "threads");
  const modules = Array.from(
    { length: ATTEMPTS },
    (_, attempt) => () => generateModules(seed + attempt * 0x1000003, allowed)[0],
  );
  for (const make of modules) {
    const module = make();
    if (fits(readInterface(module))) return [module];
  }
  return [modules[0]()];
}

/** Modules that share no state with the host. */
const closed = (seed: number, features: readonly string[]) => fitting(seed, features, isClosed);
const isClosed = ({ imports }: ModuleInterface) =>
  imports.every(({ type }) => type.kind === "func" || type.kind === "tag");

/** Modules that import functions, and start without them. */
const waiting = (seed: number, features: readonly string[]) =>
  fitting(
    seed,
    features,
    ({ imports, start }) =>
      !start && imports.filter(({ type }) => type.kind === "func").length > 1 &&
      imports.every(({ type }) => type.kind === "func"),
  );

/** The scenarios by name. */
const SCENARIOS = {
  "many-values": { about: "functions of many parameters and results", modules: manyValues },
  "exceptions-across": { about: "exceptions across instances", modules: exceptionsAcross },
  "types-across": { about: "collected types across modules", modules: typesAcross },
  "tiers": {
    about: "calls between modules of different tiers",
    modules: (seed, features) => seed % 2 === 0 ? typesAcross(seed) : exceptionsAcross(seed, features),
    subject: mixedTiers,
  },
  "reset": { about: "instances that were used and reset", modules: closed, subject: afterReset },
  "snapshot": { about: "instances restored from snapshots of used ones", modules: closed, subject: fromSnapshot },
  "async": { about: "calls that wait for promises, and trap", modules: waiting, isAsync: true },
} as const satisfies Record<string, ScenarioRow>;

export type ScenarioName = keyof typeof SCENARIOS;
export const SCENARIO_NAMES = Object.keys(SCENARIOS) as ScenarioName[];

/** A case of a scenario. */
interface ScenarioResult extends CaseResult {
  readonly reached: number;
}

/** Runs one case of a scenario, over its modules or those `given`. */
export async function runScenarioCase(
  name: ScenarioName,
  seed: number,
  features: readonly string[],
  tier: Tiering = "optimizing",
  given?: readonly Binary[],
): Promise<ScenarioResult> {
  const row: ScenarioRow = SCENARIOS[name];
  const modules = given ?? row.modules(seed, features);
  const options = configurations(seed, tier);
  if (row.isAsync) return await compareAsync(modules[0], seed, options);
  let reached = 0;
  const reach = () => void reached++;
  const result = compareModules(
    modules,
    seed,
    options,
    (option) => row.subject?.(option, reach) ?? waft("waft", option),
  );
  return { ...result, reached: row.subject === undefined ? result.reached : reached };
}

// ---- engines --------------------------------------------------------------------------------------------------------

/** Modules alternate between tiers; one configuration of three moves up while it runs. */
function mixedTiers(options: EngineOptions, reach: Reach): Subject {
  const tiers: EngineOptions[] = [{ tier: "baseline" }, { tier: "optimizing" }, { tier: "auto", tierUpCalls: 1 }];
  const { optimizations } = options;
  const bounds = options.bounds ?? "guard";
  const engines = tiers.map((tier) => new Engine({ optimizations, bounds, ...tier }));
  let next = bounds === "guard" ? 0 : 1;
  return {
    ...waft("mixed tiers", { bounds }),
    instantiate(bytes, imports) {
      if (next > 1) reach();
      return engines[next++ % engines.length].compile(bytes).instantiate({}, imports).exports;
    },
  };
}

/** Uses each instance and resets it before the scenario. */
function afterReset(options: EngineOptions, reach: Reach): Subject {
  return used(options, (engine, bytes, imports, face) => {
    const instance = engine.compile(bytes).instantiate({ resettable: true }, imports.objects);
    use(instance, face, imports);
    instance.reset();
    reach();
    return instance;
  });
}

/** Uses each instance after a snapshot was taken, and again after another one was made from it. */
function fromSnapshot(options: EngineOptions, reach: Reach): Subject {
  return used(options, (engine, bytes, imports, face) => {
    const module = engine.compile(bytes);
    const first = module.instantiate({}, imports.objects);
    let snapshot: Uint8Array;
    try {
      snapshot = first.snapshot();
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith("The instance cannot be saved: "))) throw error;
      return first; // it has references to objects outside
    }
    use(first, face, imports);
    const restored = module.restore(snapshot, {}, imports.objects);
    use(first, face, imports);
    reach();
    return restored;
  });
}

type Preparation = (engine: Engine, bytes: Binary, imports: SilencedImports, face: ModuleInterface) => Instance;

/** An engine whose instances are prepared, unless they share state with the host. */
function used(options: EngineOptions, prepare: Preparation): Subject {
  const engine = new Engine(options);
  const plain = waft("used", options);
  return {
    ...plain,
    instantiate(bytes, imports): Exports {
      const face = readInterface(bytes);
      if (!isClosed(face)) return plain.instantiate(bytes, imports);
      return prepare(engine, bytes, new SilencedImports(imports, face), face).exports;
    },
  };
}

/** Imports whose functions return zeros while they are silent, so that the scenario does not see those calls. */
class SilencedImports {
  readonly objects: ImportObject = {};
  silent = false;

  constructor(imports: ImportObject, { imports: rows }: ModuleInterface) {
    for (const { module, name, type } of rows) {
      const given = imports[module][name];
      const namespace = this.objects[module] ??= {};
      namespace[name] = type.kind === "func" ? this.#function(given as WasmFunction, type.signature) : given;
    }
  }

  #function(f: WasmFunction, { results }: Signature): WasmFunction {
    const zeros = results.map((type) => type === "i64" ? 0n : type.length === 3 ? 0 : null);
    return (...args) => this.silent ? (zeros.length < 2 ? zeros[0] : zeros) : f(...args);
  }
}

/** Calls every function once with zeros and ignores results and traps. */
function use({ exports }: Instance, face: ModuleInterface, imports: SilencedImports): void {
  imports.silent = true;
  try {
    for (const { name, kind, index } of face.exports) {
      if (kind !== "func") continue;
      const args = face.functions[index].params.map((type) => type === "i64" ? 7n : type.length === 3 ? 7 : null);
      try {
        (exports[name] as WasmFunction)(...args);
      } catch (error) {
        if (error instanceof Bug) throw error;
      }
    }
  } finally {
    imports.silent = false;
  }
}

// ---- asynchronous calls ---------------------------------------------------------------------------------------------

async function compareAsync(
  bytes: Binary,
  seed: number,
  options: readonly EngineOptions[],
): Promise<ScenarioResult> {
  const modules = [bytes];
  const differences: Difference[] = [];
  let expected: Awaited<ReturnType<typeof runAsync>>;
  try {
    expected = await runAsync(bytes, seed, ASYNC_V8);
  } catch (error) {
    if (!(error instanceof UnknownInterface)) throw error;
    return { ...UNCOMPARED, modules, unsupported: true, reached: 0 };
  }
  let depthOnly = false;
  for (const option of options) {
    try {
      const actual = await runAsync(bytes, seed, asyncWaft(option));
      const at = expected.entries.findIndex((entry, i) => !sameEnd(entry, actual.entries[i] ?? "(nothing)"));
      if (expected.exhausted || actual.exhausted) depthOnly = true;
      else if (at >= 0 || expected.entries.length !== actual.entries.length) {
        const place = at < 0 ? expected.entries.length : at;
        const before = expected.entries.slice(Math.max(0, place - 4), place).join("\n  ");
        const text = `  ${before}\n  V8:   ${expected.entries[place]}\n  waft: ${actual.entries[place]}`;
        differences.push({ options: option, text });
      }
    } catch (error) {
      if (error instanceof UnsupportedError) return { ...UNCOMPARED, modules, unsupported: true, reached: 0 };
      differences.push({ options: option, text: `escaped: ${(error as Error).stack ?? error}` });
    }
  }
  const calls = expected.entries.filter((entry) => entry.startsWith("call ")).length;
  const traps = expected.entries.filter((entry) => entry.startsWith("trap ")).length;
  return { ...UNCOMPARED, modules, differences, calls, traps, depthOnly, reached: expected.suspended };
}
