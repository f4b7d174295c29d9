/**
 * The commands of `waft`, one row each: name, summary for the help page, and how to load the command's module. A module adds
 * its command, with options, to the program; it is loaded only when the command is named, since start-up time counts.
 */
import type { Command } from "commander";
import { PROJECT_COMMANDS } from "./project_table.ts";

/** What a command's module exports. */
export interface CommandModule {
  addCommand(program: Command): void;
}

export interface CommandRow {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<CommandModule>;
}

export const COMMANDS: readonly CommandRow[] = [
  { name: "run", summary: "Compile a module and call one of its functions", load: () => import("./run.ts") },
  { name: "cache", summary: "Show or clear the cache of compiled modules", load: () => import("./cache.ts") },
  { name: "validate", summary: "Check modules without running them", load: () => import("./validate.ts") },
  { name: "parse", summary: "Translate a module's text to binary form", load: () => import("./parse.ts") },
  { name: "print", summary: "Print a module as text", load: () => import("./print.ts") },
  { name: "wast", summary: "Run WebAssembly test scripts", load: () => import("./wast.ts") },
  ...PROJECT_COMMANDS,
];
