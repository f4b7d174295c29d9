/**
 * Updates the release site, a folder of static files: the signed index, the retention of releases, and the installer.
 * In: the folder and the artifacts of a new release. Out: the folder's files.
 */
import { createPrivateKey, sign } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import semver from "semver";
import { channelOf } from "../../project/ops/versions/version_channel.ts";
import {
  parseReleaseIndex,
  type ReleaseEntry,
  type ReleaseIndex,
  type ReleaseKeys,
} from "../../project/versions/release_index.ts";
import type { signingKeysOf } from "../../registry/signing.ts";
import { say } from "./release_files.ts";

/** Removes the files of releases that are no longer in the index. */
export function removeOld(out: string, index: ReleaseIndex): void {
  for (const name of readdirSync(join(out, "releases"))) {
    const folder = join(out, "releases", name);
    if (!statSync(folder).isDirectory() || Object.hasOwn(index.releases, name)) continue;
    say(`removing ${name}, which newer releases of its channel supersede`);
    rmSync(folder, { recursive: true });
  }
}

/** The releases to keep: official ones, targets of channels, the newest `keep` of canary and of nightly. */
export function keptReleases(
  releases: ReleaseIndex["releases"],
  channels: ReleaseIndex["channels"],
  keep: number,
): ReleaseIndex["releases"] {
  const named = new Set(Object.values(channels));
  const newest = Object.keys(releases).sort((a, b) => -semver.compareBuild(a, b));
  const seen = new Map<string, number>();
  const kept = newest.filter((version) => {
    const channel = channelOf(version);
    const before = seen.get(channel) ?? 0;
    seen.set(channel, before + 1);
    return channel === "official" || before < keep || named.has(version);
  });
  return Object.fromEntries(Object.entries(releases).filter(([version]) => kept.includes(version)));
}

export function isoSeconds(date: Date): string {
  return date.toISOString().replace(/\.[0-9]+Z$/, "Z");
}

function readIndex(out: string): ReleaseIndex | undefined {
  const file = join(out, "releases", "index.json");
  return existsSync(file) ? parseReleaseIndex(new Uint8Array(readFileSync(file)), file) : undefined;
}

/**
 * Adds the release to the index, updates its channel, and signs with every key; returns the index. Old keys sign, too,
 * as long as some machines trust only them.
 */
export function writeIndex(
  options: {
    readonly out: string;
    readonly channel: string;
    /** Milliseconds since 1970. */
    readonly now: number;
    readonly expireDays: number;
    /** Number of releases of canary and of nightly to keep. */
    readonly keep: number;
  },
  version: string,
  entry: ReleaseEntry,
  signers: ReturnType<typeof signingKeysOf>,
): ReleaseIndex {
  const before = readIndex(options.out);
  const channels = { ...before?.channels, [options.channel === "official" ? "latest" : options.channel]: version };
  const index: ReleaseIndex = {
    schemaVersion: 1,
    sequence: (before?.sequence ?? 0) + 1,
    expires: isoSeconds(new Date(options.now + options.expireDays * 86_400_000)),
    channels,
    releases: keptReleases({ ...before?.releases, [version]: entry }, channels, options.keep),
  };
  const bytes = new TextEncoder().encode(`${JSON.stringify(index, null, 2)}\n`);
  parseReleaseIndex(bytes, "the new index");
  const signatures = signers.map((key) => ({
    keyId: key.id,
    value: sign(null, bytes, createPrivateKey(key.privateKey)).toString("base64"),
  }));
  const file = join(options.out, "releases", "index.json");
  writeFileSync(file, bytes);
  writeFileSync(`${file}.sig`, `${JSON.stringify({ signatures }, null, 2)}\n`);
  return index;
}

/** A release for which an installer is generated. */
interface InstalledRelease {
  readonly version: string;
  readonly entry: ReleaseEntry;
  readonly base: string;
}

/** Generates install.sh of a release: the script with the release's values, among them the digests of the bundles. */
export function installerFor(
  script: string,
  { version, entry, base, repository, keys }: InstalledRelease & {
    readonly repository: string;
    readonly keys: ReleaseKeys;
  },
): string {
  const values = {
    RELEASE_VERSION: version,
    RELEASE_COMMIT: entry.commit,
    RELEASE_BASE: base,
    RELEASE_MIN_DENO: entry.minDeno,
    RELEASE_REPOSITORY: repository,
    RELEASE_SOURCE_SHA256: entry.artifacts.find((a) => a.kind === "source")?.sha256 ?? "",
    RELEASE_KEYS: JSON.stringify(keys),
    RELEASE_BUNDLES: bundleDigests(entry),
  };
  return withValues(script, "install.sh", values, (name) => `${name}=`);
}

/** Generates install.ps1 of a release. */
export function windowsInstallerFor(script: string, { version, entry, base }: InstalledRelease): string {
  const values = {
    RELEASE_VERSION: version,
    RELEASE_COMMIT: entry.commit,
    RELEASE_BASE: base,
    RELEASE_BUNDLES: bundleDigests(entry),
  };
  return withValues(script, "install.ps1", values, (name) => `$${name} = `);
}

/** A line with platform and digest for each bundle. */
function bundleDigests({ artifacts }: ReleaseEntry): string {
  return artifacts.filter(({ kind }) => kind === "bundle").map((a) => `${a.platform} ${a.sha256}`).join("\n");
}

/**
 * Sets the variables of a script: `assignment` is the text before a variable's value in single quotes. Throws an Error
 * for a variable that the script does not assign in one line, and for a value with a single quote.
 */
function withValues(
  script: string,
  file: string,
  values: Readonly<Record<string, string>>,
  assignment: (name: string) => string,
): string {
  let text = script;
  for (const [name, value] of Object.entries(values)) {
    if (value.includes("'")) throw new Error(`${name} contains a single quote`);
    const start = assignment(name);
    const line = new RegExp(`^${start.replace("$", "\\$")}'[^']*'$`, "m");
    if (!line.test(text)) throw new Error(`installer/${file} has no line ${start}''`);
    text = text.replace(line, () => `${start}'${value}'`);
  }
  return text;
}
