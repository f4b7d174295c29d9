/**
 * Builds all parts of a release from one commit: `deno task release --out DIR --channel canary|nightly|official --key
 * FILE`.
 *
 * In: a commit, a private key (Ed25519, PKCS#8 in PEM), the current release site (DIR of the previous run, so that the
 * index grows). Out: in DIR, in the layout in which it is served: `install.sh`, `releases/index.json` with its
 * signature, and below `releases/<version>/` bundles, single executables, the source archive, packages for npm and JSR,
 * and `SHA256SUMS` with its signature. All inputs come from the commit, none from the work tree. A part that cannot be
 * built is an error. Two runs for one commit with one version of Deno give the same archives, and with the same `--now`
 * also the same index. The newest `--keep` releases of canary and of nightly stay. `--here DIR` only builds a bundle's
 * directory from this tree.
 */
import { createPrivateKey, sign } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { writeArchive } from "../../project/packages/archive.ts";
import { BUNDLE_LIMITS, bundleFiles } from "../../project/ops/versions/version.ts";
import { platformName } from "../../project/base/paths.ts";
import { bundledScripts, bundleLayout } from "../../project/versions/bundle_layout.ts";
import type { ReleaseArtifact, ReleaseEntry, ReleaseKeys } from "../../project/versions/release_index.ts";
import { BASE_URL } from "../../project/base/constants.ts";
import { VERSION } from "../../project/base/version_string.ts";
import { canonicalVersion, isCanonicalVersion } from "../../project/base/version.ts";
import { signingKeysOf } from "../../registry/signing.ts";
import { denoCache, fetchDeno, PINNED_DENO, type PinnedDeno, pinnedDeno } from "./pinned_deno.ts";
import { buildBundle } from "./release_bundle.ts";
import { executableName, filesBelow, run, say, sha256 } from "./release_files.ts";
import { releaseManifests, releaseNotes } from "./release_manifests.ts";
import { installerFor, isoSeconds, removeOld, windowsInstallerFor, writeIndex } from "./release_site.ts";
import { readTaskLine } from "../task_options.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const MIN_DENO = "2.9.0";
/** Bounds of the archive of sources, which no version manager reads. */
const SOURCE_LIMITS = { ...BUNDLE_LIMITS, files: 20_000 } as const;

function git(...args: string[]): string {
  return run("git", args, ROOT).toString().trim();
}

/** Exports the tree of a commit into a directory, with the version of the release. */
function exportTree(commit: string, version: string, scratch: string): string {
  const tree = join(scratch, "tree");
  mkdirSync(tree);
  const tar = join(scratch, "tree.tar");
  run("git", ["archive", "--format=tar", "--output", tar, commit], ROOT);
  run("tar", ["-xf", tar, "-C", tree], scratch);
  rmSync(tar);
  setVersion(tree, version);
  return tree;
}

