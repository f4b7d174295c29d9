/**
 * Builds everything that a release consists of, for one commit: `deno task release --out DIR --channel canary|nightly|official --key FILE`.
 *
 * In: a commit, a private key (Ed25519, PKCS#8 in PEM), the release site as it is (DIR of the run before, so that the index grows). Out: in DIR,
 * laid out as it is served: `install.sh`, `releases/index.json` with its signature, and below `releases/<version>/` bundles, source archive, npm packages
 * and `SHA256SUMS`. What cannot be built here is named, never skipped silently. Two runs for one commit give the same
 * archives; with the same `--now` also the same index. Design: §5. `--here DIR` only builds a bundle's directory of this tree.
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
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { writeArchive } from "../project/archive.ts";
import { BUNDLE_LIMITS, bundleFiles } from "../project/ops/version.ts";
import { platformName } from "../project/paths.ts";
import {
  parseReleaseIndex,
  type ReleaseArtifact,
  type ReleaseEntry,
  type ReleaseIndex,
  type ReleaseKeys,
} from "../project/release_index.ts";
import { BASE_URL } from "../project/site.ts";
import { VERSION } from "../project/version_string.ts";
import { canonicalVersion } from "../project/version.ts";
import { signingKeysOf } from "../registry/signing.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const MIN_DENO = "2.9.0";

/** Platforms and the npm packages that their Deno comes from. */
const PLATFORMS: readonly (readonly [platform: string, denoPackage: string])[] = [
  ["linux/amd64", "@deno/linux-x64-glibc"],
  ["linux/arm64", "@deno/linux-arm64-glibc"],
  ["darwin/amd64", "@deno/darwin-x64"],
  ["darwin/arm64", "@deno/darwin-arm64"],
];

/** Programs that are started by URL (workers, processes): their name in the bundle and their source. */
const PROGRAMS: readonly (readonly [name: string, source: string])[] = [
  ["socket_worker", "project/plugins/socket_worker.ts"],
  ["check_process", "registry/publish/check_process.ts"],
  ["thread_worker", "engine/wasi/thread_worker.ts"],
  ["script_thread", "engine/script/script_thread.ts"],
];

/** Files that are found by URL: what the sources say, what the bundle says, what is copied. */
const PLACES: readonly (readonly [from: string, to: string, copy?: readonly [string, string]])[] = [
  ['"../docs/"', '"./docs/"', ["docs", "lib/docs"]],
  ['"../examples/plugins/"', '"./examples/plugins/"', ["examples/plugins", "lib/examples/plugins"]],
  ['"../../installer/install.sh"', '"./installer/install.sh"', ["installer", "lib/installer"]],
  ['"../../bench/figures.json"', '"./bench/figures.json"', ["bench/figures.json", "lib/bench/figures.json"]],
  ["`./static/${name}`", "`./static/${name}`", ["registry/site/static", "lib/static"]],
  ['"./check_process.ts"', '"./check_process.js"'],
  ['"./socket_worker.ts"', '"./socket_worker.js"'],
  ["`./thread_worker.${suffix}`", '"./thread_worker.js"'],
  ["`./script_thread.${suffix}`", '"./script_thread.js"'],
  ['"./release-keys.json"', '"./release-keys.json"'],
  ['"."', '"."'],
  // The engine's files, whose names and times are part of what the cache of compiled modules goes by.
  ['".."', '"."'],
];

