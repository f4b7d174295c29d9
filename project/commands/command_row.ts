/**
 * The shape of a row of the command table. In: nothing. Out: types, which the table and the commands about commands share.
 */
import type { Command } from "commander";

/** What a command's module exports. */
export interface CommandModule {
  /** `rows` are all commands, for the command that describes them. */
  addCommand(program: Command, rows?: readonly CommandRow[]): void;
}

export interface CommandRow {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<CommandModule>;
}