/** The places in a tree that state its version. */
const VERSION_LINES: readonly (readonly [file: string, line: RegExp])[] = [
  ["project/base/version_string.ts", /(VERSION = ")[^"]*(")/],
  ["deno.json", /("version": ")[^"]*(")/],
  ["engine/deno.json", /("version": ")[^"]*(")/],
  ["component/deno.json", /("version": ")[^"]*(")/],
];

function setVersion(tree: string, version: string): void {
  for (const [name, line] of VERSION_LINES) {
    const file = join(tree, name);
    const text = readFileSync(file, "utf8");
    if (!line.test(text)) throw new Error(`${name} states no version`);
    writeFileSync(file, text.replace(line, (_, before: string, after: string) => `${before}${version}${after}`));
  }
}

interface ReleaseOptions {
  readonly out: string;
  readonly channel: "canary" | "nightly" | "official";
  readonly key: string;
  readonly commit: string;
  readonly base: string;
  readonly repository: string;
  readonly now: number;
  readonly expireDays: number;
  readonly platforms: readonly string[];
  /** Use this machine's Deno for this machine's platform, instead of the pinned one. */
  readonly ownDeno: boolean;
  /** Cache folder for fetched Denos. */
  readonly cache: string;
  /** Also build single executables, with Bun from npm. */
  readonly singles: boolean;
  /** Also build the packages for npm and JSR. */
  readonly packages: boolean;
  /** Number of releases of canary and of nightly to keep. */
  readonly keep: number;
}

/** The version of a release: the commit's own for an official one, else with channel, time and commit. */
export function versionFor(channel: string, own: string, commit: string, committed: Date): string {
  if (channel === "official") return own;
  const stamp = committed.toISOString().replace(/\D/g, "").slice(0, 14);
  return `${own}-${channel}.${stamp}.g${commit.slice(0, 7)}`;
}

/** Writes an artifact to the folder of the release and records it. */
type Put = (name: string, bytes: Uint8Array, kind: ReleaseArtifact["kind"], platform: string) => void;

/** Builds a release into its folder and adds it to the index; returns its version. */
async function buildRelease(options: ReleaseOptions): Promise<string> {
  const { commit, committed, version } = releaseOf(options);
  const platforms = options.platforms.map(pinnedDeno);
  const signers = signingKeysOf(readFileSync(options.key, "utf8"));
  const keys: ReleaseKeys = { threshold: 1, keys: signers.map((key) => key.publicKey) };
  say(
    `building ${version} of ${commit.slice(0, 12)} with Deno ${Deno.version.deno} for ${options.platforms.join(", ")}`,
  );
  const scratch = mkdtempSync(join(tmpdir(), "waft-release-"));
  const artifacts: ReleaseArtifact[] = [];
  const folder = join(options.out, "releases", version);
  const unfinished = `${folder}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  const put: Put = (name, bytes, kind, platform) => {
    writeFileSync(join(unfinished, name), bytes);
    const libc = platform.startsWith("linux/") ? { libc: "gnu" as const } : {};
    const url = `releases/${version}/${name}`;
    artifacts.push({ platform, ...libc, kind, url, size: bytes.length, sha256: sha256(bytes) });
    say(`made ${name} (${(bytes.length / (1 << 20)).toFixed(1)} MiB)`);
  };
  let script: string, windowsScript: string, notes: string;
  try {
    const tree = exportTree(commit, version, scratch);
    script = readFileSync(join(tree, "installer", "install.sh"), "utf8");
    windowsScript = readFileSync(join(tree, "installer", "install.ps1"), "utf8");
    notes = releaseNotes(readFileSync(join(tree, "CHANGELOG.md"), "utf8"), version);
    put(`waft-${version}-source.tar.gz`, archiveOf(filesBelow(tree), version, SOURCE_LIMITS), "source", "any");
    if (options.packages) await putPackages(tree, version, scratch, put);
    else say("left out: packages for npm and JSR (--no-packages)");
    say("bundling");
    await putBundles(options, platforms, version, tree, keys, scratch, put);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  writeSums(unfinished, artifacts, signers);
  const entry: ReleaseEntry = {
    publishedAt: isoSeconds(committed),
    commit,
    minDeno: MIN_DENO,
    artifacts,
  };
  const generated = installerFor(script, { version, entry, base: options.base, repository: options.repository, keys });
  writeFileSync(join(unfinished, "install.sh"), generated);
  const generatedForWindows = windowsInstallerFor(windowsScript, { version, entry, base: options.base });
  writeFileSync(join(unfinished, "install.ps1"), generatedForWindows);
  writeFileSync(join(unfinished, "release-notes.md"), notes);
  for (const [name, text] of releaseManifests({ version, entry, base: options.base })) {
    writeFileSync(join(unfinished, name), text);
  }
  // Files exist before the index names them.
  rmSync(folder, { recursive: true, force: true });
  renameSync(unfinished, folder);
  const index = writeIndex(options, version, entry, signers);
  // The top-level installer installs official releases, once one exists.
  if (options.channel === "official" || index.channels.latest === undefined) {
    writeFileSync(join(options.out, "install.sh"), generated);
    writeFileSync(join(options.out, "install.ps1"), generatedForWindows);
  }
  removeOld(options.out, index);
  return version;
}

/**
 * Resolves the commit, its time and the version of the release; throws an Error if the commit does not fit the channel.
 */
function releaseOf({ commit: name, channel }: ReleaseOptions): { commit: string; committed: Date; version: string } {
  const commit = git("rev-parse", `${name}^{commit}`);
  const committed = new Date(Number(git("show", "-s", "--format=%ct", commit)) * 1000);
  const own = /VERSION = "([^"]*)"/.exec(git("show", `${commit}:project/base/version_string.ts`))?.[1] ?? "";
  const version = versionFor(channel, own, commit, committed);
  if (!isCanonicalVersion(version)) throw new Error(`${commit} states the version "${own}", which is not valid`);
  if (channel === "official" && !git("tag", "--points-at", commit).split("\n").includes(`v${version}`)) {
    throw new Error(`official releases are built from their tag: ${commit} has no tag v${version}`);
  }
  return { commit, committed, version };
}

/** A canonical archive of files below a folder `waft-VERSION`. */
function archiveOf(
  files: ReadonlyMap<string, Uint8Array>,
  version: string,
  limits: typeof BUNDLE_LIMITS | typeof SOURCE_LIMITS = BUNDLE_LIMITS,
): Uint8Array {
  return writeArchive(below(files, version), limits);
}

function below(files: ReadonlyMap<string, Uint8Array>, version: string): Map<string, Uint8Array> {
  return new Map([...files].map(([path, bytes]) => [`waft-${version}/${path}`, bytes]));
}

/** Adds the packages for npm and JSR. */
async function putPackages(tree: string, version: string, scratch: string, put: Put): Promise<void> {
  const { buildNpm } = await import("./build_npm.ts");
  for (const path of await buildNpm(join(scratch, "npm"), { version, root: tree })) {
    put(basename(path), new Uint8Array(readFileSync(path)), "npm", "any");
  }
  const { buildJsr } = await import("./jsr_package.ts");
  for (const { name, version: sent, archive } of await buildJsr(tree)) {
    if (sent !== version) throw new Error(`deno publish sends ${name} as ${sent}`);
    put(`${name.replace("@", "").replace("/", "-")}-${version}-jsr.tar.gz`, archive, "jsr", "any");
  }
}

/** Adds, per platform, the bundle and the single executable. */
async function putBundles(
  { ownDeno, cache, singles }: ReleaseOptions,
  platforms: readonly PinnedDeno[],
  version: string,
  tree: string,
  keys: ReleaseKeys,
  scratch: string,
  put: Put,
): Promise<void> {
  const common = buildBundle(tree, version, keys);
  for (const [at, pinned] of platforms.entries()) {
    const { platform } = pinned;
    const own = ownDeno && platform === platformName();
    say(`${platform} (${at + 1} of ${platforms.length}): Deno ${own ? Deno.version.deno : pinned.version}`);
    const deno = own ? new Uint8Array(readFileSync(process.execPath)) : fetchDeno(pinned, cache);
    const bundle = new Map(common).set(bundleLayout(platform).deno, deno);
    for (const [name, bytes] of scriptsOf(tree, platform)) bundle.set(name, bytes);
    bundleFiles(below(bundle, version), version, platform); // throws if the bundle is not complete
    put(`${archiveName(version, platform)}.tar.gz`, archiveOf(bundle, version), "bundle", platform);
  }
  if (!singles) return say("left out: single executables (--no-singles)");
  const { buildSingles } = await import("./single.ts");
  const names = platforms.map(({ platform }) => platform);
  for (
    const { platform, file } of buildSingles({ tree, version, out: join(scratch, "singles"), platforms: names, cache })
  ) {
    const program = new Uint8Array(readFileSync(file));
    const files = new Map([[executableName("waft", platform), program], ["LICENSE", common.get("LICENSE")!]]);
    put(`${archiveName(version, platform)}-standalone.tar.gz`, archiveOf(files, version), "standalone", platform);
  }
}

/** The scripts of installer/ in the directory of a version. */
function scriptsOf(tree: string, platform: string): [string, Uint8Array][] {
  return bundledScripts(platform).map(([name, source]) => [
    name,
    new Uint8Array(readFileSync(join(tree, "installer", source))),
  ]);
}

function archiveName(version: string, platform: string): string {
  return `waft-${version}-${platform.replace("/", "-")}`;
}

/** Writes SHA256SUMS and its signatures, one key a line, since install.sh reads them. */
function writeSums(
  folder: string,
  artifacts: readonly ReleaseArtifact[],
  signers: ReturnType<typeof signingKeysOf>,
): void {
  const sums = new TextEncoder().encode(artifacts.map((a) => `${a.sha256}  ${basename(a.url)}\n`).join(""));
  writeFileSync(join(folder, "SHA256SUMS"), sums);
  const lines = signers.map((key) =>
    `${key.id} ${sign(null, sums, createPrivateKey(key.privateKey)).toString("base64")}\n`
  );
  writeFileSync(join(folder, "SHA256SUMS.sig"), lines.join(""));
}

/** Builds a bundle's directory from this tree, with the Deno that runs this script. */
function buildHere(out: string, version: string, keysFile: string | undefined): void {
  const keys = keysFile !== undefined && existsSync(keysFile)
    ? JSON.parse(readFileSync(keysFile, "utf8")) as ReleaseKeys
    : undefined;
  setVersion(ROOT, version);
  for (const [path, bytes] of buildBundle(ROOT, version, keys ?? { threshold: 1, keys: [] })) {
    mkdirSync(join(out, path, ".."), { recursive: true });
    writeFileSync(join(out, path), bytes);
  }
  const { deno, command } = bundleLayout(platformName());
  for (const [name, bytes] of scriptsOf(ROOT, platformName())) writeFileSync(join(out, name), bytes);
  copyFileSync(process.execPath, join(out, deno));
  for (const name of [deno, command]) chmodSync(join(out, name), 0o755);
}

if (import.meta.main) {
  const { values } = readTaskLine({
    name: "task release",
    about: "Builds all parts of a release from one commit, into a folder for any static file server.",
    options: {
      out: {
        value: "DIR",
        help: "release site; keep it between runs, so that the index grows",
        default: "dist/release",
      },
      channel: {
        value: "NAME",
        words: ["canary", "nightly", "official"],
        help: "canary, nightly or official",
        default: "canary",
      },
      key: { value: "FILE", help: "private signing keys: Ed25519, PKCS#8 in PEM" },
      commit: { value: "COMMIT", help: "commit to build", default: "HEAD" },
      base: { value: "URL", help: "address of the release site", default: BASE_URL },
      repository: { value: "URL", help: "repository that install.sh clones for --from-source", default: "" },
      platform: { value: "OS/ARCH", help: "build only this platform; repeatable", many: true },
      "no-singles": { help: "do not build single executables" },
      "no-packages": { help: "do not build the packages for npm and JSR" },
      keep: { value: "N", least: 1, help: "number of releases of canary and of nightly to keep", default: "20" },
      "expire-days": { value: "N", least: 1, help: "validity of the index, in days", default: "14" },
      now: { value: "TIME", help: "time of the index; the current time by default" },
      "own-deno": { help: "use the Deno that runs this script instead of the pinned one" },
      cache: { value: "DIR", help: "cache folder for fetched files", default: denoCache() },
      here: { value: "DIR", help: "only build a bundle's directory, from this tree" },
      version: { value: "VERSION", help: "with --here: its version" },
      keys: { value: "FILE", help: "with --here: the release keys that it trusts" },
    },
  });
  try {
    if (values.here !== undefined) {
      const version = canonicalVersion(values.version || VERSION);
      if (version === undefined) throw new Error(`"${values.version}" is not a version`);
      buildHere(values.here, version, values.keys);
    } else {
      const { channel, key, keep } = values;
      if (key === undefined) throw new Error("--key is missing: it names the file with the private signing keys");
      const now = values.now === undefined ? Date.now() : Date.parse(values.now);
      if (!Number.isFinite(now)) throw new Error(`--now takes a time, such as 2026-01-31, not "${values.now}"`);
      const version = await buildRelease({
        out: values.out,
        channel,
        key,
        commit: values.commit,
        base: values.base,
        repository: values.repository,
        now,
        expireDays: values["expire-days"],
        platforms: values.platform.length > 0 ? values.platform : PINNED_DENO.map(({ platform }) => platform),
        ownDeno: values["own-deno"],
        cache: values.cache,
        singles: !values["no-singles"],
        packages: !values["no-packages"],
        keep,
      });
      console.log(version);
    }
  } catch (error) {
    console.error(`error: ${(error as Error).message}`);
    process.exit(1);
  }
}
