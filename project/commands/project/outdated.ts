/**
 * `waft outdated`: the project's plugins of which there are newer versions.
 */
import type { Command } from "commander";
import { EXIT } from "../../base/diagnostic.ts";
import { addGlobalOptions, addUserOption, type GlobalFlags, runCommand } from "./project_command.ts";

interface OutdatedFlags extends GlobalFlags {
  readonly detailedExitcode?: boolean;
}

/** Lines of the release notes of each plugin that are shown. */
const NOTE_LINES = 10;

/** Adds `outdated`. */
export function addCommand(program: Command): void {
  const command = program.command("outdated")
    .description("Show plugins with newer versions, inside and outside their ranges.")
    .option("--detailed-exitcode", "Exit with status 10 if there are any");
  addGlobalOptions(addUserOption(command)).action((flags: OutdatedFlags) =>
    runCommand("outdated", flags, async (env) => {
      const [{ outdatedPlugins }, { layoutTable }, { notesLines }] = await Promise.all([
        import("../../ops/project/tree.ts"),
        import("../../base/terminal.ts"),
        import("./change_output.ts"),
      ]);
      const plugins = await outdatedPlugins(await env.context(), await env.root());
      const rows = plugins.map((p) => [p.id, p.current, p.wanted, p.latest, p.requiredBy.join(", ")]);
      const table = layoutTable([["PLUGIN", "CURRENT", "IN RANGE", "NEWEST", "REQUIRED BY"], ...rows], env.columns);
      for (const { id, latest, notes } of plugins) {
        if (notes === undefined) continue;
        table.push("", ...notesLines(`release notes of ${id} ${latest}`, notes, env.columns, NOTE_LINES));
      }
      return {
        data: { plugins },
        text: plugins.length === 0 ? "All plugins are up to date." : table.join("\n"),
        ...(plugins.length > 0 && flags.detailedExitcode === true ? { exitCode: EXIT.pending } : {}),
      };
    })
  );
}
