/**
 * The command `registry`, with its actions. In: the program. Out: the program with the command. `waft registry` and
 * `deno task registry` run it.
 */
import type { Command } from "commander";
import { addRegistryCommand } from "./command_tree.ts";

/** Adds the command. */
export function addCommand(program: Command): void {
  addRegistryCommand(program, () => import("./administration.ts"));
}
