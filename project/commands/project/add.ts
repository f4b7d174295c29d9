/**
 * `waft add [<id>[@<range>] | <directory> | <reference>]…`: adds plugins after a review, or updates the lockfile to
 * match the manifest.
 */
import type { Command } from "commander";
import process from "node:process";
import { fail } from "../../base/diagnostic.ts";
import { addDecisionOptions, changeDecisions, type DecisionOptions, mayReport } from "./decision_flags.ts";
import type { OpsContext } from "../../packages/context.ts";
import {
  addGlobalOptions,
  addUserOption,
  type CommandEnvironment,
  type GlobalFlags,
  runCommand,
} from "./project_command.ts";

interface AddFlags extends GlobalFlags, DecisionOptions {
  readonly exact?: boolean;
  readonly wasi?: string;
  readonly signedBy?: string;
}

/**
 * The ids to add. A word that is no id is searched in the registry, and the user chooses among the results; without a
 * terminal it is a failure that lists them.
 */
async function chosenIds(
  env: CommandEnvironment,
  context: OpsContext,
  specs: readonly string[],
): Promise<readonly string[]> {
  const isWord = (spec: string) => /^[^./@][^/@]*$/.test(spec);
  if (!specs.some(isWord)) return specs;
  const { idFor } = await import("../../ops/project/find_ids.ts");
  const chosen: string[] = [];
  for (const spec of specs) {
    if (!isWord(spec)) chosen.push(spec);
    else {
      const choose = env.interactive ? (await import("./choose_id.ts")).chooseId : undefined;
      chosen.push(await idFor(context, spec, choose));
    }
  }
  return chosen;
}

/** Adds `add`. */
export function addCommand(program: Command): void {
  const command = program.command("add")
    .description(
      "Add plugins after a review of their authorities; without arguments, update the lockfile to match waft.json.",
    )
    .argument(
      "[plugins...]",
      "<id>, <id>@<range>, a word to search for, a directory of the project such as ./plugins/kv, or " +
        "oci://HOST/NAME[:TAG|@DIGEST]",
    )
    .option("--signed-by <file>", "Public key (PEM) by which plugins in OCI registries must be signed (cosign)")
    .option("--exact", "Write the exact version into waft.json")
    .option("--wasi <groups>", "WASI groups that guests may use: all, none, or some of args,clock,env,fs,random,stdio");
  addGlobalOptions(addUserOption(addDecisionOptions(command))).action((specs: string[], flags: AddFlags) =>
    runCommand("add", flags, async (env) => {
      const { addPlugins } = await import("../../ops/project/add.ts");
      const { changeOutcome } = await import("./change_output.ts");
      const { parseWasiGroups } = await import("../../definitions/wasi_groups.ts");
      if (flags.user === true && flags.wasi !== undefined) {
        throw fail("usage.user", "--wasi is for the guests of a project, not for plugins of your own");
      }
      const context = await env.context({ inspect: true });
      const chosen = await chosenIds(env, context, specs);
      const decisions = await changeDecisions(env, flags, [
        "add",
        ...(flags.signedBy === undefined ? [] : ["--signed-by", flags.signedBy]),
        ...chosen,
      ]);
      const result = await addPlugins(context, {
        ...decisions,
        specs: chosen,
        directory: process.cwd(),
        exact: flags.exact === true,
        ...(flags.signedBy === undefined ? {} : { signedBy: flags.signedBy }),
        report: mayReport(flags, process.env),
        ...(flags.wasi === undefined ? {} : { wasi: parseWasiGroups(flags.wasi) ?? "all" as const }),
      });
      return changeOutcome(result, env, flags);
    })
  );
}
