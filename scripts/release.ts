/**
 * Builds everything that a release consists of, for one commit: `deno task release --out DIR --channel canary|nightly|official --key FILE`.
 *
 * In: a commit, a private key (Ed25519, PKCS#8 in PEM), the release site as it is (DIR of the run before, so that the index grows). Out: in DIR,
 * laid out as it is served: `install.sh`, `releases/index.json` with its signature, and below `releases/<version>/` bundles, programs of `deno compile`,
 * source archive, packages for npm and JSR, and `SHA256SUMS` with its signature. Everything is made of the commit, nothing of the work tree. What
 * cannot be built is an error, but for programs whose runtime binary is not to be had: those are named and left out. Two runs for one
 * commit with one version of Deno give the same archives; with the same `--now` also the same index. Of canary and nightly the newest `--keep` stay. Design: §5.
 * `--here DIR` only builds a bundle's directory of this tree.
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
import { writeArchive } from "../project/packages/archive.ts";
import { BUNDLE_LIMITS, bundleFiles } from "../project/ops/version.ts";
import { platformName } from "../project/base/paths.ts";
import type { ReleaseArtifact, ReleaseEntry, ReleaseKeys } from "../project/versions/release_index.ts";
import { BASE_URL } from "../project/base/site.ts";
import { VERSION } from "../project/base/version_string.ts";
import { canonicalVersion, isCanonicalVersion } from "../project/base/version.ts";
import { signingKeysOf } from "../registry/signing.ts";
import { denoCache, fetchDeno, PINNED_DENO, pinnedDeno } from "./pinned_deno.ts";
import { buildBundle } from "./release_bundle.ts";
import { filesBelow, run, say, sha256 } from "./release_files.ts";
import { installerFor, isoSeconds, readIndex, removeOld, writeIndex } from "./release_site.ts";
import { readTaskLine } from "./task_options.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const MIN_DENO = "2.9.0";

function git(...args: string[]): string {
  return run("git", args, ROOT).toString().trim();
}

/** The tree of a commit in a directory of its own, as the version that it is released as. */
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

