/**
 * The command lines of the tasks in deno.json, read in one way. In: what a task takes, as a table, and its arguments. Out: its values and operands; for
 * `--help` the usage on standard output and status 0; for whatever is not in the table one line on standard error and status 2.
 */
import process from "node:process";
import { parseArgs } from "node:util";

/** An option: a switch, unless it has a value. */
export interface TaskOption {
  readonly help: string;
  /** What its value is called. */
  readonly value?: string;
  /** The value when it is not given. */
  readonly default?: string;
  /** It may be given several times. */
  readonly many?: true;
  /** The script gives it to itself: it is not in the usage. */
  readonly hidden?: true;
}

type TaskOptions = Readonly<Record<string, TaskOption>>;

/** What a task takes. */
export interface Task<Options extends TaskOptions = TaskOptions> {
  /** What follows `deno`: `task fuzz`, or `run -A` and a script. */
  readonly name: string;
  /** What it does, in a sentence or two. */
  readonly about: string;
  /** `FILE [FUNC]`, `[FILTER…]`; none are taken when this is left out. */
  readonly operands?: string;
  readonly options: Options;
}

/** An option's value: of a switch whether it is there, else its text, or a list of texts. */
type Value<Option extends TaskOption> = Option extends { many: true } ? string[]
  : Option extends { value: string; default: string } ? string
  : Option extends { value: string } ? string | undefined
  : boolean;

/** What was given. */
export interface TaskLine<Options extends TaskOptions> {
  readonly values: { readonly [Name in keyof Options]: Value<Options[Name]> };
  readonly operands: readonly string[];
}

const WIDTH = 100;

/** Reads the arguments of a task; ends the process for help and for mistakes. */
export function readTaskLine<const Options extends TaskOptions>(
  task: Task<Options>,
  args: readonly string[] = process.argv.slice(2),
): TaskLine<Options> {
  const rows: [string, TaskOption][] = Object.entries({ ...task.options, help: { help: "show this" } });
  const options = Object.fromEntries(rows.map(([name, { value, many }]) => [name, {
    type: value === undefined ? "boolean" as const : "string" as const,
    ...(many === true ? { multiple: true } : {}),
    ...(name === "help" ? { short: "h" } : {}),
  }]));
  let read: { values: Record<string, unknown>; positionals: string[] };
  try {
    read = parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    const [what] = (error as Error).message.split(/\. |\n/);
    wrongUsage(task, what!);
  }
  const { values, positionals } = read;
  if (values["help"] === true) {
    console.log(usageOf(task));
    process.exit(0);
  }
  const words = (task.operands ?? "").split(" ").filter((word) => word !== "");
  const least = words.filter((word) => !word.startsWith("[")).length;
  const most = words.some((word) => word.includes("…")) ? Infinity : words.length;
  if (positionals.length < least) wrongUsage(task, `${words[positionals.length]} is missing`);
  if (positionals.length > most) wrongUsage(task, `Unexpected argument '${positionals[most]}'`);
  for (const [name, { value, many, default: usual }] of rows) {
    values[name] ??= value === undefined ? false : many === true ? [] : usual;
  }
  return { values: { ...values } as TaskLine<Options>["values"], operands: positionals };
}

/** Ends the process: the arguments are not what the task takes. */
export function wrongUsage(task: Task, message: string): never {
  console.error(`deno ${task.name}: ${message}; --help shows what it takes`);
  process.exit(2);
}

/** The whole number that a text is; ends the process unless it is one, and at least `least`. */
export function wholeNumber(task: Task, what: string, text: string, least = 0): number {
  const number = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(number) || number < least) {
    wrongUsage(task, `${what} is a whole number${least === 0 ? "" : ` of at least ${least}`}, not '${text}'`);
  }
  return number;
}

/** One of some words; ends the process for any other. */
export function oneOf<const Word extends string>(task: Task, what: string, text: string, words: readonly Word[]): Word {
  const found = words.find((word) => word === text);
  return found ?? wrongUsage(task, `${what} is one of ${words.join(", ")}, not '${text}'`);
}

/** The text for `--help`. */
export function usageOf(task: Task): string {
  const rows = Object.entries(task.options).filter(([, { hidden }]) => hidden !== true).map(([name, option]) => {
    const usual = option.default === undefined || option.default === "" ? "" : ` (${option.default})`;
    return [`  --${name}${option.value === undefined ? "" : ` ${option.value}`}`, option.help + usual] as const;
  });
  const width = Math.max(0, ...rows.map(([left]) => left.length)) + 2;
  const line = `usage: deno ${task.name}${rows.length > 0 ? " [options]" : ""}`;
  return [
    task.operands === undefined ? line : `${line} ${task.operands}`,
    "",
    ...wrapped(task.about, WIDTH),
    ...(rows.length > 0 ? [""] : []),
    ...rows.flatMap(([left, right]) =>
      wrapped(right, WIDTH - width).map((text, i) => (i === 0 ? left : "").padEnd(width) + text)
    ),
  ].join("\n");
}

function wrapped(text: string, width: number): string[] {
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines.at(-1)!;
    if (last !== "" && last.length + word.length >= width) lines.push(word);
    else lines[lines.length - 1] = last === "" ? word : `${last} ${word}`;
  }
  return lines;
}
