/**
 * The paths that neither guests nor plugins may change: manifests, lockfiles, and the machine's directories for waft.
 *
 * In: the root of the project that a run belongs to, if any, and the files of machine code that it executes. Output:
 * ProtectedPaths for the engine's WASI. Manifest and lockfile decide the authority of plugins, the records decide
 * whether a lockfile counts, and artifacts, executables and the cache of compiled modules are machine code. Writing any
 * of them would therefore be a path to more authority.
 */
import { isSingleExecutable } from "@waft/engine/internal/host/process";
import type { ProtectedPaths } from "@waft/engine/wasi";
import { type MachinePaths, machinePaths } from "./paths.ts";
import { absolutePath, joinPaths } from "./system_path.ts";
import { LOCK_FILE, MANIFEST_FILE } from "./constants.ts";

/** The project of a run, and the machine code that the run executes. */
export interface ProtectedRun {
  /** Root of the project that the run belongs to; guests cannot change the project's files. */
  readonly root?: string;
  /** The artifact that is run: the next run executes its machine code unsandboxed. */
  readonly artifact?: string;
}

/** The protected paths of a run. */
export function protectedPaths({ root, artifact }: ProtectedRun, paths: MachinePaths = machinePaths()): ProtectedPaths {
  const names = [MANIFEST_FILE, LOCK_FILE];
  return {
    names,
    files: [
      ...(root === undefined ? [] : names.map((name) => joinPaths(absolutePath(root), name))),
      ...(artifact === undefined ? [] : [absolutePath(artifact)]),
      // A single executable is waft itself, or an application with its program.
      ...(isSingleExecutable() ? [process.execPath] : []),
    ],
    // The cache as a whole: the code of compiled modules, and the code that the JavaScript runtime compiled of waft
    // itself.
    directories: [paths.config, paths.state, paths.bin, paths.versions, paths.cache],
  };
}
