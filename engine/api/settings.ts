/**
 * Engine options and settings. In: options as embedders write them. Out: settings with all defaults, which compilation,
 * loading and instantiation use. Invariant: this file loads no part of the compiler.
 */
import type { CacheOptions } from "../cache/code_cache.ts";
import {
  inWords,
  requireBoolean,
  requireKnownNames,
  requireRecord,
  unknownName,
  wholeNumber,
} from "../base/arguments.ts";
import type { CompilationReport } from "./compilation_report.ts";
import { type FeatureName, type FeatureSet, featureSet } from "../settings/features.ts";
import { hostArchitecture } from "../host/cpu.ts";
import { type ChosenSettings, chosenSettings, STACK_RULES, type StackRule } from "../settings/code_settings.ts";
import { NAN_RULES, type NanRule } from "../settings/nans.ts";
import { type OptimizationName, type OptimizationSet, optimizationSet } from "../settings/optimizations.ts";
import type { ControlContext } from "../runtime/suspension/call_limits.ts";
import { DEFAULT_LIMITS, type InstanceLimits } from "../runtime/instance/instantiate.ts";

/** The compiler tiers that an engine uses: one of the two, or both in turn. */
export type Tiering = "auto" | "baseline" | "optimizing";

/** All values of the option `tier`. */
export const TIERINGS: readonly Tiering[] = ["auto", "baseline", "optimizing"];

