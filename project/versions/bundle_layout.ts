/**
 * The files of an installed version that depend on the system: a row per kind of system. In: a platform such as
 * `windows/amd64`. Out: names of files. installer/ contains the scripts.
 */
import { join } from "node:path";

/** The names of files in the directory of a version. */
interface BundleLayout {
  /** Starts this version; on Windows also its name in the directory of the command. */
  readonly command: string;
  /** The script that both the command and the launcher run. */
  readonly start: string;
  readonly deno: string;
  /** The text of the launcher, which starts the active version. */
  readonly launcher: string;
  /** A text by which launchers are recognized. */
  readonly mark: string;
}

const POSIX: BundleLayout = {
  command: "waft",
  start: "start",
  deno: "deno",
  launcher: "lib/installer/launcher.sh",
  mark: "# waft's launcher:",
};

const WINDOWS: BundleLayout = {
  command: "waft.cmd",
  start: "start.cmd",
  deno: "deno.exe",
  launcher: "lib/installer/launcher.cmd",
  mark: "rem waft's launcher:",
};

/** The layout on a platform. */
export function bundleLayout(platform: string): BundleLayout {
  return platform.startsWith("windows/") ? WINDOWS : POSIX;
}

/** Files of installer/ that are in the directory of a version: their name there and their name in installer/. */
export function bundledScripts(platform: string): readonly (readonly [name: string, source: string])[] {
  const { command, start } = bundleLayout(platform);
  const isWindows = platform.startsWith("windows/");
  return [[command, isWindows ? "waft.cmd" : "waft.sh"], [start, isWindows ? "start.cmd" : "start.sh"]];
}

/** The options of Deno in the scripts of a version, for which installer/start.sh gives the reasons. */
const DENO_OPTIONS: readonly string[] = [
  ...["--quiet", "--no-config", "--no-lock", "--no-check", "--no-remote", "--no-npm"],
  "--v8-flags=--min-semi-space-size=4",
];

/**
 * The command line that starts the version in a directory: without a shell, because scripts of cmd cannot be started
 * without one.
 */
export function startCommand(directory: string, platform: string, args: readonly string[]): [string, string[]] {
  const { command, deno } = bundleLayout(platform);
  if (!platform.startsWith("windows/")) return [join(directory, command), [...args]];
  return [join(directory, deno), ["run", "-A", ...DENO_OPTIONS, join(directory, "lib", "waft.js"), ...args]];
}
