/**
 * The paths that neither guests nor plugins may change: manifests, lockfiles, and the machine's directories for waft.
 *
 * Input: the root of the project that a run belongs to, if any. Output: ProtectedPaths for the engine's WASI. Manifest
 * and lockfile decide the authority of plugins, the records decide whether a lockfile counts, and the executables and
 * the cache of compiled modules are machine code. Writing any of them would therefore be a path to more authority.
 */
import type { ProtectedPaths } from "@waft/engine/wasi";
import { codeCacheOptions, type MachinePaths, machinePaths } from "./paths.ts";
import { absolutePath, joinPaths } from "./system_path.ts";
import { LOCK_FILE, MANIFEST_FILE } from "./constants.ts";

/** The protected paths of a run in the project at `root`. */
export function protectedPaths(root: string | undefined, paths: MachinePaths = machinePaths()): ProtectedPaths {
  const names = [MANIFEST_FILE, LOCK_FILE];
  return {
    names,
    files: root === undefined ? [] : names.map((name) => joinPaths(absolutePath(root), name)),
    directories: [paths.config, paths.state, paths.bin, paths.versions, codeCacheOptions(paths).directory],
  };
}
