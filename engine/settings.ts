/**
 * What an engine is told: options as embedders write them, and the settings that they come to, with every default. In: options. Out: settings, which
 * compiling, loading and instantiating go by. Nothing of the compiler is needed for it.
 */
import type { CacheOptions } from "./cache/code_cache.ts";
import { requireBoolean, requireKnownNames, requireRecord, unknownName, wholeNumber } from "./base/arguments.ts";
import { type FeatureName, type FeatureSet, featureSet } from "./features.ts";
import { type OptimizationName, type OptimizationSet, optimizationSet } from "./optimizations.ts";
import type { ControlContext } from "./runtime/suspension/call_limits.ts";
import { DEFAULT_LIMITS, type InstanceLimits } from "./runtime/instance/instantiate.ts";

/** The compilers that an engine uses: one of two, or both in turn. */
export type Tiering = "auto" | "baseline" | "optimizing";

/** All values of the option `tier`. */
export const TIERINGS: readonly Tiering[] = ["auto", "baseline", "optimizing"];

/** How an engine compiles; every field has a default. */
export interface EngineOptions {
  /** Feature switches over the defaults of the feature table. Proposals such as `wide-arithmetic` are off by default. */
  features?: Partial<Record<FeatureName, boolean>>;
  /** Optimization switches over their defaults. */
  optimizations?: Partial<Record<OptimizationName, boolean>>;
  /**
   * How accesses to 32-bit memories are kept in bounds: `guard` (8 GiB of address space per memory, no checks in code) or `explicit` (a
   * compare per access, little address space: for very many instances). Default `auto`: guard while there is address space for it; a module
   * with memories is compiled for `explicit` too when there is none left, or from some thousands of live memories on.
   */
  bounds?: "guard" | "explicit" | "auto";
  /**
   * Which compiler makes the code. `optimizing`: the code that runs fastest, compiled before `compile` returns. `baseline`:
   * one quick pass, for code that runs at about half that speed. `auto`: baseline code first; once the module has run for a
   * few milliseconds, a helper thread compiles it with the optimizing compiler, and the running program is switched over.
   * Results do not depend on it. `serialize` and `share` always use optimized code. Fuel, deterministic code, arm64, and
   * bodies that the baseline tier does not cover use the optimizing compiler. Default `optimizing`.
   */
  tier?: Tiering;
  /**
   * Compile code that a deadline can stop: it polls at loop headers and in functions that call. Default false; a context with a
   * deadline is refused by instances whose code, or the code they import, does not poll.
   */
  interruptible?: boolean;
  /**
   * Compile code that charges fuel (fuel_prices.ts: one price per instruction of WebAssembly). Default false; a context with fuel is
   * refused by instances whose code, or the code they import, does not charge.
   */
  fuel?: boolean;
  /**
   * Leave nothing to the machine, the compiler or chance: NaNs that arithmetic makes are the positive canonical one, the depth of calls is
   * limited by a count of the instructions' own units (the limit maxStackBytes, whatever frames of machine code need), memories and tables
   * fail to grow by limits only (where the system has no more, the call ends with a RangeError), relaxed instructions have the one result
   * that they always have here, and modules with shared memories are refused. The same module gives the same results, traps and fuel
   * everywhere. Default false.
   */
  deterministic?: boolean;
  /** Limits of instances and of their number, enforced always; these are over the defaults. */
  limits?: EngineLimits;
  /**
   * A folder for compiled modules: what was compiled before, from the same bytes with the same options, is loaded from there. It must be the
   * user's own, since it holds machine code (cache/code_cache.ts); what is damaged in it is compiled again. Default: none.
   */
  cache?: CacheOptions;
  /**
   * Name the functions of all modules in `/tmp/perf-PID.map`, where `perf report` looks for them. Default false. Throws an Error while
   * compiling when the file cannot be written.
   */
  perfMap?: boolean;
  /**
   * How many threads may compile a big module (of a megabyte or more), this one included; `auto`: half as many as there are processors, at most
   * eight, since a new thread needs as much again for optimizing its own code. The other threads are Workers, which are kept for the next module for ten seconds and do not keep the process alive; `compile` waits
   * for them as for itself. The code is the same, whatever the number. Default 1.
   */
  parallel?: number | "auto";
  /**
   * With `tier: "auto"`, switches each module over after this many calls, compiled on this thread, instead of by time; for
   * tests.
   */
  tierUpCalls?: number;
  /** Check the compiler's own work (IR and register allocation) while compiling; slow, for tests. */
  verify?: boolean;
}

