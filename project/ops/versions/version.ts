/**
 * The version manager: installs, selects, rolls back and removes versions of waft.
 *
 * In: targets (`canary`, `nightly`, `latest`, an exact version) and the machine's directories. Out: a record of
 * the action. A version is installed only after its signature, freshness, size, SHA-256, archive layout and a first
 * start have been checked. Invariant: a single rename installs it; a failure at any point before leaves the machine
 * unchanged. Versions are installed side by side: `use` and `rollback` only change the active one.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import semver from "semver";
import { ARCHIVE_LIMITS, readArchive } from "../../packages/archive.ts";
import { fail, quote } from "../../base/diagnostic.ts";
import { DISK } from "../../base/files.ts";
import { digestBytes } from "../../base/integrity.ts";
import type { MachinePaths } from "../../base/paths.ts";
import { bundleLayout } from "../../versions/bundle_layout.ts";
import { downloadArtifact, fetchIndex, type ReleaseSite } from "../../versions/release_download.ts";
import { artifactFor, type ReleaseIndex, versionOfTarget } from "../../versions/release_index.ts";
import { canonicalVersion, isCanonicalVersion } from "../../base/version.ts";
import {
  type ActiveState,
  diskError,
  installedVersions,
  placeVersion,
  readActive,
  readReceipt,
  type Receipt,
  removeVersion,
  type Step,
  type VersionFiles,
  withVersionLock,
  writeActive,
} from "../../versions/version_store.ts";
import { type Channel, channelOf, channelOfReceipt } from "./version_channel.ts";

/** The context of the version operations. */
export interface VersionContext {
  readonly paths: MachinePaths;
  readonly platform: string;
  readonly libc?: string;
  readonly site: () => ReleaseSite;
  /** Starts the version in a directory; the text that its `--version` prints. */
  readonly start: (directory: string) => Promise<string>;
  readonly step?: Step;
  readonly now?: () => number;
}

/** Bounds of a bundle's archive. */
export const BUNDLE_LIMITS = {
  ...ARCHIVE_LIMITS,
  packedBytes: 256 << 20,
  unpackedBytes: 512 << 20,
  fileBytes: 320 << 20,
  files: 2000,
} as const;

/** The files that a bundle may hold, and those it must hold. */
const ALLOWED = /^(?:LICENSE|README\.md|lib\/[0-9A-Za-z_][0-9A-Za-z._/-]*)$/;
const REQUIRED = ["lib/waft.js", "lib/release-keys.json"];

/**
 * The files of a bundle without their common folder. Throws for a file that does not belong in a bundle, or a missing
 * one.
 */
export function bundleFiles(
  archive: ReadonlyMap<string, Uint8Array>,
  version: string,
  platform: string,
): VersionFiles {
  const folder = `waft-${version}/`;
  const { command, deno, start, launcher } = bundleLayout(platform);
  const own = [command, deno, start];
  const files = new Map<string, Uint8Array>();
  for (const [path, bytes] of archive) {
    const name = path.startsWith(folder) ? path.slice(folder.length) : undefined;
    if (name === undefined || !(own.includes(name) || ALLOWED.test(name))) {
      throw fail("archive.contents", `${quote(path)} does not belong in a bundle of ${version}`);
    }
    files.set(name, bytes);
  }
  for (const name of [...own, launcher, ...REQUIRED]) {
    if (!files.has(name)) throw fail("archive.contents", `the bundle of ${version} lacks ${name}`);
  }
  return { files, executables: new Set([command, deno]) };
}

/** The result of an installation. */
export interface InstallResult {
  readonly version: string;
  readonly already: boolean;
  /** True when it is the active version now: nothing was active before, or a build of sources of its name. */
  readonly activated: boolean;
}

/** Installs the version that `target` denotes now. */
export async function installVersion(context: VersionContext, target: string): Promise<InstallResult> {
  const { paths } = context;
  const exact = canonicalVersion(target);
  if (exact !== undefined && await hasRelease(paths, exact)) {
    return { version: exact, already: true, activated: false };
  }
  if (exact === undefined && !["canary", "nightly", "latest", "official", "stable"].includes(target)) {
    throw fail("usage.target", `${quote(target)} is neither a channel nor a version`, {
      help: "canary, nightly, latest, or an exact version such as 0.3.1",
    });
  }
  const site = context.site();
  try {
    const index = await fetchIndex(site);
    return await installFrom(context, site, index, versionOfTarget(index, exact ?? target));
  } catch (error) {
    throw diskError(error, paths.cache);
  }
}

