/**
 * A project on disk: its manifest and its lockfile.
 *
 * In: a project's root (project_root.ts finds it). Out: the contents of both files, valid or not. Nothing here
 * changes a file or uses the network.
 */
import { join } from "node:path";
import { type Diagnostic, fail, ProjectError } from "./base/diagnostic.ts";
import { DISK, type Files } from "./base/files.ts";
import { checkLockfile, type LockResult, MAX_LOCK_BYTES } from "./lockfile/lockfile.ts";
import { checkManifest, type Manifest, MAX_MANIFEST_BYTES, type ReadManifest } from "./manifest/manifest.ts";
import { LOCK_FILE, MANIFEST_FILE } from "./base/constants.ts";
import { projectJudge } from "./project_root.ts";

/** The contents of a project's files. Broken files appear in this record; they do not throw. */
export interface ProjectState {
  readonly root: string;
  readonly manifestBytes: Uint8Array;
  readonly manifest?: ReadManifest;
  readonly manifestDiagnostics: readonly Diagnostic[];
  readonly lockBytes?: Uint8Array;
  /** Present when there is a lockfile. */
  readonly lock?: LockResult;
}

/** Reads both files. Throws if other users could have written one of them. */
export async function readProject(root: string, files: Files = DISK): Promise<ProjectState> {
  const read = (name: string, maxBytes: number): Promise<Uint8Array | undefined> => {
    const path = join(root, name);
    return files.read(path, maxBytes, projectJudge(root, path));
  };
  const manifestBytes = await read(MANIFEST_FILE, MAX_MANIFEST_BYTES);
  if (manifestBytes === undefined) throw fail("project.missing", `${root} has no ${MANIFEST_FILE}`);
  const checked = await checkManifest(manifestBytes);
  const lockBytes = await read(LOCK_FILE, MAX_LOCK_BYTES);
  const requirements = checked.read?.manifest.plugins ?? {};
  const context = checked.read === undefined ? {} : { requirements };
  return {
    root,
    manifestBytes,
    ...(checked.read === undefined ? {} : { manifest: checked.read }),
    manifestDiagnostics: checked.diagnostics,
    ...(lockBytes === undefined ? {} : { lockBytes, lock: checkLockfile(lockBytes, context) }),
  };
}

/** The manifest or its findings as an error. */
export function requireManifest(state: ProjectState): ReadManifest {
  if (state.manifest === undefined) throw new ProjectError(state.manifestDiagnostics);
  return state.manifest;
}

/** The direct requirements of a manifest. */
export function requirementsOf(manifest: Manifest): { readonly [id: string]: string } {
  return manifest.plugins ?? {};
}

/** The finding for a project that has requirements but no lockfile. */
export function missingLock(): Diagnostic {
  return {
    code: "lock.missing",
    severity: "error",
    message: `${MANIFEST_FILE} requires plugins but there is no ${LOCK_FILE}`,
    file: LOCK_FILE,
    help: "run `waft add`",
  };
}
