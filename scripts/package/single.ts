/**
 * Builds waft as single executables with Bun: `deno task single [--out DIR] [--platform OS/ARCH]…`. In: this tree, and
 * Bun from npm for this machine and for each platform. Out: DIR/waft-OS-ARCH (`.exe` on Windows), after a check that
 * the one for this machine prints its version and runs examples/fib.wat. `buildSingles` does the same for a release.
 *
 * The input is the bundle of a release (release_bundle.ts) with the entry module single_entry.ts. Modules that are
 * loaded by URL (Workers, processes, late modules) are further entry points, so that the executable contains them under
 * the names by which they are loaded; code splitting keeps one instance of every shared module. Invariant: one version
 * of Bun for all platforms, whose archives have the digests of the table below.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { platformName } from "../../project/base/paths.ts";
import { VERSION } from "../../project/base/version_string.ts";
import { denoCache, fetchProgram } from "./pinned_deno.ts";
import { NATIVE_FILES } from "./native_modules.ts";
import { MODULES_BY_URL, placedModules } from "./release_bundle.ts";
import { executableName, run, say } from "./release_files.ts";
import { readTaskLine } from "../task_options.ts";
import { onCopy } from "./tree_copy.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BUN_VERSION = "1.4.5";

/** Bun for one platform. */
interface PinnedBun {
  readonly platform: string;
  /** The platform's name for `bun build --target`. */
  readonly target: string;
  readonly package: string;
  /** Digest of the package's archive: `sha512-` and base64. */
  readonly integrity: string;
}

// platform, target of `bun build` (`baseline` runs on every x64 processor), npm package, integrity
const ROWS: readonly (readonly [string, string, string, string])[] = [
  [
    "linux/amd64",
    "bun-linux-x64-baseline",
    "@oven/bun-linux-x64-baseline",
    "sha512-s8yMwYcFnnrA178gji0gZbkE2WVDej/Ti1x770oPfihxyRxSMNhGhiAQNXV53aDeraZxksdvKV/RAdQBCd0qPA==",
  ],
  [
    "linux/arm64",
    "bun-linux-arm64",
    "@oven/bun-linux-aarch64",
    "sha512-4BXmsSKnjOrlGWqZV4x/oWa7AVoR+B6lCXddMzOAXBIm3t50eslg9wb66gmtW1AamEQ1l1CDvmmruysEhqOWMg==",
  ],
  [
    "darwin/amd64",
    "bun-darwin-x64-baseline",
    "@oven/bun-darwin-x64-baseline",
    "sha512-zqfLA5A4B+hYMh5WYzYSot3uZ06FzhdP0OEwQisEzdirYtXGj5cQFlfy31BGfNsAsk1Gd/w/OxJ/jqqJ3cMclw==",
  ],
  [
    "darwin/arm64",
    "bun-darwin-arm64",
    "@oven/bun-darwin-aarch64",
    "sha512-4MIFXHmctH2EhAxLXm2/qxNtv17dFtLJylvaOCsrgq6KSqHTs6eW5YSrJjRbJxYUJaR901fsN8JfZOa+CsWpWQ==",
  ],
  [
    "windows/amd64",
    "bun-windows-x64-baseline",
    "@oven/bun-windows-x64-baseline",
    "sha512-/U3Dc74uGqE6EUqef7mPtg9KwJs7iJH4JHRMfIZIn18MrJh6Xz4gVvWDXRvzCL2j8wPlTnJVyrO4n7Qq4uM7TQ==",
  ],
];

const BUNS: readonly PinnedBun[] = ROWS.map(([platform, target, name, integrity]) => ({
  platform,
  target,
  package: name,
  integrity,
}));

/** The row of a platform; throws an Error for an unknown one. */
function pinnedBun(platform: string): PinnedBun {
  const row = BUNS.find((bun) => bun.platform === platform);
  if (row !== undefined) return row;
  throw new Error(`no single executable for ${platform}; platforms: ${BUNS.map((bun) => bun.platform).join(", ")}`);
}

/** Writes the executable of Bun for a platform into a folder; returns its path. */
function placeBun({ platform, package: name, integrity }: PinnedBun, folder: string, cache: string): string {
  const program = executableName("bun", platform);
  const file = join(folder, program);
  mkdirSync(folder, { recursive: true });
  const row = { package: name, version: BUN_VERSION, integrity };
  writeFileSync(file, fetchProgram(row, `bin/${program}`, cache), { mode: 0o755 });
  return file;
}

