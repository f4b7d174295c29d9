/**
 * A project on disk: where it is, its manifest and its lockfile.
 *
 * In: a directory to start from. Out: the nearest ancestor with `waft.json` (never across a mount point, nor into a
 * directory of another user), with what its two files hold. Nothing here changes a file or asks the network.
 */
import { dirname, join, resolve } from "node:path";
import { type Diagnostic, fail, ProjectError } from "./diagnostic.ts";
import { DISK, type Files } from "./files.ts";
import { checkLockfile, type LockResult, MAX_LOCK_BYTES } from "./lockfile.ts";
import { checkManifest, type Manifest, MAX_MANIFEST_BYTES, type ReadManifest } from "./manifest.ts";
import { LOCK_FILE, MANIFEST_FILE } from "./site.ts";

/** Finds the project that a directory belongs to; undefined when there is none. */
export async function findProject(start: string, files: Files = DISK): Promise<string | undefined> {
  let directory = resolve(start);
  const first = await files.status(directory);
  for (;;) {
    if (await files.status(join(directory, MANIFEST_FILE)) !== undefined) return directory;
    const parent = dirname(directory);
    if (parent === directory) return undefined;
    const status = await files.status(parent);
    // Someone else's directory could plant a manifest for everything below it.
    const foreign = status !== undefined && process.platform !== "win32" && status.uid !== process.getuid?.() &&
      status.uid !== 0;
    if (status === undefined || status.device !== first?.device || foreign) return undefined;
    directory = parent;
  }
}

/** Finds the project or throws. `directory` is `--project`, which must hold the manifest itself. */
export async function requireProject(start: string, directory?: string, files: Files = DISK): Promise<string> {
  if (directory !== undefined) {
    const root = resolve(start, directory);
    if (await files.status(join(root, MANIFEST_FILE)) === undefined) {
      throw fail("project.missing", `${root} has no ${MANIFEST_FILE}`, { help: "run `waft init` there" });
    }
    return root;
  }
  const root = await findProject(start, files);
  if (root === undefined) {
    throw fail("project.missing", `no ${MANIFEST_FILE} in ${resolve(start)} or above`, {
      help: "run `waft init`, or pass --project",
    });
  }
  return root;
}

/** What a project's files hold; nothing is thrown for broken ones. */
export interface ProjectState {
  readonly root: string;
  readonly manifestBytes: Uint8Array;
  readonly manifest?: ReadManifest;
  readonly manifestDiagnostics: readonly Diagnostic[];
  readonly lockBytes?: Uint8Array;
  /** Present when there is a lockfile. */
  readonly lock?: LockResult;
}

/** Reads both files. */
export async function readProject(root: string, files: Files = DISK): Promise<ProjectState> {
  const manifestBytes = await files.read(join(root, MANIFEST_FILE), MAX_MANIFEST_BYTES);
  if (manifestBytes === undefined) throw fail("project.missing", `${root} has no ${MANIFEST_FILE}`);
  const checked = await checkManifest(manifestBytes);
  const lockBytes = await files.read(join(root, LOCK_FILE), MAX_LOCK_BYTES);
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
