/**
 * `waft config get|set|unset|list|diff`: the settings of the project by name.
 */
import type { Command } from "commander";
import process from "node:process";
import { resolve } from "node:path";
import { lateImports } from "../../base/late_import.ts";
import type { ConfigEntry } from "../../ops/project/config.ts";
import {
  addGlobalOptions,
  type CommandEnvironment,
  type GlobalFlags,
  type Outcome,
  runCommand,
} from "../project/project_command.ts";

const late = lateImports(import.meta.url);
const operation = late<typeof import("../../ops/project/config.ts")>("../../ops/project/config.ts");
const terminal = late<typeof import("../../base/terminal.ts")>("../../base/terminal.ts");

/** Adds `config`. */
export function addCommand(program: Command): void {
  const group = program.command("config").description("Show and change the settings of the project by name.");
  addGlobalOptions(group.command("list").description("List every setting with its value, default and origin."))
    .action((flags: GlobalFlags) => runCommand("config.list", flags, (env) => listed(env, () => true)));
  addGlobalOptions(group.command("diff").description("List the settings that differ from their defaults."))
    .action((flags: GlobalFlags) =>
      runCommand("config.diff", flags, (env) => listed(env, ({ value, default: usual }) => value !== usual))
    );
  addGlobalOptions(group.command("get").description("Print the value of a setting.").argument("<key>", KEY))
    .action((key: string, flags: GlobalFlags) =>
      runCommand("config.get", flags, async () => {
        const { entryOf, readConfig, valueText } = await operation();
        const entry = entryOf(await readConfig(startOf(flags)), key);
        return { data: entry, text: valueText(entry.value) };
      })
    );
  addGlobalOptions(
    group.command("set").description("Set a setting in waft.json.").argument("<key>", KEY)
      .argument("<value>", "on, off, or the text of the setting"),
  ).action((key: string, value: string, flags: GlobalFlags) =>
    runCommand("config.set", flags, (env) => changed(env, key, value))
  );
  addGlobalOptions(
    group.command("unset").description("Remove a setting from waft.json, so that its default applies.")
      .argument("<key>", KEY),
  ).action((key: string, flags: GlobalFlags) =>
    runCommand("config.unset", flags, (env) => changed(env, key, undefined))
  );
}

const KEY = "Group and name, as features.simd or runtime.parallel";

/** The directory from which the project is searched. */
function startOf({ project = "." }: GlobalFlags): string {
  return resolve(process.cwd(), project);
}

async function listed(env: CommandEnvironment, isShown: (entry: ConfigEntry) => boolean): Promise<Outcome> {
  const [{ readConfig, valueText }, { layoutTable }] = await Promise.all([operation(), terminal()]);
  const { file, entries, diagnostics } = await readConfig(startOf(env.flags));
  const keys = entries.filter(isShown);
  const rows = keys.map(({ key, value, default: usual, from }) => {
    return [key, valueText(value), valueText(usual), from === "manifest" ? "waft.json" : from];
  });
  return {
    data: { file, keys },
    diagnostics,
    text: keys.length === 0
      ? "All settings have their defaults."
      : layoutTable([["KEY", "VALUE", "DEFAULT", "FROM"], ...rows], env.columns).join("\n"),
  };
}

/** Sets `key`, or removes it from the manifest. */
async function changed(env: CommandEnvironment, key: string, value: string | undefined): Promise<Outcome> {
  const { changeConfig, entryOf, readConfig, valueText } = await operation();
  const root = await env.root();
  const before = entryOf(await readConfig(root), key);
  const hasChanged = await changeConfig(root, before, value, env.flags.dryRun === true);
  const after = env.flags.dryRun === true ? before : entryOf(await readConfig(root), key);
  const text = hasChanged ? `${key}: ${valueText(after.value)}` : `${key} is unchanged: ${valueText(after.value)}`;
  return { data: { ...after, changed: hasChanged }, text };
}