/** The options of an engine; every field has a default. */
export interface EngineOptions {
  /**
   * Enables or disables WebAssembly features by name. Default: the defaults of FEATURE_ROWS and of
   * PROPOSAL_ROWS.
   */
  features?: Partial<Record<FeatureName, boolean>>;
  /** Enables or disables optimizations by key (OPTIMIZATION_ROWS). Default: the defaults of the rows. */
  optimizations?: Partial<Record<OptimizationName, boolean>>;
  /**
   * Bounds checking of 32-bit memories: `guard` (guard pages: 8 GiB of address space per memory, no checks in the code)
   * or `explicit` (a compare per access, little address space: for very many instances). Default: `auto`, which uses
   * guard pages as long as there is address space for them. A module with memories is compiled again for `explicit`
   * when the address space is exhausted, or when some thousands of memories are alive.
   */
  bounds?: "guard" | "explicit" | "auto";
  /**
   * The compiler tiers. `optimizing`: the fastest code, compiled before `compile` returns. `baseline`: compiled in a
   * single pass; the code runs at about 0.7 of that speed. `auto`: baseline code first; once the module has run for a
   * while, a helper thread compiles it with the optimizing compiler, and the running program switches to that code.
   * With a `cache`, a module that an earlier process has compiled, too, is compiled with the optimizing compiler at
   * once. Results do not depend on the tier. `serialize` and `share` always use optimized code. Bodies that exceed the
   * baseline compiler's memory are left to the optimizing compiler. Default: `auto`; `optimizing` with `deterministic`
   * or `verify`.
   */
  tier?: Tiering;
  /**
   * Compiles code that a deadline can interrupt: it polls at loop headers and in functions with calls. Without it,
   * calls with a deadline are refused by the instance and by those that import from it. Default: false.
   */
  interruptible?: boolean;
  /**
   * Compiles code that charges fuel, a fixed price per WebAssembly instruction (translate/fuel_prices.ts). Without it,
   * calls with fuel are refused by the instance and by those that import from it. Default: false.
   */
  fuel?: boolean;
  /**
   * Prices in fuel, from 0 to 254, by names of instructions (`i32.div_s`) and of groups: `all`, `variables`, `loads`,
   * `stores`, `branches`, `calls`, `divisions`, `floats`, `vectors`, `atomics`, `objects`, `bulk`, `growth`,
   * `exceptions`. The price of an instruction counts before that of its group, and that of a later group before that of
   * an earlier one. What bulk instructions and WASI charge for lengths stays the same. Requires `fuel`. Default: the
   * prices in translate/fuel_prices.ts.
   */
  fuelPrices?: Readonly<Record<string, number>>;
  /**
   * Compiles code whose results, traps and fuel are the same everywhere: arithmetic produces NaNs as `nans` says; the
   * call depth is limited by a count in abstract units (the limit maxStackBytes, independent of machine frames);
   * memories and tables fail to grow only by their limits (if the system has less memory, the call ends with a
   * RangeError); relaxed instructions have one fixed result; and modules with shared memories are refused.
   * Default: false.
   */
  deterministic?: boolean;
  /**
   * The NaNs of code that is `deterministic`. `canonical`: only the positive canonical NaN, which costs a test wherever
   * a NaN may become visible. `x64`, `arm64`: those that the processor makes; code for the other one imitates them, is
   * slow where it computes with floats, and is always optimized code. `processor`: those of this machine's processor,
   * at no cost. Default: `canonical`.
   */
  nans?: NanRule | "processor";
  /**
   * How code that is `deterministic` limits the depth of calls. `counted`: by a count, the same on every machine; calls
   * in cycles take 1 to 25 % longer. `native`: by its machine frames, as other code, at no cost; where the stack is
   * exhausted then depends on the machine, but a recording has the place and a replay repeats it. Modules with tail
   * calls always count. Requires another tier than `auto`. Default: `counted`.
   */
  stack?: "counted" | "native";
  /** Limits of instances and of their number, always enforced. Default: the defaults of the fields. */
  limits?: EngineLimits;
  /**
   * A cache of compiled modules in a directory: a module compiled earlier from the same bytes with the same options is
   * loaded from there. The directory must be private to the user, because it contains machine code
   * (cache/code_cache.ts). Damaged entries are compiled again. Default: none.
   */
  cache?: CacheOptions;
  /**
   * Names the functions of all modules in `/tmp/perf-PID.map` for `perf report`. Compiling throws an Error if the file
   * cannot be written. Default: false.
   */
  perfMap?: boolean;
  /**
   * The number of threads that may compile a large module (a megabyte or more), the calling one included; `auto` is
   * half the number of processors, at most eight, because V8 must tier up the compiler again in each worker. The other
   * threads are workers, which are kept for ten seconds for the next module and do not keep the process alive;
   * `compile` blocks until they are done. The code does not depend on the number. Default: 1.
   */
  parallel?: number | "auto";
  /**
   * Called while `compile` and `compileFor` compile with the optimizing compiler, after each function, with the number
   * of functions that are compiled and of all: to show progress. Default: none.
   */
  progress?: (done: number, total: number) => void;
  /**
   * Called after each compilation, also by a helper thread, and after loading from the cache, with a report of the
   * compiler of each function. Compiling one function at a time for it is slower. Default: none.
   */
  explain?: (report: CompilationReport) => void;
  /**
   * With `tier: "auto"`: the number of calls after which a module is compiled on this thread and switched over, instead
   * of after a time; for tests.
   */
  tierUpCalls?: number;
  /**
   * The same for iterations of loops: the module is switched over after that many; after each multiple of them, the
   * frame that runs continues in optimized code at the header of its loop; for tests on x64.
   */
  tierUpIterations?: number;
  /**
   * With one of both: every second function of a module is compiled and switched over first, the whole module when as
   * many calls or iterations have passed again; for tests.
   *
   * @internal
   */
  tierUpBatches?: boolean;
  /**
   * With the tier `auto`: the size in bytes of a module's bodies from which on they are compiled when they are called.
   * For tests.
   *
   * @internal
   */
  lazyFrom?: number;
  /**
   * `"code"`: reads the machine code of each module before it is placed in memory, and throws UnprovenCodeError unless
   * every function is proven to stay in its sandbox (docs/security.md), if need be with all bounds checks or the
   * other tier. `tier` cannot be `auto`, `load` and `loadFile` are refused, and `cache` is not read or written.
   * `true`: verifies the IR and the register allocation while compiling; slow, for tests. Default: false.
   */
  verify?: boolean | "code";
}

/** The context of a call or an instantiation: its limits. `instantiate` runs the start function under it. */
export interface Context extends ControlContext {
  /** Limits of the new instance, which override those of the engine; read only by `instantiate`. */
  limits?: InstanceLimits;
}