/**
 * By default Bun's executables read these files of the current directory when they start: `bunfig.toml` names modules
 * that run first, `.env` sets variables such as WAFT_HOME. A guest that may write there must not gain either.
 */
const WITHOUT_CONFIGURATION = ["bunfig", "dotenv", "tsconfig", "package-json"].map((name) =>
  `--no-compile-autoload-${name}`
);

/**
 * Writes the bundle's modules and images into `folder`. Bundling writes beside the sources, hence a copy of the tree.
 */
function writeModules(tree: string, version: string, folder: string): void {
  mkdirSync(folder, { recursive: true });
  const { modules, images } = placedModules(tree, version, 'import "./single_entry.ts";\n');
  for (const [path, contents] of [...modules, ...images]) writeFileSync(join(folder, path), contents);
}

/** Images keep the names by which they are read. */
const IMAGE_OPTIONS = ["--loader=.bin:file", "--asset-naming=[name].[ext]"];

/** The images that are read on a platform: native threads compile on Linux alone. Modules contain the rest. */
function imagesFor(platform: string): string[] {
  const [os, arch] = platform.split("/");
  const suffix = `_${arch === "amd64" ? "x64" : arch}.bin`;
  return os === "linux" ? NATIVE_FILES.map(({ name }) => name).filter((name) => name.endsWith(suffix)) : [];
}

/** The executable's name for a platform, such as `waft-windows-amd64.exe`. */
function singleName(platform: string): string {
  return executableName(`waft-${platform.replace("/", "-")}`, platform);
}

/**
 * Builds the executables of platforms into `out`, from a tree that nothing else uses at the time.
 * Throws an Error if a part of Bun cannot be fetched, or if Bun fails.
 */
export function buildSingles(
  { tree, version, out, platforms, cache = denoCache() }: {
    readonly tree: string;
    readonly version: string;
    readonly out: string;
    readonly platforms: readonly string[];
    readonly cache?: string;
  },
): { platform: string; file: string }[] {
  const rows = platforms.map(pinnedBun);
  const scratch = mkdtempSync(join(tmpdir(), "waft-single-"));
  try {
    const own = placeBun(pinnedBun(platformName()), join(scratch, "own"), cache);
    say("bundling for single executables");
    const modules = join(scratch, "modules");
    writeModules(tree, version, modules);
    mkdirSync(out, { recursive: true });
    return rows.map((row) => {
      const file = join(out, singleName(row.platform));
      const source = placeBun(row, join(scratch, "bun"), cache);
      const options = ["--compile", "--bytecode", "--format=esm", "--splitting", `--target=${row.target}`];
      const files = ["waft.js", ...MODULES_BY_URL, ...imagesFor(row.platform), "--outfile", file];
      run(
        own,
        [
          "build",
          ...options,
          ...IMAGE_OPTIONS,
          ...WITHOUT_CONFIGURATION,
          `--compile-executable-path=${source}`,
          ...files,
        ],
        modules,
      );
      say(`made ${file}`);
      return { platform: row.platform, file };
    });
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Runs an executable; throws an Error if it does not print `expected`. */
function requireOutput(file: string, words: readonly string[], expected: string): void {
  const { status, stdout, stderr } = spawnSync(file, words, { cwd: ROOT, encoding: "utf8", timeout: 60_000 });
  if (status === 0 && stdout.trim() === expected) return;
  throw new Error(`${file} ${words.join(" ")} gave ${JSON.stringify(stdout)} and status ${status}:\n${stderr}`);
}

if (import.meta.main) {
  const { values } = readTaskLine({
    name: "task single",
    about: "Builds waft as single executables that need neither Deno nor Node, and runs the one for this machine.",
    options: {
      out: { value: "DIR", help: "output folder", default: "dist/single" },
      platform: { value: "OS/ARCH", help: "build for this platform (default: this machine's); repeatable", many: true },
    },
  });
  const platforms = values.platform.length > 0 ? values.platform : [platformName()];
  try {
    const out = resolve(ROOT, values.out);
    for (const { platform, file } of onCopy(ROOT, (tree) => buildSingles({ tree, version: VERSION, out, platforms }))) {
      if (platform === platformName()) {
        requireOutput(file, ["--version"], VERSION);
        requireOutput(file, ["run", "examples/fib.wat", "10"], "55");
      }
      console.log(file);
    }
  } catch (error) {
    console.error(`error: ${(error as Error).message}`);
    process.exit(1);
  }
}
