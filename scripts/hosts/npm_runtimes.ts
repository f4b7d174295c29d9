/**
 * JavaScript runtimes from npm. In: a name of the table. Out: the version that tests use, and the path of its
 * executable in npx's cache.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

/** The versions of the runtimes: the oldest supported Node, the Node before the current one, and the current ones. */
export const RUNTIME_VERSIONS = { node20: "20.20.2", node22: "22.23.3", node: "26.10.0", bun: "1.4.5" } as const;

/**
 * The executable of a runtime, which npx installs into its cache. `folder` is outside of projects, whose packages npx
 * would prefer. Throws an Error with npx's output if that fails.
 */
export function runtimePath(runtime: keyof typeof RUNTIME_VERSIONS, folder: string): string {
  const program = runtime === "bun" ? "bun" : "node";
  const specifier = `${program}@${RUNTIME_VERSIONS[runtime]}`;
  const args = ["-y", "-p", specifier, "--", "sh", "-c", `command -v ${program}`];
  const { status, stdout, stderr } = spawnSync("npx", args, { cwd: folder, encoding: "utf8" });
  const path = stdout.trim().split("\n").at(-1) ?? "";
  if (status !== 0 || !existsSync(path)) throw new Error(`Cannot get ${specifier} from npm:\n${stderr}`);
  return path;
}