/** The first module: what needs no command is answered before anything is loaded. */
const ENTRY = (version: string): string =>
  `// A bundle runs on its own Deno; what is not loaded takes no time.
const args = Deno.args;
if (args.length === 1 && (args[0] === "--version" || args[0] === "-V")) console.log(${JSON.stringify(version)});
else Deno.exit(await start());

async function start() {
  const { default: process } = await import("node:process");
  const { pinnedVersion } = await import("./project/ops/pinned_version.ts");
  const { machinePaths } = await import("./project/paths.ts");
  const paths = machinePaths();
  let pinned;
  try {
    pinned = await pinnedVersion(process.cwd(), args, ${JSON.stringify(version)}, paths, process.env);
  } catch (error) {
    console.error(error.message);
    return error.exitCode ?? 1;
  }
  if (pinned === undefined) return await (await import("./cli.ts")).main(args);
  console.error(\`waft: using \${pinned.version}, since \${pinned.file} asks for \${pinned.range}\`);
  const { spawnSync } = await import("node:child_process");
  const { status } = spawnSync(paths.versions + "/" + pinned.version + "/waft", args, {
    stdio: "inherit",
    env: { ...process.env, WAFT_RUNTIME: pinned.version },
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

function setVersion(tree: string, version: string): void {
  const file = join(tree, "project", "version_string.ts");
  const text = readFileSync(file, "utf8");
  const changed = text.replace(/VERSION = "[^"]*"/, `VERSION = "${version}"`);
  if (!changed.includes(`"${version}"`)) throw new Error("project/version_string.ts has no version");
  writeFileSync(file, changed);
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
  const options = ["--quiet", "--node-modules-dir=auto", "--frozen", "--code-splitting", "--outdir", out];
  try {
    run(process.execPath, ["bundle", ...options, ...names], tree);
  } finally {
    for (const name of names) rmSync(join(tree, name));
  }
  const files = new Map<string, Uint8Array>();
  for (const [path, bytes] of filesBelow(out)) {
    files.set(`lib/${path}`, text(placeUrls(new TextDecoder().decode(bytes), path)));
  }
  rmSync(out, { recursive: true });
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

/** Rewrites what a module finds by URL for the flat folder of the bundle; throws for a URL that nobody thought of. */
export function placeUrls(module: string, name: string): string {
  return module.replace(
    /new URL\(("[^"]*"|`[^`]*`), import\.meta\.url\)/g,
    (whole, argument: string) => {
      const row = PLACES.find(([from]) => from === argument);
      if (row === undefined) throw new Error(`${name} has ${whole}, which has no place in a bundle (PLACES)`);
      return `new URL(${row[1]}, import.meta.url)`;
    },
  );
}

