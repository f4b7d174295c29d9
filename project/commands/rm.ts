/**
 * `waft rm <id>…`: removes requirements; plugins that are no longer required leave the lockfile.
 */
import type { Command } from "commander";
import { EXIT } from "../base/diagnostic.ts";
import { addDecisionOptions, bindingsFrom, configFrom, deciderFor, type DecisionOptions } from "./decision_flags.ts";
import { addGlobalOptions, type GlobalFlags, runCommand } from "./project_command.ts";

/** Adds `rm`. */
export function addCommand(program: Command): void {
  const command = program.command("rm")
    .description("Remove plugins from waft.json and the lockfile.")
    .argument("<ids...>", "Ids of direct requirements");
  addGlobalOptions(addDecisionOptions(command)).action((ids: string[], flags: GlobalFlags & DecisionOptions) =>
    runCommand("rm", flags, async (env) => {
      const { removePlugins } = await import("../ops/add.ts");
      const { changeText } = await import("./change_output.ts");
      const root = await env.root();
      const { decide, finish } = await deciderFor(env, flags, ["rm", ...ids]);
      const result = await removePlugins(await env.context({ inspect: true }), {
        root,
        ids,
        decider: decide,
        beforeWrite: finish,
        dryRun: flags.dryRun === true,
        locked: flags.locked === true,
        bind: bindingsFrom(flags),
        config: configFrom(flags),
      });
      const { warnings, ...data } = result;
      return {
        data,
        diagnostics: warnings,
        text: changeText(result, env.colors, flags),
        ...(result.cancelled ? { exitCode: EXIT.review } : {}),
      };
    })
  );
}
