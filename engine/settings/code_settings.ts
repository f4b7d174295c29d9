/**
 * The settings that decide the machine code of a module, besides its bytes, the features, the optimizations, the
 * compiler and the processor: one row each. Made once (codeSettings), passed whole. In: options of embedders. Out: a
 * frozen value that compilation, the description of code, artifacts, jobs of other threads and the runtime share.
 *
 * A new setting is a field with a row here, and a bit of the mode if it is a switch. The context of code generation
 * (codegen/target.ts) has the field at once; translation and the baseline compiler read the bit (code_mode.ts).
 */
import { MODE } from "./code_mode.ts";
import { NAN_RULES, type NanRule } from "./nans.ts";

/**
 * How deterministic code limits the depth of calls. `counted`: a count that the bytes of the module decide, so that
 * every machine exhausts the stack at the same call. `native`: the stack pointer, as in other code; a recording has the
 * call at which the stack was exhausted. `logged`, for replays of such recordings: code counts activations, and calls
 * the runtime at depth THREAD.DEPTH_STOP.
 */
export type StackRule = "counted" | "native" | "logged";

/** The rules of the option `stack`; recordings have their indices. */
export const STACK_RULES = ["counted", "native"] as const satisfies readonly StackRule[];

/** The settings that decide the machine code of a module. */
export interface CodeSettings {
  /** Explicit bounds checks instead of guard pages. */
  readonly explicitBounds: boolean;
  /** Code polls for deadlines, at loop headers and in functions that call. */
  readonly interruptible: boolean;
  /** Code charges fuel for every region of instructions. */
  readonly fuel: boolean;
  /** The prices in fuel that differ from the defaults, as text: `call=10,i32.div_s=8` (wasm/fuel_groups.ts). */
  readonly fuelPrices: string;
  /** Code gives the same results on every machine: `nans` and `stack` say how. */
  readonly deterministic: boolean;
  /** The NaNs of deterministic code. */
  readonly nans: NanRule;
  /** How deterministic code limits the depth of calls. */
  readonly stack: StackRule;
}

/** The settings that an engine chooses for all of its modules: the bounds depend on the address space, too. */
export type ChosenSettings = Omit<CodeSettings, "explicitBounds">;

/** The values of a setting that can be any text. */
const TEXT = "text";

/** By setting: its value by default, and for settings of several values those that options can have. */
const ROWS: {
  readonly [K in keyof CodeSettings]: readonly [
    byDefault: CodeSettings[K],
    values?: ReadonlyArray<CodeSettings[K]> | typeof TEXT,
  ];
} = {
  explicitBounds: [false],
  interruptible: [false],
  fuel: [false],
  fuelPrices: ["", TEXT],
  deterministic: [false],
  nans: ["canonical", NAN_RULES],
  stack: ["counted", STACK_RULES],
};

/** The settings that are switches. */
type Switch = { [K in keyof CodeSettings]: CodeSettings[K] extends boolean ? K : never }[keyof CodeSettings];

/** By switch: its bit of the mode. */
const MODE_BITS: { readonly [K in Switch]: number } = {
  explicitBounds: MODE.EXPLICIT_BOUNDS,
  interruptible: MODE.INTERRUPTIBLE,
  fuel: MODE.FUEL,
  deterministic: MODE.DETERMINISTIC,
};

/** The bits of the mode (MODE) that `settings` decides. */
export function modeOf(settings: CodeSettings): number {
  let mode = settings.stack === "logged" ? MODE.LOGGED_STACK : 0;
  for (const [name, bit] of Object.entries(MODE_BITS)) if (settings[name as Switch]) mode |= bit;
  return mode;
}

const NAMES = Object.keys(ROWS) as (keyof CodeSettings)[];

/** The settings of `given`, which may have more fields, with defaults for those that are missing or undefined. */
export function codeSettings(
  given: { readonly [K in keyof CodeSettings]?: CodeSettings[K] | undefined } = {},
): CodeSettings {
  return Object.freeze(
    Object.fromEntries(NAMES.map((name) => [name, given[name] ?? ROWS[name][0]])),
  ) as unknown as CodeSettings;
}

/** The settings of `given` as `codeSettings` returns them, but for those that a module decides. */
export function chosenSettings(
  given: { readonly [K in keyof ChosenSettings]?: ChosenSettings[K] | undefined },
): ChosenSettings {
  const { explicitBounds: _, ...chosen } = codeSettings(given);
  return Object.freeze(chosen);
}

/** The names of the chosen settings that differ from their defaults, in the order of the rows: `fuel`, `nans.x64`. */
export function settingNames(settings: ChosenSettings): string[] {
  return NAMES.flatMap((name) => {
    if (name === "explicitBounds" || settings[name] === ROWS[name][0]) return [];
    return ROWS[name][1] === undefined ? [name] : [`${name}.${settings[name]}`];
  });
}

/** The settings of which `names` has the names (settingNames); names of others are ignored. */
export function settingsNamed(names: ReadonlySet<unknown>, explicitBounds: boolean): CodeSettings {
  const chosen = NAMES.map((name) => {
    const values: readonly unknown[] | typeof TEXT | undefined = ROWS[name][1];
    if (values === TEXT) return [name, textNamed(names, `${name}.`)];
    return [name, values === undefined ? names.has(name) : values.find((value) => names.has(`${name}.${value}`))];
  });
  return codeSettings({ ...Object.fromEntries(chosen), explicitBounds });
}

/** The rest of the name that begins with `prefix`; undefined if there is none. */
function textNamed(names: ReadonlySet<unknown>, prefix: string): string | undefined {
  for (const name of names) if (typeof name === "string" && name.startsWith(prefix)) return name.slice(prefix.length);
}