/** The Deno of a platform: from its npm package, or this very one; undefined when it cannot be had here. */
function denoOf(
  platform: string,
  name: string,
  version: string,
  own: boolean,
  scratch: string,
): Uint8Array | undefined {
  if (own) return platform === platformName() ? new Uint8Array(readFileSync(process.execPath)) : undefined;
  const folder = join(scratch, basename(name));
  mkdirSync(folder, { recursive: true });
  try {
    run("npm", ["pack", "--silent", "--pack-destination", folder, `${name}@${version}`], folder);
    const archive = readdirSync(folder).find((file) => file.endsWith(".tgz"))!;
    run("tar", ["-xzf", archive, "package/deno"], folder);
    return new Uint8Array(readFileSync(join(folder, "package", "deno")));
  } catch (error) {
    console.error(`left out: the bundle for ${platform}: ${(error as Error).message.split("\n").at(-1)}`);
    return undefined;
  } finally {
    rmSync(folder, { recursive: true, force: true });
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
  /** Takes this machine's Deno instead of asking npm. */
  readonly ownDeno: boolean;
  readonly npm: boolean;
}

/** The version that a commit is released as. */
export function versionFor(channel: string, commit: string, committed: Date): string {
  if (channel === "official") return VERSION;
  const stamp = committed.toISOString().replace(/\D/g, "").slice(0, 14);
  return `${VERSION}-${channel}.${stamp}.g${commit.slice(0, 7)}`;
}

/** Builds a release into its folder and adds it to the index; returns its version. */
export async function buildRelease(options: ReleaseOptions): Promise<string> {
  const commit = git("rev-parse", `${options.commit}^{commit}`);
  const committed = new Date(Number(git("show", "-s", "--format=%ct", commit)) * 1000);
  const version = versionFor(options.channel, commit, committed);
  if (options.channel === "official") {
    const tags = git("tag", "--points-at", commit).split("\n");
    if (!tags.includes(`v${version}`)) {
      throw new Error(`an official release is cut from its tag: ${commit} has no tag v${version}`);
    }
  }
  const signers = signingKeysOf(readFileSync(options.key, "utf8"));
  const keys: ReleaseKeys = { threshold: 1, keys: signers.map((key) => key.publicKey) };
  const scratch = mkdtempSync(join(tmpdir(), "waft-release-"));
  const artifacts: ReleaseArtifact[] = [];
  const folder = join(options.out, "releases", version);
  mkdirSync(folder, { recursive: true });
  const put = (name: string, bytes: Uint8Array, kind: ReleaseArtifact["kind"], platform: string): void => {
    writeFileSync(join(folder, name), bytes);
    const libc = platform.startsWith("linux/") ? { libc: "gnu" as const } : {};
    const url = `releases/${version}/${name}`;
    artifacts.push({ platform, ...libc, kind, url, size: bytes.length, sha256: sha256(bytes) });
    console.error(`made ${url} (${bytes.length} bytes)`);
  };
  try {
    const tree = exportTree(commit, version, scratch);
    const archived = (files: ReadonlyMap<string, Uint8Array>): Uint8Array =>
      writeArchive(new Map([...files].map(([path, bytes]) => [`waft-${version}/${path}`, bytes])), BUNDLE_LIMITS);
    put(`waft-${version}-source.tar.gz`, archived(filesBelow(tree)), "source", "any");
    if (options.npm) {
      const { buildNpm } = await import("./build_npm.ts");
      for (const path of buildNpm(join(scratch, "npm"), version)) {
        put(basename(path), new Uint8Array(readFileSync(path)), "npm", "any");
      }
    }
    const common = buildBundle(tree, version, keys);
    for (const [platform, name] of PLATFORMS) {
      if (!options.platforms.includes(platform)) continue;
      const deno = denoOf(platform, name, Deno.version.deno, options.ownDeno, scratch);
      if (deno === undefined) continue;
      const archive = new Map(common).set("deno", deno);
      bundleFiles(new Map([...archive].map(([path, bytes]) => [`waft-${version}/${path}`, bytes])), version);
      put(`waft-${version}-${platform.replace("/", "-")}.tar.gz`, archived(archive), "bundle", platform);
    }
    console.error("left out: standalone (the runtime that `deno compile` needs is not fetched by this script)");
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  writeFileSync(join(folder, "SHA256SUMS"), artifacts.map((a) => `${a.sha256}  ${basename(a.url)}\n`).join(""));
  const entry: ReleaseEntry = {
    publishedAt: isoSeconds(committed),
    commit,
    minDeno: MIN_DENO,
    artifacts,
  };
  writeIndex(options, version, entry, signers);
  const script = readFileSync(join(ROOT, "installer", "install.sh"), "utf8");
  const generated = installerFor(script, { version, entry, base: options.base, repository: options.repository, keys });
  writeFileSync(join(folder, "install.sh"), generated);
  // The address that people know installs official releases, once there is one.
  const index = readIndex(options.out)!;
  if (options.channel === "official" || index.channels.latest === undefined) {
    writeFileSync(join(options.out, "install.sh"), generated);
  }
  return version;
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
  const index: ReleaseIndex = {
    schemaVersion: 1,
    sequence: (before?.sequence ?? 0) + 1,
    expires: isoSeconds(new Date(options.now + options.expireDays * 86_400_000)),
    channels: { ...before?.channels, [options.channel === "official" ? "latest" : options.channel]: version },
    releases: { ...before?.releases, [version]: entry },
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
  const { values } = parseArgs({
    options: {
      out: { type: "string", default: "dist/release" },
      channel: { type: "string", default: "canary" },
      key: { type: "string" },
      keys: { type: "string" },
      commit: { type: "string", default: "HEAD" },
      base: { type: "string", default: BASE_URL },
      repository: { type: "string", default: "" },
      now: { type: "string" },
      "expire-days": { type: "string", default: "14" },
      platform: { type: "string", multiple: true },
      "own-deno": { type: "boolean", default: false },
      "no-npm": { type: "boolean", default: false },
      here: { type: "string" },
      version: { type: "string" },
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
      const version = await buildRelease({
        out: values.out,
        channel,
        key,
        commit: values.commit,
        base: values.base,
        repository: values.repository,
        now,
        expireDays,
        platforms: values.platform ?? PLATFORMS.map(([name]) => name),
        ownDeno: values["own-deno"],
        npm: !values["no-npm"],
      });
      console.log(version);
    }
  } catch (error) {
    console.error(`error: ${(error as Error).message}`);
    process.exit(1);
  }
}
