/**
 * `waft add [<id>[@<range>] | <directory>]…`: adds plugins after a review, or updates the lockfile to match the
 * manifest.
 */
import type { Command } from "commander";
import process from "node:process";
import { addDecisionOptions, changeDecisions, type DecisionOptions, mayReport } from "./decision_flags.ts";
import { addGlobalOptions, type GlobalFlags, runCommand } from "./project_command.ts";

interface AddFlags extends GlobalFlags, DecisionOptions {
  readonly exact?: boolean;
  readonly wasi?: string;
}

/** Adds `add`. */
export function addCommand(program: Command): void {
  const command = program.command("add")
    .description(
      "Add plugins after a review of their authorities; without arguments, update the lockfile to match waft.json.",
    )
    .argument("[plugins...]", "<id>, <id>@<range>, or a directory of the project such as ./plugins/kv")
    .option("--exact", "Write the exact version into waft.json")
    .option("--wasi <groups>", "WASI groups that guests may use: all, none, or some of args,clock,env,fs,random,stdio");
  addGlobalOptions(addDecisionOptions(command)).action((specs: string[], flags: AddFlags) =>
    runCommand("add", flags, async (env) => {
      const { addPlugins } = await import("../../ops/project/add.ts");
      const { changeOutcome } = await import("./change_output.ts");
      const { parseWasiGroups } = await import("../../definitions/wasi_groups.ts");
      const decisions = await changeDecisions(env, flags, ["add", ...specs]);
      const result = await addPlugins(await env.context({ inspect: true }), {
        ...decisions,
        specs,
        directory: process.cwd(),
        exact: flags.exact === true,
        report: mayReport(flags, process.env),
        ...(flags.wasi === undefined ? {} : { wasi: parseWasiGroups(flags.wasi) ?? "all" as const }),
      });
      return changeOutcome(result, env, flags);
    })
  );
}
