/**
 * Starts child processes of the current JavaScript runtime. In: the program's file. Out: a command, or arguments for
 * `process.execPath`. Deno needs a subcommand and permissions, Node and Bun do not. On an emulated processor, the
 * emulator that runs this process starts the child; scripts/hosts/test_arm64.ts names it in WAFT_EMULATOR.
 */
import process from "node:process";
import { fileURLToPath } from "node:url";

/** Arguments that run `path` with all permissions. */
export function hostArguments(path: string): string[] {
  return (globalThis as { Deno?: unknown }).Deno === undefined ? [path] : ["run", "-A", path];
}

/** Arguments that run `path` with all permissions after the module called `preload`, a specifier of this tree. */
export function preloadArguments(preload: string, path: string): string[] {
  const url = import.meta.resolve(preload);
  // Deno finds the packages of this tree by its configuration.
  const config = fileURLToPath(new URL("../../deno.json", import.meta.url));
  if ("Deno" in globalThis) return ["run", "-A", "--quiet", "--config", config, "--preload", url, path];
  return "Bun" in globalThis ? ["--preload", fileURLToPath(url), path] : ["--import", url, path];
}

/** The command that starts the current JavaScript runtime, with these arguments. */
export function runtimeCommand(args: readonly string[]): [program: string, args: string[]] {
  const emulator = process.env["WAFT_EMULATOR"];
  return emulator === undefined ? [process.execPath, [...args]] : [emulator, [process.execPath, ...args]];
}

/** The command and its first arguments that run `path`. */
export function hostCommand(path: string): [program: string, first: string[]] {
  return runtimeCommand(hostArguments(path));
}

/**
 * Time limit of a small child process, in milliseconds: one that is emulated, or on a busy machine, compiles slowly.
 */
export const CHILD_TIMEOUT = 600_000;
