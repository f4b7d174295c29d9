/**
 * Flags of the commands that may need a review, and the decider derived from them.
 *
 * In: `--allow`, `--deny`, `--allow-requested`, `--bind`, `--set`. Out: a decider, bindings and configuration.
 * The decider applies the flags first, then prompts at a terminal; without a terminal it fails and prints the flags to
 * paste. `--yes` is not a decision flag: it never grants authority.
 */
import type { Command } from "commander";
import { fail } from "../../base/diagnostic.ts";
import type { JsonObject, JsonValue } from "../../base/json_read.ts";
import { emptyObject } from "../../base/json_read.ts";
import type { ChangeRequest } from "../../ops/project/change.ts";
import { type Decider, deciderFromFlags, shellQuote } from "../../ops/project/decide.ts";
import { collect, type CommandEnvironment, type GlobalFlags } from "./project_command.ts";

/** The flags. */
export interface DecisionOptions {
  readonly allow: readonly string[];
  readonly deny: readonly string[];
  readonly allowRequested?: boolean;
  readonly bind: readonly string[];
  readonly set: readonly string[];
  readonly allowYanked?: boolean;
  readonly report?: boolean;
}

type ChangeDecisions = Pick<
  ChangeRequest,
  "root" | "decider" | "beforeWrite" | "dryRun" | "locked" | "allowYanked" | "bind" | "config"
>;

/** Adds the flags. */
export function addDecisionOptions(command: Command): Command {
  return command
    .option("--allow <authority>", "Grant [<id>=]<authority>[:<scope>] (repeatable)", collect, [])
    .option("--deny <authority>", "Deny [<id>=]<authority> (repeatable)", collect, [])
    .option("--allow-requested", "Grant everything that the plugins request")
    .option("--bind <namespace=id>", "Choose the provider of a contract or guest namespace (repeatable)", collect, [])
    .option("--set <id:key=value>", "Set a plugin's configuration (repeatable)", collect, [])
    .option("--allow-yanked", "Accept a yanked version if its exact version is given")
    .option("--no-report", "Do not report the installation to the registry");
}

/** The decider that flags and the terminal make together. */
async function deciderFor(
  env: CommandEnvironment,
  options: DecisionOptions,
  command: readonly string[],
): Promise<{ decide: Decider; finish: () => void }> {
  const prompt = env.interactive ? (await import("./review_prompt.ts")).promptDecider(env.errorColors) : undefined;
  const { decide, unused } = deciderFromFlags({
    allow: options.allow,
    deny: options.deny,
    allowRequested: options.allowRequested === true,
    command: ["waft", ...command, ...givenFlags(env, options)].map(shellQuote).join(" "),
  }, prompt);
  return {
    decide,
    finish() {
      const left = unused();
      if (left.length > 0) {
        throw fail("usage.unused", `${left.join(" and ")} had no effect: no plugin under review requests it`, {
          help: "run the command without it, or `waft plugin grant <id>` to review again",
        });
      }
    },
  };
}

/** The part of a change that flags, the terminal and the project decide. */
export async function changeDecisions(
  env: CommandEnvironment,
  flags: GlobalFlags & DecisionOptions,
  command: readonly string[],
): Promise<ChangeDecisions> {
  const root = await env.root();
  const { decide, finish } = await deciderFor(env, flags, command);
  return {
    root,
    decider: decide,
    beforeWrite: finish,
    dryRun: flags.dryRun === true,
    locked: flags.locked === true,
    allowYanked: flags.allowYanked === true,
    bind: bindingsFrom(flags),
    config: configFrom(flags),
  };
}

/** Flags given so far, so that the printed command line can be pasted unchanged. */
function givenFlags({ flags }: CommandEnvironment, options: DecisionOptions): string[] {
  const single = { "--registry": flags.registry, "--project": flags.project };
  const repeated = { "--allow": options.allow, "--deny": options.deny, "--bind": options.bind, "--set": options.set };
  return [
    ...(flags.user === true ? ["--user"] : []),
    ...Object.entries(single).flatMap(([flag, value]) => value === undefined ? [] : [flag, value]),
    ...Object.entries(repeated).flatMap(([flag, values]) => values.flatMap((value) => [flag, value])),
  ];
}

/** `--bind` as a map: `<namespace>` or `guest <namespace>` to providers. */
function bindingsFrom(options: DecisionOptions): Map<string, string[]> {
  const map = new Map<string, string[]>();
  for (const text of options.bind) {
    const at = text.lastIndexOf("=");
    if (at < 1 || at === text.length - 1) {
      throw fail("usage.bind", `--bind ${JSON.stringify(text)} must be <namespace>=<plugin id>`);
    }
    const key = text.slice(0, at);
    map.set(key, [...map.get(key) ?? [], text.slice(at + 1)]);
  }
  return map;
}

/** `--set` as a map from plugin id to configuration. Values are JSON; anything else is a string. */
function configFrom(options: DecisionOptions): Map<string, JsonObject> {
  const map = new Map<string, JsonObject>();
  for (const text of options.set) {
    const m = /^([^:=]+):([^=]+)=(.*)$/s.exec(text);
    if (m === null) throw fail("usage.set", `--set ${JSON.stringify(text)} must be <plugin id>:<key>=<value>`);
    const config = map.get(m[1]) ?? emptyObject();
    let value: JsonValue;
    try {
      value = JSON.parse(m[3]) as JsonValue;
    } catch {
      value = m[3];
    }
    config[m[2]] = value;
    map.set(m[1], config);
  }
  return map;
}

/** Whether installations are reported: not from CI, not when the environment says no. */
export function mayReport(options: DecisionOptions, env: { readonly [name: string]: string | undefined }): boolean {
  const set = (name: string): boolean => (env[name] ?? "") !== "" && env[name] !== "0" && env[name] !== "false";
  return options.report !== false && !set("CI") && !set("WAFT_NO_REPORT") && !set("DO_NOT_TRACK");
}
