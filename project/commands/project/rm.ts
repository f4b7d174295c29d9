/**
 * `waft rm <id>…`: removes requirements; plugins that are no longer required leave the lockfile.
 */
import type { Command } from "commander";
import { addDecisionOptions, changeDecisions, type DecisionOptions } from "./decision_flags.ts";
import { addGlobalOptions, addUserOption, type GlobalFlags, runCommand } from "./project_command.ts";

/** Adds `rm`. */
export function addCommand(program: Command): void {
  const command = program.command("rm")
    .description("Remove plugins from waft.json and the lockfile.")
    .argument("<ids...>", "Ids of direct requirements");
  addGlobalOptions(addUserOption(addDecisionOptions(command))).action((
    ids: string[],
    flags: GlobalFlags & DecisionOptions,
  ) =>
    runCommand("rm", flags, async (env) => {
      const { removePlugins } = await import("../../ops/project/add.ts");
      const { changeOutcome } = await import("./change_output.ts");
      const decisions = await changeDecisions(env, flags, ["rm", ...ids]);
      const result = await removePlugins(await env.context({ inspect: true }), { ...decisions, ids });
      return changeOutcome(result, env, flags);
    })
  );
}