/** What a call or an instantiation is subject to; `instantiate` runs the start function under it. */
export interface Context extends ControlContext {
  /** Limits of the instance that is made, over the engine's; only read by `instantiate`. */
  limits?: InstanceLimits;
}

/** Limits that an engine sets for its modules: of each instance, and of how many there are. */
export interface EngineLimits extends InstanceLimits {
  /** The most instances that are alive and not closed in this JavaScript realm. Default 100,000. */
  maxInstances?: number;
}

const DEFAULT_MAX_INSTANCES = 100_000;

/** `limits` over `defaults`; throws RangeError for what is no limit. */
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

/** Refuses a limit of the stack that code without `stack-fence` does not keep. */
export function requireStackFence(optimizations: OptimizationSet, { maxStackBytes }: InstanceLimits): void {
  if (maxStackBytes !== DEFAULT_LIMITS.maxStackBytes && !optimizations["stack-fence"]) {
    throw new TypeError("The limit maxStackBytes needs the optimization stack-fence");
  }
}

/** Options with every default: what decides an engine's code, and the limits of its instances. */
export interface Settings {
  /** Which features of WebAssembly modules may use. */
  readonly features: FeatureSet;
  /** Which optimizations are made. */
  readonly optimizations: OptimizationSet;
  /** How accesses to memories are kept in bounds. */
  readonly bounds: "guard" | "explicit" | "auto";
  /** Which compiler makes the code. */
  readonly tier: Tiering;
  /** Does code poll? */
  readonly interruptible: boolean;
  /** Does code charge fuel? */
  readonly fuel: boolean;
  /** Does code depend on the module alone? */
  readonly deterministic: boolean;
  /** Limits of instances, defaults included. */
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
  deterministic: true,
  limits: true,
  cache: true,
  perfMap: true,
  parallel: true,
  verify: true,
  tierUpCalls: true,
};

/** Options that are switched by true or false. */
const SWITCHES = ["interruptible", "fuel", "deterministic", "perfMap", "verify"] as const;

/** Refuses unknown names, and values of switches that are neither true nor false. */
function requireSwitches(what: string, given: object, known: object): void {
  requireRecord(given, `The option ${what}s`);
  requireKnownNames(what, given, known);
  for (const [name, value] of Object.entries(given)) requireBoolean(value, `The ${what} ${name}`);
}

/**
 * The settings that `options` come to. Throws TypeError for names that there are not and for what excludes each other, RangeError for what is no
 * limit.
 */
export function settingsOf(options: EngineOptions): Settings {
  requireRecord(options, "The options of an engine");
  requireKnownNames("option", options, OPTION_NAMES);
  for (const name of SWITCHES) requireBoolean(options[name], `The option ${name}`);
  const deterministic = options.deterministic ?? false;
  if (deterministic && options.features?.threads === true) {
    throw new TypeError(
      "Threads are not deterministic: the options deterministic and features.threads exclude each other",
    );
  }
  const settings: Settings = {
    features: featureSet(deterministic ? { ...options.features, threads: false } : options.features),
    optimizations: optimizationSet(
      deterministic ? { ...options.optimizations, "stack-fence": true } : options.optimizations,
    ),
    bounds: options.bounds ?? "auto",
    tier: options.tier ?? "optimizing",
    interruptible: options.interruptible ?? false,
    fuel: options.fuel ?? false,
    deterministic,
    limits: completeLimits({ ...DEFAULT_LIMITS, maxInstances: DEFAULT_MAX_INSTANCES }, options.limits),
  };
  requireSwitches("feature", options.features ?? {}, settings.features);
  requireSwitches("optimization", options.optimizations ?? {}, settings.optimizations);
  if (!["guard", "explicit", "auto"].includes(settings.bounds)) {
    throw new TypeError(`The option bounds is guard, explicit or auto, not ${String(settings.bounds)}`);
  }
  if (!TIERINGS.includes(settings.tier)) {
    throw new TypeError(`The option tier is ${TIERINGS.join(" or ")}, not ${String(settings.tier)}`);
  }
  requireStackFence(settings.optimizations, settings.limits);
  return settings;
}