/** Limits that an engine sets for its modules: of each instance, and of the number of instances. */
export interface EngineLimits extends InstanceLimits {
  /** Maximum number of instances in this JavaScript realm that are alive and not closed. Default: 100,000. */
  maxInstances?: number;
}

const DEFAULT_MAX_INSTANCES = 100_000;

/**
 * Returns `limits` with missing fields from `defaults`. Throws TypeError for unknown names, RangeError for values that
 * are not non-negative integers.
 */
export function completeLimits<Limits extends object>(defaults: Limits, limits: Partial<Limits> = {}): Limits {
  requireRecord(limits, "Limits");
  const known = { ...defaults } as Record<string, unknown>;
  for (const [name, value] of Object.entries(limits)) {
    if (value === undefined) continue;
    if (!Object.hasOwn(defaults, name)) throw unknownName("limit", name, Object.keys(defaults));
    known[name] = wholeNumber(value, `The limit ${name}`);
  }
  return known as Limits;
}

/** Throws TypeError for a stack limit that code without `stack-fence` does not enforce. */
export function requireStackFence(optimizations: OptimizationSet, { maxStackBytes }: InstanceLimits): void {
  if (maxStackBytes !== DEFAULT_LIMITS.maxStackBytes && !optimizations["stack-fence"]) {
    throw new TypeError("The limit maxStackBytes requires the optimization stack-fence");
  }
}

/** Options with all defaults: they determine the code of an engine and the limits of its instances. */
export interface Settings extends ChosenSettings {
  /** The WebAssembly features that modules may use. */
  readonly features: FeatureSet;
  /** The enabled optimizations. */
  readonly optimizations: OptimizationSet;
  /** Bounds checking of 32-bit memories. */
  readonly bounds: "guard" | "explicit" | "auto";
  /** The compiler tiers. */
  readonly tier: Tiering;
  /** The limits of instances, defaults included. */
  readonly limits: Required<EngineLimits>;
}

/** The names of all options. */
const OPTION_NAMES: Record<keyof EngineOptions, true> = {
  features: true,
  optimizations: true,
  bounds: true,
  tier: true,
  interruptible: true,
  fuel: true,
  fuelPrices: true,
  deterministic: true,
  nans: true,
  stack: true,
  limits: true,
  cache: true,
  perfMap: true,
  parallel: true,
  verify: true,
  tierUpCalls: true,
  tierUpIterations: true,
  tierUpBatches: true,
  lazyFrom: true,
  explain: true,
  progress: true,
};

/** The boolean options. */
const SWITCHES = ["interruptible", "fuel", "deterministic", "perfMap"] as const;

/** Throws TypeError for unknown names and for values that are not booleans. */
function requireSwitches(what: string, given: object, known: object): void {
  requireRecord(given, `The option ${what}s`);
  requireKnownNames(what, given, known);
  for (const [name, value] of Object.entries(given)) requireBoolean(value, `The ${what} ${name}`);
}

/** Throws TypeError for settings with code that cannot be verified. */
function requireVerifiable({ tier, optimizations }: Settings): void {
  if (tier === "auto") {
    throw new TypeError(
      'The option verify: "code" needs tier optimizing or baseline: auto makes code in the background',
    );
  }
  if (!optimizations["stack-fence"]) {
    throw new TypeError('The option verify: "code" needs the optimization stack-fence');
  }
}

/**
 * Throws TypeError if an engine with these options loads no artifacts: their thunks and tables, which are not verified,
 * come from the author.
 */
export function requireLoading({ verify }: Pick<EngineOptions, "verify">): void {
  if (verify !== "code") return;
  throw new TypeError('An engine with the option verify: "code" loads no artifacts: compile the module');
}

/** The option `nans`. Throws TypeError for unknown rules, and for a rule without `deterministic`. */
function nanRule({ nans = "canonical" }: EngineOptions, deterministic: boolean): NanRule {
  const rule = nans === "processor" ? hostArchitecture() : nans;
  if (!NAN_RULES.includes(rule)) {
    throw new TypeError(`The option nans must be ${NAN_RULES.join(", ")} or processor, not ${inWords(rule)}`);
  }
  if (rule !== "canonical" && !deterministic) throw new TypeError("The option nans requires the option deterministic");
  return rule;
}