/** Tells whether this release is installed. A build from a checkout may have the same name; the release replaces it. */
async function hasRelease(paths: MachinePaths, version: string): Promise<boolean> {
  const receipt = await readReceipt(paths, version);
  return receipt !== undefined && channelOfReceipt(receipt) !== "source";
}

async function installFrom(
  context: VersionContext,
  site: ReleaseSite,
  index: ReleaseIndex,
  version: string,
): Promise<InstallResult> {
  const { paths, step } = context;
  if (await hasRelease(paths, version)) return { version, already: true, activated: false };
  const artifact = artifactFor(index, version, context.platform, context.libc);
  step?.("download");
  const packed = await downloadArtifact(site, artifact);
  step?.("downloaded");
  const bytes = (await DISK.read(packed, BUNDLE_LIMITS.packedBytes))!;
  // Another process that downloads the same file may still append to it.
  if (digestBytes(bytes) !== `sha256:${artifact.sha256}`) {
    await rm(packed, { force: true });
    throw fail("release.hash", `the download of ${version} changed after it was checked`, {
      help: "nothing was installed, and the download was deleted; run the command again",
    });
  }
  const files = bundleFiles(readArchive(bytes, BUNDLE_LIMITS), version, context.platform);
  return await withVersionLock(paths, async () => {
    if (await hasRelease(paths, version)) return { version, already: true, activated: false };
    await placeVersion(
      paths,
      {
        schemaVersion: 1,
        version,
        kind: "bundle",
        platform: context.platform,
        commit: index.releases[version].commit,
        sha256: artifact.sha256,
        installedAt: new Date((context.now ?? Date.now)()).toISOString(),
      },
      files,
      (directory) => tryVersion(context, directory, version),
      step,
    );
    // The version is installed: remove only its download, which is no longer needed.
    await rm(packed, { force: true });
    const active = await readActive(paths).catch(() => ({} as ActiveState));
    if (active.current !== undefined) return { version, already: false, activated: active.current === version };
    await writeActive(paths, { current: version }, step);
    return { version, already: false, activated: true };
  });
}

/**
 * Starts a program that has just been written. A process forked by another thread may hold the file open for writing
 * until it calls exec (ETXTBSY); in that case the start is retried.
 */
