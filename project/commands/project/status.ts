/**
 * `waft status`: runtime, project, lockfile, plugins, registry. Never fails on a broken project, uses no network.
 */
import type { Command } from "commander";
import process from "node:process";
import { resolve } from "node:path";
import { addGlobalOptions, type GlobalFlags, runCommand } from "./project_command.ts";

/** Adds `status`. */
export function addCommand(program: Command): void {
  const command = program.command("status").description(
    "Show the active runtime, the project, its plugins and its lockfile.",
  );
  addGlobalOptions(command).action((flags: GlobalFlags) =>
    runCommand("status", flags, async (env) => {
      const [{ projectStatus }, { DISK }, { machinePaths }, { layoutTable, safe }, { requireProject }] = await Promise
        .all([
          import("../../ops/project/status.ts"),
          import("../../base/files.ts"),
          import("../../base/paths.ts"),
          import("../../base/terminal.ts"),
          import("../../project_root.ts"),
        ]);
      const root = flags.project === undefined
        ? undefined
        : await requireProject(process.cwd(), resolve(flags.project));
      const data = await projectStatus(process.cwd(), {
        files: DISK,
        paths: machinePaths(),
        env: process.env,
        ...(flags.registry === undefined ? {} : { registry: flags.registry }),
        ...(root === undefined ? {} : { root }),
      });
      const { runtime, machine, project, manifest, lockfile, plugins, registry, policy } = data;
      const plural = (n: number, word: string): string => `${n} ${word}${n === 1 ? "" : "s"}`;
      const rows: string[][] = [[
        env.colors.bold("runtime"),
        `${runtime.version} (${runtime.channel})`,
        safe(runtime.path),
      ]];
      if (machine.state !== "supported") {
        rows.push([env.colors.bold("machine"), machine.platform, safe(machine.detail)]);
      }
      if (project === null) rows.push([env.colors.bold("project"), "none", "no waft.json here or above"]);
      else {
        rows.push([
          env.colors.bold("project"),
          safe(project.root),
          `waft.json ${manifest?.state ?? "?"}, ${plural(manifest?.requirements ?? 0, "requirement")}`,
        ]);
        const count = lockfile?.state === "up to date"
          ? `${plural(plugins.total, "plugin")}, ${plugins.needsReview} need review`
          : lockfile?.code ?? "";
        rows.push([env.colors.bold("lockfile"), lockfile?.state ?? "none", count]);
      }
      rows.push([
        env.colors.bold("registry"),
        safe(registry ?? "unknown"),
        `policy ${policy === null ? "none" : `denies ${policy.deny.join(", ") || "nothing"}`}`,
      ]);
      if (data.wasi !== null) {
        const { dirs, env: names } = data.wasi;
        rows.push([
          env.colors.bold("wasi"),
          safe([...dirs.map((dir) => `--dir ${dir}`), ...names.map((name) => `--env ${name}`)].join(" ")),
          "config.json",
        ]);
      }
      const { diagnostics, ...rest } = data;
      return { data: rest, diagnostics, text: layoutTable(rows, env.columns).join("\n") };
    })
  );
}
