/**
 * `waft search <words>`: finds plugins in the registry.
 */
import type { Command } from "commander";
import process from "node:process";
import { addGlobalOptions, type GlobalFlags, runCommand } from "./project_command.ts";

/** Adds `search`. */
export function addCommand(program: Command): void {
  const command = program.command("search").description("Search the registry for plugins.")
    .argument("<words...>", "Search terms: names, tags, words of descriptions");
  addGlobalOptions(command).action((words: string[], flags: GlobalFlags) =>
    runCommand("search", flags, async (env) => {
      const [{ SourceSet }, { layoutTable, safe, safeProse }] = await Promise.all([
        import("../../packages/context.ts"),
        import("../../base/terminal.ts"),
      ]);
      const context = await env.context();
      const { registry } = context.machine;
      const found = await new SourceSet(context, process.cwd()).registry(registry).search(words.join(" "));
      const rows = found.packages.map((
        p,
      ) => [env.colors.bold(safe(p.name)), safe(p.version), safeProse(p.description)]);
      const more = found.total > rows.length ? [`and ${found.total - rows.length} more: ${registry}/plugins`] : [];
      return {
        data: { registry, ...found },
        text: rows.length === 0
          ? `nothing found in ${registry}`
          : [...layoutTable(rows, env.columns), ...more].join("\n"),
      };
    })
  );
}
