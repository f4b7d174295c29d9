/**
 * Shared helpers of the release scripts: running programs, reading and naming files, digests and progress messages.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

/** Runs a program and returns its stdout; throws an Error with its stderr if it fails. */
export function run(command: string, args: readonly string[], cwd: string): Uint8Array {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    maxBuffer: 1 << 28,
    env: { ...process.env, NO_COLOR: "1" },
  });
  if (status !== 0) throw new Error(`${command} ${args[0]} failed: ${error?.message ?? stderr.toString().trim()}`);
  return stdout;
}

/** SHA-256, in hexadecimal. */
export function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** The files below a directory, by path. `keep` decides per path, for files and directories. */
export function filesBelow(
  root: string,
  prefix = "",
  keep: (path: string) => boolean = () => true,
): Map<string, Uint8Array> {
  const files = new Map<string, Uint8Array>();
  for (const name of readdirSync(join(root, prefix)).sort()) {
    const path = prefix === "" ? name : `${prefix}/${name}`;
    if (!keep(path)) continue;
    if (statSync(join(root, path)).isDirectory()) {
      for (const [inner, bytes] of filesBelow(root, path, keep)) files.set(inner, bytes);
    } else files.set(path, new Uint8Array(readFileSync(join(root, path))));
  }
  return files;
}

/** The file name of a program on a platform such as `windows/amd64`. */
export function executableName(name: string, platform: string): string {
  return platform.startsWith("windows/") ? `${name}.exe` : name;
}

/** Prints a progress message with the time to stderr. */
export function say(text: string): void {
  console.error(`${new Date().toISOString().slice(11, 19)} ${text}`);
}
