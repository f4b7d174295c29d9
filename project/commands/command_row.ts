/**
 * The row type of the command table, shared by the table and the commands that describe commands (help, completion,
 * manual pages). Types only.
 */
import type { Command } from "commander";

/** The exports of a command's module. */
export interface CommandModule {
  /** `rows` are all commands, for the command that describes them. */
  addCommand(program: Command, rows?: readonly CommandRow[]): void;
}

export interface CommandRow {
  readonly name: string;
  /** The heading below which help lists the command. */
  readonly group: string;
  readonly summary: string;
  readonly load: () => Promise<CommandModule>;
}
