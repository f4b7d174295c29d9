/**
 * WASI in groups that a project may remove from its guests.
 *
 * In: the groups that a lockfile's `guest.wasi` keeps (absent: all). Out: WASI's functions for a guest of that
 * project, and the arguments, variables and directories it may have. C libraries import more than programs use, so a
 * removed function remains importable: of preview 1, it returns "not capable", and a component that calls one ends with
 * an error that names it. A guest may always exit and yield.
 */
import { ERRNO, WASI_FUNCTIONS } from "@waft/engine/internal/wasi/abi";
import { asFunction } from "@waft/engine/internal/wasi/functions";
import { fail, quote } from "../base/diagnostic.ts";

/** A group, and the functions of preview 1 and the interfaces of components that belong to it alone. */
interface WasiGroup {
  readonly name: string;
  readonly meaning: string;
  readonly functions: readonly string[];
  /** Prefixes of the interfaces' names, in every version of WASI. */
  readonly interfaces: readonly string[];
}

/** The functions of preview 1 in a group. */
function functionsIn(name: string): string[] {
  return Object.entries(WASI_FUNCTIONS).flatMap(([fn, { group }]) => group === name ? [fn] : []);
}

/** All groups, sorted. `args`, `env` and `fs` remove the respective inputs, `stdio` the first three descriptors. */
export const WASI_GROUPS: readonly WasiGroup[] = [
  { name: "args", meaning: "the arguments of the program", functions: [], interfaces: [] },
  {
    name: "clock",
    meaning: "clocks and timers",
    functions: functionsIn("clock"),
    interfaces: ["wasi:clocks/"],
  },
  { name: "env", meaning: "the variables given with --env", functions: [], interfaces: [] },
  { name: "fs", meaning: "the directories given with --dir", functions: [], interfaces: [] },
  { name: "random", meaning: "random bytes", functions: functionsIn("random"), interfaces: ["wasi:random/"] },
  {
    name: "stdio",
    meaning: "standard input, output and error",
    functions: [],
    interfaces: ["wasi:cli/std", "wasi:cli/terminal-std"],
  },
];

/** The names of all groups. */
export const WASI_GROUP_NAMES: readonly string[] = WASI_GROUPS.map((group) => group.name);

/** Parses the value of `--wasi`: `all` (returns undefined), `none`, or names separated by commas. Throws usage.wasi. */
export function parseWasiGroups(text: string): string[] | undefined {
  if (text === "all") return undefined;
  const words = text === "none" ? [] : text.split(",");
  for (const word of words) {
    if (!WASI_GROUP_NAMES.includes(word)) {
      throw fail("usage.wasi", `--wasi: unknown group ${quote(word, 60)}`, {
        help: `all, none, or some of ${WASI_GROUP_NAMES.join(",")}`,
      });
    }
  }
  return [...new Set(words)].sort();
}

type WasiFunction = (...args: never[]) => unknown;
type WasiImports = Readonly<Record<string, WasiFunction>>;

/** WASI's functions in a project with these groups; {@linkcode narrowedStreams} removes the standard streams. */
export function narrowedWasi(imports: WasiImports, groups: readonly string[] | undefined): WasiImports {
  if (groups === undefined) return imports;
  const taken = new Set(WASI_GROUPS.filter((g) => !groups.includes(g.name)).flatMap((g) => g.functions));
  return Object.fromEntries(
    Object.entries(imports).map((
      [name, fn],
    ) => [name, taken.has(name) ? asFunction(name, () => ERRNO.notcapable) : fn]),
  );
}

/** Whether a guest of a project with these groups has standard streams. */
export function hasStreams(groups: readonly string[] | undefined): boolean {
  return groups === undefined || groups.includes("stdio");
}

/** WASI's option for the standard streams in a project with these groups: none of them, or `stdio`. */
export function narrowedStreams<Streams>(
  stdio: Streams | undefined,
  groups: readonly string[] | undefined,
): { stdio?: Streams | "none" } {
  if (!hasStreams(groups)) return { stdio: "none" };
  return stdio === undefined ? {} : { stdio };
}

/** The interfaces of WASI for components in a project with these groups. */
export function narrowedInterfaces(
  imports: Readonly<Record<string, unknown>>,
  groups: readonly string[] | undefined,
): Readonly<Record<string, unknown>> {
  if (groups === undefined) return imports;
  const removed = WASI_GROUPS.filter((group) => !groups.includes(group.name));
  return Object.fromEntries(
    Object.entries(imports).map(([name, functions]) => {
      const group = removed.find(({ interfaces }) => interfaces.some((start) => name.startsWith(start)));
      return [name, group === undefined ? functions : refusing(name, functions as object, group.name)];
    }),
  );
}

/** An interface whose functions refuse every call. Spreading keeps the types of its functions. */
function refusing(name: string, functions: object, group: string): object {
  const names = Object.keys(functions);
  const refuse = (): never => {
    throw notAllowed(`${name} (${group})`);
  };
  return { ...functions, ...Object.fromEntries(names.map((name) => [name, refuse])) };
}

function notAllowed(subject: string): Error {
  return fail("authority.wasi", `the project does not allow its guests ${subject}`, {
    file: "waft-lock.json",
    help: "allow it with `waft add --wasi <groups>`, or run with --bare",
  });
}

/** The inputs of a guest, reduced to those its project allows; refuses inputs that were requested explicitly. */
export function narrowedInputs<Preopen>(
  inputs: {
    readonly args: readonly string[];
    readonly env: readonly (readonly [string, string])[];
    readonly preopens: readonly Preopen[];
  },
  groups: readonly string[] | undefined,
): { args: string[]; env: [string, string][]; preopens: Preopen[] } {
  const may = (name: string): boolean => groups === undefined || groups.includes(name);
  const refused = [
    ...(inputs.preopens.length > 0 && !may("fs") ? ["--dir (fs)"] : []),
    ...(inputs.env.length > 0 && !may("env") ? ["--env (env)"] : []),
    ...(inputs.args.length > 1 && !may("args") ? ["arguments (args)"] : []),
  ];
  if (refused.length > 0) throw notAllowed(refused.join(", "));
  return {
    args: may("args") ? [...inputs.args] : [],
    env: inputs.env.map(([name, value]) => [name, value]),
    preopens: [...inputs.preopens],
  };
}
