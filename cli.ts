/**
 * The command `waft`. Finds the row of the named command, loads only that command's module, runs it, and turns any
 * thrown value into an error on stderr and an exit code. In: the command-line words. Out: an exit status.
 * Start-up time counts, so a plain `waft run` does not even load the option parser.
 */
import { exitProcess, programArguments } from "@waft/engine/internal/host/process";
import { exitStatus, report } from "./project/base/failure.ts";
import { fileStatus } from "./project/base/file_status.ts";
import { type CommandRow, COMMANDS, GROUP } from "./project/commands/table.ts";
import { lateImports } from "./project/base/late_import.ts";
import { VERSION } from "./project/base/version_string.ts";

const late = lateImports(import.meta.url);
const quickRun = late<typeof import("./project/commands/run/quick_run.ts")>("./project/commands/run/quick_run.ts");
const firstRun = late<typeof import("./project/commands/run/first_run.ts")>("./project/commands/run/first_run.ts");
const helpTexts = late<typeof import("./project/commands/help/help_texts.ts")>("./project/commands/help/help_texts.ts");
const helpLayout = late<typeof import("./project/commands/help/help_layout.ts")>(
  "./project/commands/help/help_layout.ts",
);

/** All commands: the project's, and those of units that do not know each other. */
const ROWS: readonly CommandRow[] = [
  ...COMMANDS,
  {
    name: "registry",
    group: GROUP.projects,
    summary: "Run a plugin registry with its site",
    load: late("./registry/command.ts"),
  },
];

/** The words that ask for help. */
const HELP_WORDS: readonly string[] = ["help", "-h", "--help"];

/** Runs `waft` with `args` (without the program's own name) and returns its exit status. */
export async function main(args: string[]): Promise<number> {
  const words = normalized(args);
  if (words[0] === "run") {
    const { runQuickly } = await quickRun();
    const quick = await runQuickly(words.slice(1));
    if (quick !== undefined) return quick;
    const { runFirst } = await firstRun();
    const first = await runFirst(words.slice(1));
    if (first !== undefined) return first;
  }
  return await runCommand(words);
}

/** `main` for programs that have tried the fast paths of `run` (scripts/package/release_bundle.ts). */
export async function mainAfterRun(args: string[]): Promise<number> {
  const words = normalized(args);
  return args[0] === "run" ? await runCommand(words) : await main(words);
}

/** The words in their long form: `FILE` is `run FILE`, `help A B` is `A B --help`, `-V` is `-v`. */
function normalized(args: readonly string[]): string[] {
  const [first, second, ...rest] = args;
  if (first === undefined) return [];
  if (first === "-V") return ["-v", ...args.slice(1)];
  if (first === "help" && second !== undefined && rest.length > 0) return [second, ...rest, "--help"];
  if (ROWS.some((row) => row.name === first) || first.startsWith("-") || first === "help") return [...args];
  return isFile(first) ? ["run", ...args] : [...args];
}

function isFile(path: string): boolean {
  try {
    return fileStatus(path)?.kind === "file";
  } catch {
    return false;
  }
}

/** The same through commander: for every other command, and for `run` with anything unusual. */
async function runCommand(args: string[]): Promise<number> {
  const { Command, CommanderError } = await import("commander");
  const { HELP_LAYOUT } = await helpLayout();
  const { default: process } = await import("node:process");
  const program = new Command("waft")
    .description("Compile and run WebAssembly, and manage projects and plugins.")
    .usage("[options] <command>\n       waft <file> [args...]")
    .version(VERSION, "-v, --version", "Print the version")
    .helpOption("-h, --help", "Show this help")
    .commandsGroup(GROUP.itself)
    .helpCommand("help [command...]", "Show help for a command")
    .showSuggestionAfterError(true)
    .enablePositionalOptions()
    .configureHelp(HELP_LAYOUT)
    .exitOverride();
  program.configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, "waft: ")) });
  const wanted = args.find((arg) => !arg.startsWith("-"));
  const named = wanted === "help" ? args[args.indexOf("help") + 1] : wanted;
  // Help for a command that does not exist is the mistake of naming it.
  if (wanted === "help" && named !== undefined && !["help", ...ROWS.map((row) => row.name)].includes(named)) {
    if (!named.startsWith("-")) args = [named];
  }
  for (const row of ROWS) {
    if (row.name === named) (await row.load()).addCommand(program, ROWS);
    else program.addCommand(new Command(row.name).description(row.summary).allowUnknownOption());
    program.commands.at(-1)?.helpGroup(row.group);
  }
  if (args.length < 2 || args.some((arg) => HELP_WORDS.includes(arg))) (await helpTexts()).addHelpTexts(program);
  try {
    if (args.length === 0) {
      program.outputHelp();
      return 2;
    }
    await program.parseAsync(args, { from: "user" });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    report(error);
    return exitStatus(error);
  }
}

export default main;

if (import.meta.main) await exitProcess(await main(programArguments()));
