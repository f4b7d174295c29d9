/**
 * `waft login`: stores a registry token on this machine. The token comes from a prompt without echo or from standard
 * input, never from the command line, where other users could see it.
 */
import type { Command } from "commander";
import process from "node:process";
import { fail } from "../../base/diagnostic.ts";
import { addGlobalOptions, type GlobalFlags, runCommand } from "./project_command.ts";

/** Most that is read from standard input. */
const MAX_INPUT = 4096;

/** Adds `login`. */
export function addCommand(program: Command): void {
  const command = program.command("login")
    .description(
      "Store a registry token on this machine, for publishing. Without a terminal, it is read from stdin.",
    );
  addGlobalOptions(command).action((flags: GlobalFlags) =>
    runCommand("login", flags, async (env) => {
      const { Credentials, isToken } = await import("../../packages/credentials.ts");
      const { machine, paths, files } = await env.context();
      const token = env.interactive ? await askToken(machine.registry) : await readInput();
      if (token === undefined) throw fail("auth.cancelled", "no token was given; nothing was changed");
      if (!isToken(token)) throw fail("auth.token", "a token is 8 to 500 visible characters without spaces");
      await new Credentials(paths, files).keep(machine.registry, token);
      return { data: { registry: machine.registry }, text: `a token for ${machine.registry} is kept on this machine` };
    })
  );
}

async function askToken(registry: string): Promise<string | undefined> {
  const [{ isCancel, password }, { drainInput }] = await Promise.all([
    import("@clack/prompts"),
    import("../terminal_input.ts"),
  ]);
  await drainInput();
  const answer = await password({ message: `Token for ${registry}:`, output: process.stderr });
  return isCancel(answer) ? undefined : answer.trim();
}

async function readInput(): Promise<string> {
  let text = "";
  for await (const chunk of process.stdin) {
    text += String(chunk);
    if (text.length > MAX_INPUT) throw fail("auth.token", "standard input holds more than a token");
  }
  return text.trim();
}
