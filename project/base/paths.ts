/**
 * Every path on the machine that the manager touches, outside projects.
 *
 * In: the environment, the operating system, the home directory. Out: absolute directories. `WAFT_HOME` overrides
 * all of them everywhere; macOS keeps all below `~/.waft`; Linux follows XDG (relative values are ignored, as XDG
 * demands). The manager itself is in `~/.waft/bin` on both. Specification: "Machine-level paths".
 */
import { environmentVariable, nodeModule, processorName, systemName } from "@waft/engine/internal/host/process";
import { absolutePath, isAbsolutePath, joinPaths as join } from "./system_path.ts";

/** Absolute directories. */
export interface MachinePaths {
  /** The manager's executable. */
  readonly bin: string;
  /** Installed runtimes. */
  readonly versions: string;
  /** `config.json`, `policy.json`, credentials. */
  readonly config: string;
  /** Blobs and registry answers; may be deleted at any time. */
  readonly cache: string;
  /** Last known states, receipts. */
  readonly state: string;
}

/** The facts that the paths are derived from. */
export interface MachineFacts {
  readonly env: { readonly [name: string]: string | undefined };
  readonly os: string;
  readonly home: string;
}

/** Variables of the environment that decide about paths. */
const VARIABLES = ["WAFT_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"] as const;

/** The facts of this process. */
export function thisMachine(): MachineFacts {
  return {
    env: Object.fromEntries(VARIABLES.map((name) => [name, environmentVariable(name)])),
    os: systemName(),
    home: homeOf(environmentVariable("HOME")),
  };
}

/**
 * The user's home directory. A relative value of HOME would make every directory a place for configuration and machine
 * code. A user that the system does not know, as in containers, has the root directory, as container runtimes say.
 */
function homeOf(variable: string | undefined): string {
  if (variable !== undefined && isAbsolutePath(variable)) return variable;
  const os = nodeModule("node:os");
  try {
    return variable === undefined || variable === "" ? os.homedir() : os.userInfo().homedir;
  } catch {
    return "/";
  }
}

/** The directories for these facts. */
export function machinePaths(facts: MachineFacts = thisMachine()): MachinePaths {
  const { env, os, home } = facts;
  const override = env.WAFT_HOME;
  const below = (root: string): MachinePaths => ({
    bin: join(root, "bin"),
    versions: join(root, "versions"),
    config: join(root, "config"),
    cache: join(root, "cache"),
    state: join(root, "state"),
  });
  if (override !== undefined && override !== "") {
    return below(absolutePath(override));
  }
  const own = join(home, ".waft");
  if (os !== "linux") return below(own);
  const xdg = (name: string, fallback: string): string => {
    const value = env[name];
    return join(value !== undefined && isAbsolutePath(value) ? value : join(home, fallback), "waft");
  };
  return {
    bin: join(own, "bin"),
    versions: join(xdg("XDG_DATA_HOME", ".local/share"), "versions"),
    config: xdg("XDG_CONFIG_HOME", ".config"),
    cache: xdg("XDG_CACHE_HOME", ".cache"),
    state: xdg("XDG_STATE_HOME", ".local/state"),
  };
}

/** Path of a blob in the cache. */
export function blobPath(paths: MachinePaths, hex: string): string {
  return join(paths.cache, "blobs", "sha256", hex);
}

/** The mode of new directories with programs and records: other users cannot write them, whatever the umask. */
export const OWN_DIRECTORY_MODE = 0o755;

/** The file of the grants that the user accepted. */
export function trustDirectory(paths: MachinePaths): string {
  return join(paths.state, "trust");
}

/** The folder of compiled modules: the engine's cache/code_cache.ts reads and writes them. */
export function codeCacheOptions(paths: MachinePaths = machinePaths()): { directory: string } {
  return { directory: join(paths.cache, "compiled") };
}

/** The platform in the specification's words, such as `linux/amd64`. */
export function platformName(os: string = systemName(), arch: string = processorName()): string {
  const system = os === "win32" ? "windows" : os;
  const machine = arch === "x64" ? "amd64" : arch === "ia32" ? "386" : arch;
  return `${system}/${machine}`;
}