/** Prices are at most this, so that the price of a region is below 2^31. */
const MAX_FUEL_PRICE = 254;

/** The option `fuelPrices` as text, whose names the compiler checks. Throws TypeError without `fuel`. */
function fuelPrices({ fuel, fuelPrices: prices = {} }: EngineOptions): string {
  requireRecord(prices, "The option fuelPrices");
  const entries = Object.entries(prices).filter(([, price]) => price !== undefined).sort(([a], [b]) => a < b ? -1 : 1);
  for (const [name] of entries) {
    if (/[=,]/.test(name)) throw unknownName("group or instruction of fuelPrices", name, []);
  }
  if (entries.length > 0 && fuel !== true) throw new TypeError("The option fuelPrices requires the option fuel");
  return entries.map(([name, price]) => `${name}=${wholeNumber(price, `The price of ${name}`, MAX_FUEL_PRICE)}`).join();
}

/**
 * The option `stack`. Throws TypeError for unknown rules, and for `native` where machine frames are not a function of
 * the calls: code of tier `auto` is replaced while it runs.
 */
function stackRule(given: EngineOptions, deterministic: boolean): StackRule {
  const rule: StackRule = given.stack ?? "counted";
  if (![...STACK_RULES, "logged"].includes(rule)) {
    throw new TypeError(`The option stack must be ${STACK_RULES.join(" or ")}, not ${inWords(rule)}`);
  }
  if (rule === "counted") return rule;
  if (!deterministic) throw new TypeError("The option stack requires the option deterministic");
  if (given.tier === "auto") throw new TypeError('The option stack: "native" needs tier optimizing or baseline');
  return rule;
}

/**
 * Resolves `options` to settings. Throws TypeError for unknown names, invalid values and conflicting options,
 * RangeError for invalid limits.
 */
export function settingsOf(options: EngineOptions): Settings {
  requireRecord(options, "The options of an engine");
  requireKnownNames("option", options, OPTION_NAMES);
  for (const name of SWITCHES) requireBoolean(options[name], `The option ${name}`);
  if (![undefined, true, false, "code"].includes(options.verify)) {
    throw new TypeError(`The option verify must be true, false or "code", not ${inWords(options.verify)}`);
  }
  const deterministic = options.deterministic ?? false;
  if (deterministic && options.features?.threads === true) {
    throw new TypeError(
      "The options deterministic and features.threads exclude each other: threads are not deterministic",
    );
  }
  const verifies = options.verify !== undefined && options.verify !== false;
  const settings: Settings = {
    features: featureSet(deterministic ? { ...options.features, threads: false } : options.features),
    optimizations: optimizationSet(
      deterministic ? { ...options.optimizations, "stack-fence": true } : options.optimizations,
    ),
    bounds: options.bounds ?? "auto",
    tier: options.tier ?? (deterministic || verifies ? "optimizing" : "auto"),
    ...chosenSettings({
      ...options,
      fuelPrices: fuelPrices(options),
      nans: nanRule(options, deterministic),
      stack: stackRule(options, deterministic),
    }),
    limits: completeLimits({ ...DEFAULT_LIMITS, maxInstances: DEFAULT_MAX_INSTANCES }, options.limits),
  };
  requireSwitches("feature", options.features ?? {}, settings.features);
  requireSwitches("optimization", options.optimizations ?? {}, settings.optimizations);
  if (!["guard", "explicit", "auto"].includes(settings.bounds)) {
    throw new TypeError(`The option bounds must be guard, explicit or auto, not ${String(settings.bounds)}`);
  }
  if (!TIERINGS.includes(settings.tier)) {
    throw new TypeError(`The option tier must be ${TIERINGS.join(" or ")}, not ${String(settings.tier)}`);
  }
  requireStackFence(settings.optimizations, settings.limits);
  if (options.verify === "code") requireVerifiable(settings);
  return settings;
}
