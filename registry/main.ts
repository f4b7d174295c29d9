/**
 * `deno task registry`: the command of command.ts on its own, with or without the word `serve`.
 *
 * Exit status: 0, 1 for a failure, 2 for wrong usage; never a stack trace.
 */
import { Command, CommanderError } from "commander";
import process from "node:process";
import { addCommand } from "./command.ts";

/** Runs the command; the exit status. */
export async function main(args: readonly string[]): Promise<number> {
  const program = new Command("deno task").exitOverride().enablePositionalOptions()
    .helpOption("-h, --help", "Show this help")
    .helpCommand("help [command]", "Show help for a command")
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, "registry: ")) });
  addCommand(program);
  try {
    await program.parseAsync(["registry", ...args], { from: "user" });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    process.stderr.write(`registry: ${(error as Error).message}\n`);
    return 1;
  }
}

if (import.meta.main) process.exit(await main(process.argv.slice(2)));
