/**
 * The installed versions on this machine, the active version, and their atomic changes.
 *
 * In: the machine's directories. Out: receipts, the active version, staged directories that become versions by
 * one rename. A directory without a receipt is not an installed version, whatever it contains. `state/active.json` is a
 * single line, because the launcher in sh reads it too (installer/launcher.sh). All changes are made under one lock;
 * the next process removes the leftovers of a killed one.
 */
import { errorCode } from "@waft/engine/internal/errors";
import { chmod, mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import semver from "semver";
import { withWriteLock } from "../base/atomic_write.ts";
import { fail, ProjectError } from "../base/diagnostic.ts";
import { DISK } from "../base/files.ts";
import { randomHex } from "../base/integrity.ts";
import { type MachinePaths, OWN_DIRECTORY_MODE } from "../base/paths.ts";
import { replaceFile } from "./release_download.ts";
import { isCanonicalVersion } from "../base/version.ts";

/** The receipt of an installed version. */
export interface Receipt {
  readonly schemaVersion: 1;
  readonly version: string;
  readonly kind: "bundle" | "source";
  readonly platform: string;
  readonly commit: string;
  /** The digest of the archive it came from; empty for a build from source. */
  readonly sha256: string;
  readonly installedAt: string;
}

/** The active version and its predecessor. */
export interface ActiveState {
  readonly current?: string;
  readonly previous?: string;
}

/** Called before each change on disk, with its name; tests end the process there. */
export type Step = (name: string) => void;

const RECEIPT = "receipt.json";
const STAGING = /^\.(?:staging|old)-[0-9a-f]{12}$/;

/** Whether this is the name of a directory that an interrupted installation left among the versions. */
export function isStagingName(name: string): boolean {
  return STAGING.test(name);
}

/** Runs `work` under the lock that serializes changes of versions. */
export async function withVersionLock<T>(
  paths: MachinePaths,
  work: () => Promise<T>,
  waitMs = 10_000,
): Promise<T> {
  await mkdir(paths.state, { recursive: true, mode: OWN_DIRECTORY_MODE });
  let entered = false;
  try {
    return await withWriteLock(paths.state, async () => {
      entered = true;
      await sweep(paths);
      return await work();
    }, { waitMs });
  } catch (error) {
    if (!entered && error instanceof ProjectError && error.diagnostics[0]?.code === "project.busy") {
      throw fail("install.busy", "another waft is installing or removing versions", {
        ...(error.diagnostics[0].file === undefined ? {} : { file: error.diagnostics[0].file }),
        help: "wait for it, or delete the file if no waft is running",
      });
    }
    throw error;
  }
}

/** Removes the leftovers of interrupted installations. */
async function sweep(paths: MachinePaths): Promise<void> {
  for (const name of await DISK.list(paths.versions)) {
    if (STAGING.test(name)) await rm(join(paths.versions, name), { recursive: true, force: true });
  }
  for (const folder of [paths.state, paths.bin]) {
    for (const name of await DISK.list(folder)) {
      if (/\.[0-9a-f]{12}\.tmp$/.test(name)) await rm(join(folder, name), { force: true });
    }
  }
}

/** The receipt of a version; undefined when it is not installed. */
export async function readReceipt(paths: MachinePaths, version: string): Promise<Receipt | undefined> {
  if (!isCanonicalVersion(version)) return undefined;
  const bytes = await DISK.read(join(paths.versions, version, RECEIPT), 1 << 16);
  if (bytes === undefined) return undefined;
  try {
    const receipt = JSON.parse(new TextDecoder().decode(bytes)) as Receipt;
    return receipt?.schemaVersion === 1 && receipt.version === version ? receipt : undefined;
  } catch {
    return undefined;
  }
}

/** All installed versions, the oldest first. */
export async function installedVersions(paths: MachinePaths): Promise<Receipt[]> {
  const receipts: Receipt[] = [];
  for (const name of await DISK.list(paths.versions)) {
    const receipt = await readReceipt(paths, name);
    if (receipt !== undefined) receipts.push(receipt);
  }
  return receipts.sort((a, b) => semver.compareBuild(a.version, b.version) || (a.installedAt < b.installedAt ? -1 : 1));
}

/** The active version and its predecessor; empty when nothing is active. */
export async function readActive(paths: MachinePaths): Promise<ActiveState> {
  const file = join(paths.state, "active.json");
  const bytes = await DISK.read(file, 1 << 12);
  if (bytes === undefined) return {};
  const damaged = fail("install.state", "the record of the active version is damaged", {
    file,
    help: "run `waft +<version> version use <version>` with an installed version",
  });
  let value: { readonly schemaVersion?: unknown; readonly current?: unknown; readonly previous?: unknown };
  try {
    value = JSON.parse(new TextDecoder().decode(bytes)) as typeof value;
  } catch {
    throw damaged;
  }
  if (value?.schemaVersion !== 1) throw damaged;
  const named = (version: unknown): string | undefined => {
    if (version === undefined) return undefined;
    if (typeof version !== "string" || !isCanonicalVersion(version)) throw damaged;
    return version;
  };
  const [current, previous] = [named(value.current), named(value.previous)];
  return { ...(current === undefined ? {} : { current }), ...(previous === undefined ? {} : { previous }) };
}

/** Activates another version, atomically. */
export async function writeActive(paths: MachinePaths, active: ActiveState, step: Step = () => {}): Promise<void> {
  step("activate");
  await replaceFile(join(paths.state, "active.json"), `${JSON.stringify({ schemaVersion: 1, ...active })}\n`);
  step("activated");
}

/** Files of a version and which of them are programs. */
export interface VersionFiles {
  readonly files: ReadonlyMap<string, Uint8Array>;
  readonly executables: ReadonlySet<string>;
}

/**
 * Installs a version: writes it beside the others, lets `check` try it, adds the receipt, renames. A failure before the
 * rename leaves no trace; a version previously installed under that name is replaced.
 */
export async function placeVersion(
  paths: MachinePaths,
  receipt: Receipt,
  { files, executables }: VersionFiles,
  check: (directory: string) => Promise<void>,
  step: Step = () => {},
): Promise<void> {
  const staging = join(paths.versions, `.staging-${randomHex(12)}`);
  const target = join(paths.versions, receipt.version);
  step("stage");
  await mkdir(staging, { recursive: true, mode: OWN_DIRECTORY_MODE });
  try {
    for (const [name, bytes] of files) {
      step(`write ${name}`);
      const path = join(staging, name);
      await mkdir(join(path, ".."), { recursive: true, mode: OWN_DIRECTORY_MODE });
      await DISK.create(path, bytes, executables.has(name) ? 0o755 : 0o644);
      // The user's programs must be executable under any umask.
      if (executables.has(name)) await chmod(path, 0o755);
    }
    step("check");
    await check(staging);
    step("receipt");
    await DISK.create(
      join(staging, RECEIPT),
      new TextEncoder().encode(`${JSON.stringify(receipt, null, 2)}\n`),
    );
    const exists = await DISK.status(target) !== undefined;
    if (exists) {
      step("replace");
      const old = join(paths.versions, `.old-${randomHex(12)}`);
      await rename(target, old);
      try {
        await DISK.rename(staging, target);
      } catch (error) {
        await rename(old, target);
        throw error;
      }
      await rm(old, { recursive: true, force: true });
    } else {
      step("rename");
      await DISK.rename(staging, target);
    }
    step("placed");
  } catch (error) {
    await rm(staging, { recursive: true, force: true });
    throw diskError(error, paths.versions);
  }
}

/** Takes a version away: first its name, then its files. */
export async function removeVersion(paths: MachinePaths, version: string, step: Step = () => {}): Promise<void> {
  const old = join(paths.versions, `.old-${randomHex(12)}`);
  step("remove");
  await rename(join(paths.versions, version), old);
  step("removed");
  await rm(old, { recursive: true, force: true });
}

/** A full disk in words; other errors as they are. */
export function diskError(error: unknown, place: string): unknown {
  const code = errorCode(error);
  const full = code === "ENOSPC" || code === "EDQUOT" ||
    (error instanceof Error && /os error 28\b/.test(error.message));
  if (!full) return error;
  return fail("install.disk-full", "no space left on the disk", {
    file: place,
    help:
      "nothing was changed; free some space (`waft version prune` removes versions that are not used) and try again",
  });
}

/** Names in a directory; none when there is no such directory. */
export async function namesIn(path: string): Promise<string[]> {
  return await readdir(path).catch(() => []);
}
