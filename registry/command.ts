/**
 * The command `registry`, with its actions. In: the program. Out: the program with the command. `waft registry` and
 * `deno task registry` run it.
 */
import { isSingleExecutable } from "@waft/engine/internal/host/process";
import type { Command } from "commander";
import { UsageError } from "../project/base/failure.ts";
import { addRegistryCommand } from "./command_tree.ts";

/** Adds the command. */
export function addCommand(program: Command): void {
  addRegistryCommand(program, () => {
    if (isSingleExecutable()) {
      throw new UsageError(
        "waft registry needs the files of its site, which a single executable does not contain; " +
          "run it with an installed waft or the npm package",
      );
    }
    return import("./administration.ts");
  });
}
