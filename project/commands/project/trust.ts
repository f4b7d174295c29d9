/**
 * `waft trust [<digest>]`: accepts, on this machine, the grants that a project's lockfile gives its plugins.
 *
 * At a terminal the command shows the grants and asks. Elsewhere it requires the digest of the grants, so that no grant
 * is accepted unseen.
 */
import type { Command } from "commander";
import { EXIT } from "../../base/diagnostic.ts";
import { addGlobalOptions, addUserOption, type GlobalFlags, runCommand } from "./project_command.ts";

interface TrustFlags extends GlobalFlags {
  readonly forget?: boolean;
}

/** Adds `trust`. */
export function addCommand(program: Command): void {
  const command = program.command("trust")
    .description("Accept the lockfile's grants to plugins on this machine.")
    .argument("[digest]", "Accept exactly the grants with this digest, without prompting")
    .option("--forget", "Revoke the acceptance for this project");
  addGlobalOptions(addUserOption(command)).action((digest: string | undefined, flags: TrustFlags) =>
    runCommand("trust", flags, async (env) => {
      const [{ acceptGrants, forgetGrants }, { holderLines }] = await Promise.all([
        import("../../ops/project/trust.ts"),
        import("../../plugins/acceptance.ts"),
      ]);
      const [context, root] = [await env.context(), await env.root()];
      if (flags.forget === true) {
        const forgotten = await forgetGrants(context, root);
        return { data: { forgotten }, text: forgotten ? "forgotten" : "nothing was accepted for this project" };
      }
      const ask = env.interactive ? (await import("./trust_prompt.ts")).askToAccept : undefined;
      const result = await acceptGrants(context, root, {
        ...(digest === undefined ? {} : { digest }),
        ...(ask === undefined ? {} : { ask }),
        dryRun: flags.dryRun === true,
      });
      const { wasi } = result;
      const guests = wasi === undefined
        ? []
        : [`guests of the project: of WASI only ${wasi.join(" ") || "exit and yield"}`];
      const shown = ask !== undefined && result.asked ? [] : [...result.holders.flatMap(holderLines), ...guests];
      const state = {
        none: "no plugin of this project holds any authority: there is nothing to accept",
        covered: "accepted already",
        accepted: "accepted on this machine",
        refused: "not accepted",
        pending: "not accepted yet",
      }[result.state];
      return {
        data: result,
        text: [...shown, ...(result.digest === undefined ? [] : [`digest ${result.digest}`]), state].join("\n"),
        ...(result.state === "refused" ? { exitCode: EXIT.review } : {}),
      };
    })
  );
}
