/**
 * `waft outdated`: the project's plugins of which there are newer versions.
 */
import type { Command } from "commander";
import { EXIT } from "../base/diagnostic.ts";
import { addGlobalOptions, type GlobalFlags, runCommand } from "./project_command.ts";

interface OutdatedFlags extends GlobalFlags {
  readonly detailedExitcode?: boolean;
}

/** Adds `outdated`. */
export function addCommand(program: Command): void {
  const command = program.command("outdated")
    .description("Show the plugins of which there are newer versions, within their ranges and outside.")
    .option("--detailed-exitcode", "Exit with 10 when there are any");
  addGlobalOptions(command).action((flags: OutdatedFlags) =>
    runCommand("outdated", flags, async (env) => {
      const [{ outdatedPlugins }, { layoutTable }] = await Promise.all([
        import("../ops/tree.ts"),
        import("../base/terminal.ts"),
      ]);
      const plugins = await outdatedPlugins(await env.context(), await env.root());
      const rows = plugins.map((p) => [p.id, p.current, p.wanted, p.latest, p.requiredBy.join(", ")]);
      const table = layoutTable([["PLUGIN", "CURRENT", "IN RANGE", "NEWEST", "REQUIRED BY"], ...rows], env.columns);
      return {
        data: { plugins },
        text: plugins.length === 0 ? "Every plugin is the newest." : table.join("\n"),
        ...(plugins.length > 0 && flags.detailedExitcode === true ? { exitCode: EXIT.pending } : {}),
      };
    })
  );
}
