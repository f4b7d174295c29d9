/**
 * All commands as data, the source of completions and manual pages.
 *
 * In: the rows of the command table. Out: one node per command and sub-command, with options and arguments. The
 * nodes are read from the definitions that parse command lines, so the two cannot differ.
 */
import { Command } from "commander";
import type { CommandRow } from "./command_row.ts";

/** An option of a command. */
interface OptionNode {
  /** `--name`, and its short form if it has one. */
  readonly words: readonly string[];
  /** `<value>` or `[value]` as help shows it; absent for switches. */
  readonly value?: string;
  readonly description: string;
}

/** A command. */
export interface CommandNode {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly OptionNode[];
  /** As help shows them, such as `<file>`. */
  readonly args: readonly { readonly term: string; readonly description: string }[];
  readonly children: readonly CommandNode[];
}

/** Loads every command and returns their nodes, in the table's order. */
export async function commandTree(rows: readonly CommandRow[]): Promise<CommandNode[]> {
  const nodes: CommandNode[] = [];
  for (const row of rows) {
    const program = new Command("waft").enablePositionalOptions();
    (await row.load()).addCommand(program, rows);
    const command = program.commands.find((each) => each.name() === row.name);
    if (command !== undefined) nodes.push(nodeOf(command));
  }
  return nodes;
}

function nodeOf(command: Command): CommandNode {
  return {
    name: command.name(),
    summary: command.description(),
    options: [
      ...command.options.map((option) => {
        const value = /[<[].*$/.exec(option.flags)?.[0];
        return {
          words: [option.short, option.long].filter((word) => word !== undefined && word !== null),
          description: option.description,
          ...(value === undefined ? {} : { value }),
        };
      }),
      {
        // A command may use the short form for an option of its own.
        words: command.options.some(({ short }) => short === "-h") ? ["--help"] : ["-h", "--help"],
        description: "Show this help",
      },
    ],
    args: command.registeredArguments.map((arg) => {
      const name = `${arg.name()}${arg.variadic ? "..." : ""}`;
      return { term: arg.required ? `<${name}>` : `[${name}]`, description: arg.description };
    }),
    children: command.commands.map((child) => nodeOf(child)),
  };
}
