/**
 * Options of a command as rows with two readers: commander, for help, errors and unusual command lines, and
 * `readFlags`, for common command lines without loading anything. Invariant: commander parses every command line that
 * `readFlags` accepts to the same values.
 */
import type { Command } from "commander";

/** The definition of an option. */
export interface OptionRow {
  /** `--name`, `--name <value>`, or `--no-name` to switch off a default. */
  readonly flags: string;
  readonly description: string;
  /** Whether it may be given several times: its value is then a list, empty when it is not given. */
  readonly repeatable?: boolean;
}

/** Values by the options' names in camel case: text, lists of text, or true and false. */
type FlagValues = Record<string, string | string[] | boolean>;

function collect(value: string, list: string[]): string[] {
  return [...list, value];
}

/** Adds the options to a command. */
export function addOptions(command: Command, rows: readonly OptionRow[]): Command {
  for (const { flags, description, repeatable } of rows) {
    if (repeatable === true) command.option(flags, description, collect, []);
    else command.option(flags, description);
  }
  return command;
}

/** Parses a row's `flags`. */
function shapeOf(
  { flags, repeatable }: OptionRow,
): { word: string; key: string; takes: boolean; off: boolean; list: boolean } {
  const [word, value] = flags.split(" ") as [string, string?];
  const off = word.startsWith("--no-");
  const [first, ...others] = word.slice(off ? 5 : 2).split("-") as [string, ...string[]];
  const key = first + others.map((part) => part.slice(0, 1).toUpperCase() + part.slice(1)).join("");
  return { word, key, takes: value !== undefined, off, list: repeatable === true };
}

/**
 * The options before the first operand, that operand, and the words after it. Returns undefined for unknown options,
 * missing values, a missing operand and `--`.
 */
export function readFlags(
  rows: readonly OptionRow[],
  args: readonly string[],
): { flags: FlagValues; operand: string; rest: string[] } | undefined {
  const flags: FlagValues = {};
  const shapes = rows.map(shapeOf);
  for (const { key, off, list } of shapes) {
    if (list) flags[key] = [];
    else if (off) flags[key] = true;
  }
  for (let k = 0; k < args.length; k++) {
    const arg = args[k];
    if (!arg.startsWith("-")) return { flags, operand: arg, rest: args.slice(k + 1) };
    const equals = arg.indexOf("=");
    const word = equals < 0 ? arg : arg.slice(0, equals);
    const shape = shapes.find((s) => s.word === word);
    if (shape === undefined || (equals >= 0 && !shape.takes)) return undefined;
    const { key, takes, off, list } = shape;
    if (!takes) {
      flags[key] = !off;
      continue;
    }
    if (equals < 0 && ++k === args.length) return undefined;
    const value = equals < 0 ? args[k] : arg.slice(equals + 1);
    if (list) (flags[key] as string[]).push(value);
    else flags[key] = value;
  }
  return undefined;
}
