/**
 * The command-line reader of all tasks in deno.json. In: the table of a task's options and its arguments. Out: values
 * and operands; for `--help` the usage on stdout and exit status 0; for any argument outside the table one line on
 * stderr and exit status 2.
 */
import process from "node:process";
import { parseArgs } from "node:util";

/** An option: a switch unless it has a value. */
interface TaskOption {
  readonly help: string;
  /** The placeholder for its value. */
  readonly value?: string;
  /** The value is a whole number of at least this. */
  readonly least?: number;
  /** The value is one of these words. */
  readonly words?: readonly string[];
  /** The default value. */
  readonly default?: string;
  /** The option is repeatable. */
  readonly many?: true;
  /** Internal: the script passes it to itself; the usage omits it. */
  readonly hidden?: true;
}

type TaskOptions = Readonly<Record<string, TaskOption>>;

/** The command line of a task. */
interface Task<Options extends TaskOptions = TaskOptions> {
  /** The words after `deno`: `task fuzz`, or `run -A` and a script. */
  readonly name: string;
  /** A description in one or two sentences. */
  readonly about: string;
  /** `FILE [FUNC]`, `[FILTER…]`; without it, no operands are accepted. */
  readonly operands?: string;
  readonly options: Options;
}

/** One given value of an option. */
type Single<Option extends TaskOption> = Option extends { least: number } ? number
  : Option extends { words: readonly (infer Word extends string)[] } ? Word
  : string;

/** The value of an option: a boolean for a switch, a list for a repeatable option. */
type Value<Option extends TaskOption> = Option extends { many: true } ? Single<Option>[]
  : Option extends { value: string; default: string } ? Single<Option>
  : Option extends { value: string } ? Single<Option> | undefined
  : boolean;

/** The parsed arguments. */
interface TaskLine<Options extends TaskOptions> {
  readonly values: { readonly [Name in keyof Options]: Value<Options[Name]> };
  readonly operands: readonly string[];
}

const WIDTH = 100;

/** Parses the arguments of a task; exits the process for help and for usage errors. */
export function readTaskLine<const Options extends TaskOptions>(
  task: Task<Options>,
  args: readonly string[] = process.argv.slice(2),
): TaskLine<Options> {
  const rows: [string, TaskOption][] = Object.entries({ ...task.options, help: { help: "show this help" } });
  const options = Object.fromEntries(rows.map(([name, { value, many }]) => [name, {
    type: value === undefined ? "boolean" as const : "string" as const,
    ...(many === true ? { multiple: true } : {}),
    ...(name === "help" ? { short: "h" } : {}),
  }]));
  let read: { values: Record<string, Given>; positionals: string[] };
  try {
    read = parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    const [problem] = (error as Error).message.split(/\. |\n/);
    wrongUsage(task, problem);
  }
  const { values, positionals } = read;
  if (values["help"] === true) {
    console.log(usageOf(task));
    process.exit(0);
  }
  const parsed = Object.fromEntries(rows.map(([name, row]) => [name, parseValue(task, name, row, values[name])]));
  const words = (task.operands ?? "").split(" ").filter((word) => word !== "");
  const least = words.filter((word) => !word.startsWith("[")).length;
  const most = words.some((word) => word.includes("…")) ? Infinity : words.length;
  if (positionals.length < least) wrongUsage(task, `${words[positionals.length]} is missing`);
  if (positionals.length > most) wrongUsage(task, `Unexpected argument '${positionals[most]}'`);
  return { values: parsed as TaskLine<Options>["values"], operands: positionals };
}

/** The value of an option in the form in which node:util returns it. */
type Given = string | boolean | (string | boolean)[] | undefined;

function parseValue(task: Task, name: string, { value, least, words, many, default: usual }: TaskOption, given: Given) {
  if (value === undefined) return given === true;
  const parse = (text: string | boolean) => {
    if (least !== undefined) return wholeNumber(task, `--${name}`, String(text), least);
    return words === undefined ? text : oneOf(task, `--${name}`, String(text), words);
  };
  if (many === true) return [given ?? []].flat().map(parse);
  const text = given ?? usual;
  return text === undefined || Array.isArray(text) ? undefined : parse(text);
}

/** Exits the process with a usage error. */
export function wrongUsage(task: Task, message: string): never {
  console.error(`deno ${task.name}: ${message}; see --help`);
  process.exit(2);
}

/** Parses a whole number; exits the process with a usage error if `text` is not one or is less than `least`. */
export function wholeNumber(task: Task, name: string, text: string, least = 0): number {
  const number = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(number) || number < least) {
    wrongUsage(task, `${name} takes a whole number${least === 0 ? "" : ` of at least ${least}`}, not '${text}'`);
  }
  return number;
}

/** Shows the progress of a long run on stderr if that is a terminal; an empty text clears it. */
export function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

/** Returns `text` if it is one of `words`; exits the process with a usage error otherwise. */
export function oneOf<const Word extends string>(task: Task, name: string, text: string, words: readonly Word[]): Word {
  const found = words.find((word) => word === text);
  return found ?? wrongUsage(task, `${name} takes one of ${words.join(", ")}, not '${text}'`);
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
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + word.length >= width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
