/**
 * The paths that neither guests nor plugins may change: manifests, lockfiles, and the machine's directories for waft.
 *
 * In: the root of the project that a run belongs to, if there is one. Out: ProtectedPaths for the engine's WASI. Manifest
 * and lockfile decide what plugins may do, the records decide whether a lockfile counts, and the executables and the cache
 * of compiled modules are machine code, so writing any of them would be a way to more authority.
 */
import type { ProtectedPaths } from "@waft/engine/wasi";
import { codeCacheOptions, type MachinePaths, machinePaths } from "./paths.ts";
import { absolutePath, joinPaths } from "./posix_path.ts";
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
