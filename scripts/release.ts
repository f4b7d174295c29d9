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
import { spawnSync } from "node:child_process";
import { createHash, createPrivateKey, sign } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { writeArchive } from "../project/packages/archive.ts";
import semver from "semver";
import { channelOf } from "../project/ops/version_channel.ts";
import { BUNDLE_LIMITS, bundleFiles } from "../project/ops/version.ts";
import { platformName } from "../project/base/paths.ts";
import {
  parseReleaseIndex,
  type ReleaseArtifact,
  type ReleaseEntry,
  type ReleaseIndex,
  type ReleaseKeys,
} from "../project/versions/release_index.ts";
import { BASE_URL } from "../project/base/site.ts";
import { VERSION } from "../project/base/version_string.ts";
import { canonicalVersion, isCanonicalVersion } from "../project/base/version.ts";
import { signingKeysOf } from "../registry/signing.ts";
import { compileEagerly } from "./eager_functions.ts";
import { denoCache, fetchDeno, PINNED_DENO, pinnedDeno } from "./pinned_deno.ts";
import { functionsThatRun } from "./quick_profile.ts";
import { readTaskLine } from "./task_options.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const MIN_DENO = "2.9.0";

/** Programs that are started by URL (workers, processes): their name in the bundle and their source. */
const PROGRAMS: readonly (readonly [name: string, source: string])[] = [
  ["socket_worker", "project/plugins/socket_worker.ts"],
  ["check_process", "registry/publish/check_process.ts"],
  ["compile_worker", "engine/compile_worker.ts"],
  ["thread_worker", "engine/wasi/thread_worker.ts"],
  ["script_thread", "engine/script/script_thread.ts"],
];

/** Stands for a hash over all modules of the bundle, until they are known. */
const BUILD_MARK = "build-of-waft";

/** Stands for the engine's stamp (engine/link/engine_stamp.ts), which takes time to compute. */
const STAMP_MARK = "stamp-of-waft";

/** Files that are found by URL: what the sources say, what the bundle says, what is copied. */
const PLACES: readonly (readonly [from: string, to: string, copy?: readonly [string, string]])[] = [
  ['"../docs/"', '"./docs/"', ["docs", "lib/docs"]],
  ['"../examples/plugins/"', '"./examples/plugins/"', ["examples/plugins", "lib/examples/plugins"]],
  ['"../../installer/install.sh"', '"./installer/install.sh"', ["installer", "lib/installer"]],
  ['"../../bench/figures.json"', '"./bench/figures.json"', ["bench/figures.json", "lib/bench/figures.json"]],
  ["`./static/${name}`", "`./static/${name}`", ["registry/site/static", "lib/static"]],
  ['"./check_process.ts"', '"./check_process.js"'],
  ['"./socket_worker.ts"', '"./socket_worker.js"'],
  ["`./compile_worker.${suffix}`", '"./compile_worker.js"'],
  ["`./thread_worker.${suffix}`", '"./thread_worker.js"'],
  ["`./script_thread.${suffix}`", '"./script_thread.js"'],
  ['"./release-keys.json"', '"./release-keys.json"'],
  ['"."', '"."'],
  // What the cache of compiled modules goes by instead of the times of the engine's sources.
  ['".."', `"data:,${BUILD_MARK}"`],
];

/** What runs a module from the cache, in one file of its own: each file takes time, and so does code in it that is not needed. */
const QUICK = "./quick_run.js";
const QUICK_FILE = "lib/quick_run.js";
const QUICK_SOURCE = "project/commands/quick_run.ts";

/** The first module: what needs no command is answered before anything is loaded. */
const ENTRY = (version: string): string =>
  `// A bundle runs on its own Deno; what is not loaded takes no time.
const args = Deno.args;
if (args.length === 1 && (args[0] === "--version" || args[0] === "-V")) console.log(${JSON.stringify(version)});
else Deno.exit(await quickly() ?? await start());

async function quickly() {
  if (args[0] === "run") return await (await import(String(${JSON.stringify(QUICK)}))).runQuickly(args.slice(1));
}

async function start() {
  const { pinnedVersion } = await import("./project/ops/pinned_version.ts");
  const { machinePaths } = await import("./project/base/paths.ts");
  const paths = machinePaths();
  let pinned;
  try {
    pinned = await pinnedVersion(Deno.cwd(), args, ${JSON.stringify(version)}, paths, {
      WAFT_RUNTIME: Deno.env.get("WAFT_RUNTIME"),
    });
  } catch (error) {
    console.error(error.message);
    return error.exitCode ?? 1;
  }
  if (pinned === undefined) return await (await import("./cli.ts")).runCommand(args);
  console.error(\`waft: using \${pinned.version}, since \${pinned.file} asks for \${pinned.range}\`);
  const { spawnSync } = await import("node:child_process");
  const { status } = spawnSync(paths.versions + "/" + pinned.version + "/waft", args, {
    stdio: "inherit",
    env: { ...Deno.env.toObject(), WAFT_RUNTIME: pinned.version },
  });
  return status ?? 1;
}
`;