/** Where a tree says which version it is. */
const VERSION_LINES: readonly (readonly [file: string, line: RegExp])[] = [
  ["project/base/version_string.ts", /(VERSION = ")[^"]*(")/],
  ["deno.json", /("version": ")[^"]*(")/],
  ["engine/deno.json", /("version": ")[^"]*(")/],
];

function setVersion(tree: string, version: string): void {
  for (const [name, line] of VERSION_LINES) {
    const file = join(tree, name);
    const text = readFileSync(file, "utf8");
    if (!line.test(text)) throw new Error(`${name} has no version`);
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
  /** Takes this machine's Deno for this machine's platform, instead of the pinned one. */
  readonly ownDeno: boolean;
  /** Where fetched Denos are kept. */
  readonly cache: string;
  /** A folder with runtime binaries for `deno compile`. */
  readonly denort?: string;
  /** Builds the packages for npm and JSR, too. */
  readonly packages: boolean;
  /** How many releases of canary and of nightly stay. */
  readonly keep: number;
}

/** The version that a commit is released as: its own for an official release, one with channel, time and commit otherwise. */
export function versionFor(channel: string, own: string, commit: string, committed: Date): string {
  if (channel === "official") return own;
  const stamp = committed.toISOString().replace(/\D/g, "").slice(0, 14);
  return `${own}-${channel}.${stamp}.g${commit.slice(0, 7)}`;
}

/** Builds a release into its folder and adds it to the index; returns its version. */
export async function buildRelease(options: ReleaseOptions): Promise<string> {
  const commit = git("rev-parse", `${options.commit}^{commit}`);
  const committed = new Date(Number(git("show", "-s", "--format=%ct", commit)) * 1000);
  const own = /VERSION = "([^"]*)"/.exec(git("show", `${commit}:project/base/version_string.ts`))?.[1] ?? "";
  const version = versionFor(options.channel, own, commit, committed);
  if (!isCanonicalVersion(version)) throw new Error(`${commit} says that it is version "${own}", which is none`);
  if (options.channel === "official") {
    const tags = git("tag", "--points-at", commit).split("\n");
    if (!tags.includes(`v${version}`)) {
      throw new Error(`an official release is cut from its tag: ${commit} has no tag v${version}`);
    }
  }
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
  const put = (name: string, bytes: Uint8Array, kind: ReleaseArtifact["kind"], platform: string): void => {
    writeFileSync(join(unfinished, name), bytes);
    const libc = platform.startsWith("linux/") ? { libc: "gnu" as const } : {};
    const url = `releases/${version}/${name}`;
    artifacts.push({ platform, ...libc, kind, url, size: bytes.length, sha256: sha256(bytes) });
    say(`made ${name} (${(bytes.length / (1 << 20)).toFixed(1)} MiB)`);
  };
  let script: string;
  try {
    const tree = exportTree(commit, version, scratch);
    script = readFileSync(join(tree, "installer", "install.sh"), "utf8");
    const archived = (files: ReadonlyMap<string, Uint8Array>): Uint8Array =>
      writeArchive(new Map([...files].map(([path, bytes]) => [`waft-${version}/${path}`, bytes])), BUNDLE_LIMITS);
    put(`waft-${version}-source.tar.gz`, archived(filesBelow(tree)), "source", "any");
    if (options.packages) {
      const { buildNpm } = await import("./build_npm.ts");
      for (const path of buildNpm(join(scratch, "npm"), version, tree)) {
        put(basename(path), new Uint8Array(readFileSync(path)), "npm", "any");
      }
      const { buildJsr } = await import("./jsr_package.ts");
      for (const { name, version: sent, archive } of await buildJsr(tree)) {
        if (sent !== version) throw new Error(`deno publish sends ${name} as ${sent}`);
        put(`${name.replace("@", "").replace("/", "-")}-${version}-jsr.tar.gz`, archive, "jsr", "any");
      }
    } else say("left out: packages for npm and JSR, as told");
    say("bundling");
    const common = buildBundle(tree, version, keys);
    for (const [at, pinned] of platforms.entries()) {
      const { platform } = pinned;
      const name = `waft-${version}-${platform.replace("/", "-")}`;
      const own = options.ownDeno && platform === platformName();
      say(`${platform} (${at + 1} of ${platforms.length}): Deno ${own ? Deno.version.deno : pinned.version}`);
      const deno = own ? new Uint8Array(readFileSync(process.execPath)) : fetchDeno(pinned, options.cache);
      const archive = new Map(common).set("deno", deno);
      bundleFiles(new Map([...archive].map(([path, bytes]) => [`waft-${version}/${path}`, bytes])), version);
      put(`${name}.tar.gz`, archived(archive), "bundle", platform);
      const program = join(scratch, "standalone");
      const { denort } = options;
      const { compileStandalone } = await import("./compile.ts");
      const without = compileStandalone({
        files: common,
        out: program,
        target: pinned.target,
        ...(denort === undefined ? {} : { denort }),
      });
      if (without !== undefined) say(`left out: ${name}-standalone.tar.gz: ${without}`);
      else {
        const files = new Map([["waft", new Uint8Array(readFileSync(program))], ["LICENSE", common.get("LICENSE")!]]);
        put(`${name}-standalone.tar.gz`, archived(files), "standalone", platform);
      }
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  const sums = new TextEncoder().encode(artifacts.map((a) => `${a.sha256}  ${basename(a.url)}\n`).join(""));
  writeFileSync(join(unfinished, "SHA256SUMS"), sums);
  // One key a line: install.sh reads it.
  writeFileSync(
    join(unfinished, "SHA256SUMS.sig"),
    signers.map((key) => `${key.id} ${sign(null, sums, createPrivateKey(key.privateKey)).toString("base64")}\n`).join(
      "",
    ),
  );
  const entry: ReleaseEntry = {
    publishedAt: isoSeconds(committed),
    commit,
    minDeno: MIN_DENO,
    artifacts,
  };
  const generated = installerFor(script, { version, entry, base: options.base, repository: options.repository, keys });
  writeFileSync(join(unfinished, "install.sh"), generated);
  // What the site names is there before it is named.
  rmSync(folder, { recursive: true, force: true });
  renameSync(unfinished, folder);
  writeIndex(options, version, entry, signers);
  // The address that people know installs official releases, once there is one.
  const index = readIndex(options.out)!;
  if (options.channel === "official" || index.channels.latest === undefined) {
    writeFileSync(join(options.out, "install.sh"), generated);
  }
  removeOld(options.out, index);
  return version;
}

/** A bundle's directory, built of this tree and started by the Deno that runs this. */
function buildHere(out: string, version: string, keysFile: string | undefined): void {
  const keys = keysFile !== undefined && existsSync(keysFile)
    ? JSON.parse(readFileSync(keysFile, "utf8")) as ReleaseKeys
    : undefined;
  setVersion(ROOT, version);
  for (const [path, bytes] of buildBundle(ROOT, version, keys ?? { threshold: 1, keys: [] })) {
    mkdirSync(join(out, path, ".."), { recursive: true });
    writeFileSync(join(out, path), bytes);
  }
  copyFileSync(process.execPath, join(out, "deno"));
  for (const name of ["deno", "waft"]) chmodSync(join(out, name), 0o755);
}

if (import.meta.main) {
  const { values } = readTaskLine({
    name: "task release",
    about: "Builds what a release consists of, for one commit, into a folder that any server of files can serve.",
    options: {
      out: {
        value: "DIR",
        help: "that folder; keep it between runs, so that the index grows",
        default: "dist/release",
      },
      channel: { value: "NAME", help: "canary, nightly or official", default: "canary" },
      key: { value: "FILE", help: "the private keys that sign: Ed25519, PKCS#8 in PEM" },
      commit: { value: "COMMIT", help: "what is built", default: "HEAD" },
      base: { value: "URL", help: "where it will be served", default: BASE_URL },
      repository: { value: "URL", help: "what install.sh clones for --from-source", default: "" },
      platform: { value: "OS/ARCH", help: "only this one; may be given again", many: true },
      "no-packages": { help: "nothing for npm and JSR" },
      keep: { value: "N", help: "releases of canary and of nightly that stay", default: "20" },
      "expire-days": { value: "N", help: "how long the index is valid", default: "14" },
      now: { value: "TIME", help: "the index's time" },
      "own-deno": { help: "the Deno that runs this instead of the pinned one" },
      cache: { value: "DIR", help: "where what was fetched is kept", default: denoCache() },
      denort: { value: "DIR", help: "where Deno's runtime binaries are" },
      here: { value: "DIR", help: "only a bundle's folder, of this tree" },
      version: { value: "VERSION", help: "with --here: its version" },
      keys: { value: "FILE", help: "with --here: the keys that it trusts" },
    },
  });
  try {
    if (values.here !== undefined) {
      const version = canonicalVersion(values.version || VERSION);
      if (version === undefined) throw new Error(`"${values.version}" is no version`);
      buildHere(values.here, version, values.keys);
    } else {
      const { channel, key } = values;
      if (channel !== "canary" && channel !== "nightly" && channel !== "official") {
        throw new Error(`"${channel}" is no channel: canary, nightly or official`);
      }
      if (key === undefined) throw new Error("--key names the file with the private key that signs the index");
      const now = values.now === undefined ? Date.now() : Date.parse(values.now);
      const expireDays = Number(values["expire-days"]);
      if (!Number.isFinite(now) || !(expireDays > 0)) throw new Error("--now is a time, --expire-days a number");
      const keep = Number(values.keep);
      if (!Number.isSafeInteger(keep) || keep < 1) throw new Error("--keep is a number of releases, at least 1");
      const version = await buildRelease({
        out: values.out,
        channel,
        key,
        commit: values.commit,
        base: values.base,
        repository: values.repository,
        now,
        expireDays,
        platforms: values.platform.length > 0 ? values.platform : PINNED_DENO.map(({ platform }) => platform),
        ownDeno: values["own-deno"],
        cache: values.cache,
        ...(values.denort === undefined ? {} : { denort: values.denort }),
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
