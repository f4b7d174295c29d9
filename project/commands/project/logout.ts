/**
 * `waft logout`: forgets the token that `waft login` kept for a registry.
 */
import type { Command } from "commander";
import { addGlobalOptions, type GlobalFlags, runCommand } from "./project_command.ts";

/** Adds `logout`. */
export function addCommand(program: Command): void {
  const command = program.command("logout").description("Remove the registry's token from this machine.");
  addGlobalOptions(command).action((flags: GlobalFlags) =>
    runCommand("logout", flags, async (env) => {
      const { Credentials } = await import("../../packages/credentials.ts");
      const { machine, paths, files } = await env.context();
      const forgotten = await new Credentials(paths, files).forget(machine.registry);
      const text = forgotten
        ? `the token for ${machine.registry} is forgotten`
        : `there is no token for ${machine.registry}`;
      return { data: { registry: machine.registry, forgotten }, text };
    })
  );
}
