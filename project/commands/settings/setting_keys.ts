/**
 * The work of `waft opts` and `waft features`: every key with its state, the origin of the state, and its meaning.
 */
import type { Command } from "commander";
import process from "node:process";
import { resolve } from "node:path";
import { addGlobalOptions, collect, type GlobalFlags, runCommand } from "../project/project_command.ts";

interface KeyFlags extends GlobalFlags {
  readonly feature?: readonly string[];
  readonly opt?: readonly string[];
  readonly parallel?: string;
}

/** Adds `opts` or `features`. */
export function addKeysCommand(program: Command, group: "opts" | "features"): void {
  const command = program.command(group)
    .description(
      group === "opts"
        ? "List every optimization with its meaning, state and the origin of the state."
        : "List every WebAssembly feature with its meaning, state and the origin of the state.",
    )
    .option(
      group === "opts" ? "--opt <name=on|off>" : "--feature <name=on|off>",
      "Show the state with this switch (repeatable)",
      collect,
      [],
    );
  if (group === "opts") command.option("--parallel <n>", "Show the state with this number of compiler threads");
  addGlobalOptions(command).action((flags: KeyFlags) =>
    runCommand(group, flags, async (env) => {
      const [{ nearestSettings, resolveSettings }, { layoutTable }, implemented] = await Promise.all([
        import("../../settings.ts"),
        import("../../base/terminal.ts"),
        import("../../implemented_keys.ts"),
      ]);
      const nearest = await nearestSettings(resolve(process.cwd(), flags.project ?? "."));
      const settings = resolveSettings(nearest, {
        features: flags.feature ?? [],
        optimizations: flags.opt ?? [],
        ...(flags.parallel === undefined ? {} : { parallel: flags.parallel }),
      }, implemented.IMPLEMENTED);
      const rows = (group === "opts" ? settings.optimizations : settings.features).map((s) => ({
        ...s,
        state: s.implemented ? s.value ? "on" : "off" : "not yet",
      }));
      const table = layoutTable([
        ["NAME", "STATE", "DEFAULT", "FROM", "MEANING"],
        ...rows.map((s) => [
          s.name,
          s.state === "on"
            ? env.colors.green("on")
            : s.state === "off"
            ? env.colors.yellow("off")
            : env.colors.dim(s.state),
          s.default ? "on" : "off",
          s.from === "manifest" ? "waft.json" : s.from,
          s.meaning,
        ]),
      ], env.columns);
      const { parallel, deferredBoundsChecking } = settings;
      const where = (from: string): string => from === "manifest" ? "waft.json" : from;
      if (group === "opts") {
        table.push("", `runtime.parallel ${parallel.value} (${where(parallel.from)})`);
        table.push(
          `runtime.deferredBoundsChecking ${deferredBoundsChecking.value} (${where(deferredBoundsChecking.from)})`,
        );
      }
      return {
        data: {
          file: settings.file ?? null,
          keys: rows,
          ...(group === "opts" ? { runtime: { parallel, deferredBoundsChecking } } : {}),
        },
        diagnostics: settings.diagnostics,
        text: table.join("\n"),
      };
    })
  );
}