function run(command: string, args: readonly string[], cwd: string): Uint8Array {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    maxBuffer: 1 << 28,
    env: { ...process.env, NO_COLOR: "1" },
  });
  if (status !== 0) throw new Error(`${command} ${args[0]} failed: ${error?.message ?? stderr.toString().trim()}`);
  return stdout;
}

function git(...args: string[]): string {
  return run("git", args, ROOT).toString().trim();
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** The files below a directory, by path; what tests and Git keep for themselves is left out by `keep`. */
function filesBelow(root: string, prefix = "", keep: (path: string) => boolean = () => true): Map<string, Uint8Array> {
  const files = new Map<string, Uint8Array>();
  for (const name of readdirSync(join(root, prefix)).sort()) {
    const path = prefix === "" ? name : `${prefix}/${name}`;
    if (!keep(path)) continue;
    if (statSync(join(root, path)).isDirectory()) {
      for (const [inner, bytes] of filesBelow(root, path, keep)) files.set(inner, bytes);
    } else files.set(path, new Uint8Array(readFileSync(join(root, path))));
  }
  return files;
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

/** What is the same in the bundles of all platforms. */
export function buildBundle(tree: string, version: string, keys: ReleaseKeys | undefined): Map<string, Uint8Array> {
  const text = (content: string): Uint8Array => new TextEncoder().encode(content);
  const entries: [string, string][] = [["waft", ENTRY(version)]];
  for (const [name, source] of PROGRAMS) entries.push([name, `import "./${source}";\n`]);
  const names = entries.map(([name, content]) => {
    const file = `${name}.ts`;
    if (existsSync(join(tree, file))) throw new Error(`the tree has a file ${file} already`);
    writeFileSync(join(tree, file), content);
    return file;
  });
  const out = join(tree, "bundled");
  const quick = join(tree, "bundled_quick");
  const options = ["--quiet", "--node-modules-dir=auto", "--frozen", "--outdir"];
  try {
    run(process.execPath, ["bundle", ...options, out, "--code-splitting", ...names], tree);
    run(process.execPath, ["bundle", ...options, quick, "--minify", QUICK_SOURCE], tree);
  } finally {
    for (const name of names) rmSync(join(tree, name));
  }
  const stamp = engineStampOf(tree);
  const files = new Map<string, Uint8Array>();
  const bundled = new Map([...filesBelow(out), ...filesBelow(quick)]);
  const build = sha256(new TextEncoder().encode([...bundled.values()].map(sha256).join(""))).slice(0, 32);
  for (const [path, bytes] of bundled) {
    const module = loadLate(placeUrls(new TextDecoder().decode(bytes), path)).replaceAll(BUILD_MARK, build)
      .replaceAll(STAMP_MARK, stamp);
    files.set(`lib/${path}`, text(module));
  }
  const quickModule = new TextDecoder().decode(files.get(QUICK_FILE));
  files.set(QUICK_FILE, text(compileEagerly(quickModule, functionsThatRun(files, "lib/waft.js", QUICK_FILE))));
  for (const folder of [out, quick]) rmSync(folder, { recursive: true });
  for (const [, , copy] of PLACES) {
    if (copy === undefined || !existsSync(join(tree, copy[0]))) continue;
    const [from, to] = copy;
    if (!statSync(join(tree, from)).isDirectory()) files.set(to, new Uint8Array(readFileSync(join(tree, from))));
    else for (const [path, bytes] of filesBelow(join(tree, from))) files.set(`${to}/${path}`, bytes);
  }
  const installer = (name: string): Uint8Array => new Uint8Array(readFileSync(join(tree, "installer", name)));
  files.set("waft", installer("waft.sh"));
  files.set("start", installer("start.sh"));
  files.set("LICENSE", new Uint8Array(readFileSync(join(tree, "LICENSE"))));
  if (keys !== undefined) files.set("lib/release-keys.json", text(`${JSON.stringify(keys, null, 2)}\n`));
  return files;
}

/** The stamp of a tree's engine. */
function engineStampOf(tree: string): string {
  const file = join(tree, "engine/link/engine_stamp.ts");
  const program = `import { engineStamp } from ${
    JSON.stringify(pathToFileURL(file).href)
  }; console.log(engineStamp());`;
  return run(process.execPath, ["eval", "--no-check", program], tree).toString().trim();
}

/** Rewrites what a module finds by URL for the flat folder of the bundle; throws for a URL that nobody thought of. */
export function placeUrls(module: string, name: string): string {
  return module.replace(
    /new URL\(("[^"]*"|`[^`]*`), ?import\.meta\.url\)/g,
    (whole, argument: string) => {
      const row = PLACES.find(([from]) => from === argument);
      if (row === undefined) throw new Error(`${name} has ${whole}, which has no place in a bundle (PLACES)`);
      return `new URL(${row[1]}, import.meta.url)`;
    },
  );
}

/**
 * Hides the names of modules that are imported later: Deno reads, hashes and parses all that it can foresee before the first one runs, which
 * takes longer than everything that `waft --version` does.
 */
export function loadLate(module: string): string {
  return module.replace(/\bimport\(("\.\/[\w.-]+")\)/g, "import(String($1))");
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

/** Says on stderr what is being done, since much of it takes long. */
function say(text: string): void {
  console.error(`${new Date().toISOString().slice(11, 19)} ${text}`);
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

/** Removes the files of releases that are not in the index any more. */
function removeOld(out: string, index: ReleaseIndex): void {
  for (const name of readdirSync(join(out, "releases"))) {
    const folder = join(out, "releases", name);
    if (!statSync(folder).isDirectory() || Object.hasOwn(index.releases, name)) continue;
    say(`removing ${name}, which newer releases of its channel replace`);
    rmSync(folder, { recursive: true });
  }
}

/** What stays of an index's releases: official ones, what channels point at, the newest `keep` of canary and of nightly. */
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

function isoSeconds(date: Date): string {
  return date.toISOString().replace(/\.[0-9]+Z$/, "Z");
}

function readIndex(out: string): ReleaseIndex | undefined {
  const file = join(out, "releases", "index.json");
  return existsSync(file) ? parseReleaseIndex(new Uint8Array(readFileSync(file)), file) : undefined;
}

/** Adds the release, moves its channel, and signs with every key: old ones, too, while machines trust them only. */
function writeIndex(
  options: ReleaseOptions,
  version: string,
  entry: ReleaseEntry,
  signers: ReturnType<typeof signingKeysOf>,
): void {
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
}

/** The installer of a release: its digests are in it. */
export function installerFor(
  script: string,
  release: {
    readonly version: string;
    readonly entry: ReleaseEntry;
    readonly base: string;
    readonly repository: string;
    readonly keys: ReleaseKeys;
  },
): string {
  const { version, entry, base, repository, keys } = release;
  const bundles = entry.artifacts.filter((a) => a.kind === "bundle").map((a) => `${a.platform} ${a.sha256}`);
  const values: { readonly [name: string]: string } = {
    RELEASE_VERSION: version,
    RELEASE_COMMIT: entry.commit,
    RELEASE_BASE: base,
    RELEASE_MIN_DENO: entry.minDeno,
    RELEASE_REPOSITORY: repository,
    RELEASE_SOURCE_SHA256: entry.artifacts.find((a) => a.kind === "source")?.sha256 ?? "",
    RELEASE_KEYS: JSON.stringify(keys),
    RELEASE_BUNDLES: bundles.join("\n"),
  };
  let text = script;
  for (const [name, value] of Object.entries(values)) {
    if (value.includes("'")) throw new Error(`${name} holds a quote`);
    const line = new RegExp(`^${name}='[^']*'$`, "m");
    if (!line.test(text)) throw new Error(`installer/install.sh has no line ${name}=''`);
    text = text.replace(line, () => `${name}='${value}'`);
  }
  return text;
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