async function startWritten(start: () => Promise<string>): Promise<string> {
  for (let attempt = 0;; attempt++) {
    try {
      return await start();
    } catch (error) {
      if (attempt === 20 || !/text file busy|ETXTBSY/i.test(String((error as Error).message))) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

/** Throws unless the version in a directory starts and says that it is that version. */
export async function tryVersion(context: VersionContext, directory: string, version: string): Promise<void> {
  let printed: string;
  try {
    printed = (await startWritten(() => context.start(directory))).trim();
  } catch (error) {
    throw fail(
      "install.start",
      `${version} does not start on this machine: ${quote(String((error as Error).message))}`,
      {
        help: "nothing was installed; the active version is unchanged",
      },
    );
  }
  if (printed !== version) {
    throw fail("install.start", `the bundle of ${version} identifies itself as ${quote(printed)}`, {
      help: "nothing was installed",
    });
  }
}

/** The installed version that a target denotes: exact, `previous`, or the newest version of a channel. */
export async function installedTarget(paths: MachinePaths, target: string): Promise<string> {
  const installed = await installedVersions(paths);
  const exact = canonicalVersion(target);
  if (exact !== undefined && installed.some((r) => r.version === exact)) return exact;
  const channel = target === "latest" || target === "stable" ? "official" : target;
  const ofChannel = installed.filter((r) => channelOfReceipt(r) === channel);
  if (ofChannel.length > 0) return ofChannel.at(-1)!.version;
  const names = installed.map((r) => r.version).join(", ") || "none";
  throw fail("release.unknown", `${quote(target)} is not installed (installed: ${names})`, {
    help: isCanonicalVersion(target) || ["canary", "nightly", "official"].includes(channel)
      ? `waft version install ${target}`
      : "give canary, nightly, latest or an exact version",
  });
}

/** Activates an installed version. */
export async function useVersion(
  context: VersionContext,
  target: string,
): Promise<{ readonly version: string; readonly previous?: string }> {
  const { paths } = context;
  return await withVersionLock(paths, async () => {
    const version = await installedTarget(paths, target);
    // This command also repairs a damaged record.
    const active = await readActive(paths).catch(() => ({} as ActiveState));
    if (active.current === version) return { version };
    await writeActive(
      paths,
      { current: version, ...(active.current === undefined ? {} : { previous: active.current }) },
      context.step,
    );
    return { version, ...(active.current === undefined ? {} : { previous: active.current }) };
  });
}

/** Returns to the previously active version. */
export async function rollbackVersion(
  context: VersionContext,
): Promise<{ readonly version: string; readonly previous?: string }> {
  const { paths } = context;
  return await withVersionLock(paths, async () => {
    const { current, previous } = await readActive(paths);
    if (previous === undefined) throw fail("release.unknown", "no earlier version is recorded");
    if (await readReceipt(paths, previous) === undefined) {
      throw fail("release.unknown", `the previous version, ${previous}, is no longer installed`, {
        help: `waft version install ${previous}`,
      });
    }
    await writeActive(
      paths,
      { current: previous, ...(current === undefined ? {} : { previous: current }) },
      context.step,
    );
    return { version: previous, ...(current === undefined ? {} : { previous: current }) };
  });
}

/** The channel that the active version updates from. A build from a checkout updates to the newest official release. */
async function updateChannel(paths: MachinePaths, current: string | undefined): Promise<string> {
  if (current === undefined) return "latest";
  const receipt = await readReceipt(paths, current);
  const channel = receipt === undefined ? channelOf(current) : channelOfReceipt(receipt);
  return channel === "source" ? "latest" : channel;
}

/** Installs and activates the version that the active version's channel offers now. */
export async function updateVersion(
  context: VersionContext,
): Promise<InstallResult & { readonly from?: string }> {
  const { current } = await readActive(context.paths);
  const channel = await updateChannel(context.paths, current);
  const site = context.site();
  let result: InstallResult;
  try {
    const index = await fetchIndex(site);
    const version = versionOfTarget(index, channel);
    if (current !== undefined && semver.compareBuild(version, current) < 0) {
      throw fail("release.rollback", `${channel} offers ${version}, which is older than the active ${current}`, {
        help: `to install it anyway: waft version install ${version} && waft version use ${version}`,
      });
    }
    result = await installFrom(context, site, index, version);
  } catch (error) {
    throw diskError(error, context.paths.cache);
  }
  if (result.version !== current) await useVersion(context, result.version);
  return {
    ...result,
    activated: result.activated || result.version !== current,
    ...(current === undefined ? {} : { from: current }),
  };
}

/** Removes an installed version; removes the active one only on explicit request. */
export async function uninstallVersion(
  context: VersionContext,
  version: string,
  force = false,
): Promise<{ readonly version: string; readonly active?: string }> {
  const { paths } = context;
  return await withVersionLock(paths, async () => {
    const exact = canonicalVersion(version) ?? version;
    const installed = await installedVersions(paths);
    if (!installed.some((r) => r.version === exact)) {
      throw fail("release.unknown", `${quote(version)} is not installed`, { help: "waft version list" });
    }
    const { current, previous } = await readActive(paths);
    if (current === exact) {
      const next = previous !== undefined && previous !== exact && installed.some((r) => r.version === previous)
        ? previous
        : undefined;
      if (!force || next === undefined) {
        throw fail("usage.active", `${exact} is the active version`, {
          help: next === undefined
            ? "use another version first, or remove everything with `waft self uninstall`"
            : `use another version first, or give --force to go back to ${next}`,
        });
      }
      await writeActive(paths, { current: next }, context.step);
      await removeVersion(paths, exact, context.step);
      return { version: exact, active: next };
    }
    if (previous === exact && current !== undefined) await writeActive(paths, { current }, context.step);
    await removeVersion(paths, exact, context.step);
    return { version: exact, ...(current === undefined ? {} : { active: current }) };
  });
}

/** Removes all versions except the active and the previous one, and aborted downloads. */
export async function pruneVersions(context: VersionContext): Promise<{ readonly removed: readonly string[] }> {
  const { paths } = context;
  return await withVersionLock(paths, async () => {
    const { current, previous } = await readActive(paths);
    const removed: string[] = [];
    for (const { version } of await installedVersions(paths)) {
      if (version === current || version === previous) continue;
      await removeVersion(paths, version, context.step);
      removed.push(version);
    }
    await rm(join(paths.cache, "downloads"), { recursive: true, force: true });
    return { removed };
  });
}

/** A version in the list. */
export interface ListedVersion {
  readonly version: string;
  readonly channel: Channel;
  readonly active: boolean;
  readonly previous: boolean;
  readonly receipt: Receipt;
}

/** Lists the installed versions. */
export async function listVersions(paths: MachinePaths): Promise<ListedVersion[]> {
  const { current, previous } = await readActive(paths);
  return (await installedVersions(paths)).map((receipt) => ({
    version: receipt.version,
    channel: channelOfReceipt(receipt),
    active: receipt.version === current,
    previous: receipt.version === previous,
    receipt,
  }));
}
