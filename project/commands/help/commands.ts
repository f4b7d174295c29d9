/**
 * `waft commands`: all commands with their options, as a list, or with `--json` for programs that start waft.
 */
import type { Command } from "commander";
import type { CommandRow } from "../command_row.ts";
import { type CommandNode, commandTree } from "../command_tree.ts";
import { addGlobalOptions, type GlobalFlags, runCommand } from "../project/project_command.ts";

/** A command or sub-command by all its words, as `plugin list`. */
interface ListedCommand extends Omit<CommandNode, "name" | "children"> {
  readonly command: string;
}

/** Adds `commands`. */
export function addCommand(program: Command, rows: readonly CommandRow[] = []): void {
  const command = program.command("commands").description("List all commands with their options.");
  addGlobalOptions(command).action((flags: GlobalFlags) =>
    runCommand("commands", flags, async (env) => {
      const { layoutTable } = await import("../../base/terminal.ts");
      const commands = (await commandTree(rows)).flatMap((node) => listed(node, []));
      const table = commands.map(({ command, args, summary }) => [
        ["waft", command, ...args.map(({ term }) => term)].join(" "),
        summary,
      ]);
      return { data: { commands }, text: layoutTable(table, env.columns).join("\n") };
    })
  );
}

/** A command and those below it. */
function listed({ name, children, ...node }: CommandNode, before: readonly string[]): ListedCommand[] {
  const words = [...before, name];
  return [{ command: words.join(" "), ...node }, ...children.flatMap((child) => listed(child, words))];
}
