/**
 * `waft tree`: the project's plugins, arranged by the plugins that require them.
 */
import type { Command } from "commander";
import type { TreeNode } from "../../ops/project/tree.ts";
import { addGlobalOptions, addUserOption, type GlobalFlags, runCommand } from "./project_command.ts";

/** Adds `tree`. */
export function addCommand(program: Command): void {
  const command = program.command("tree").description("Show the project's plugins as a dependency tree.");
  addGlobalOptions(addUserOption(command)).action((flags: GlobalFlags) =>
    runCommand("tree", flags, async (env) => {
      const { pluginTree } = await import("../../ops/project/tree.ts");
      const plugins = await pluginTree(await env.context(), await env.root());
      return {
        data: { plugins },
        text: plugins.length === 0 ? "The project has no plugins." : draw(plugins).join("\n"),
      };
    })
  );
}

function draw(nodes: readonly TreeNode[], indent = ""): string[] {
  return nodes.flatMap(({ id, version, range, repeated, requires }, i) => {
    const isLast = i === nodes.length - 1;
    const head = `${indent}${isLast ? "└─" : "├─"} ${id} ${version} (${range})${repeated ? " (see above)" : ""}`;
    return [head, ...draw(requires, `${indent}${isLast ? "   " : "│  "}`)];
  });
}
