/**
 * Large real-world modules for measuring compile speed: files from npm packages, which the benchmark fetches with `npm
 * pack` into a cache folder outside the repository. Out: a path, or the reason why there is none (no network, no npm);
 * the report then leaves the row out.
 */
import { execFileSync, type ExecFileSyncOptions } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import process from "node:process";

/** A module of an npm package. */
export interface BigModule {
  name: string;
  package: string;
  version: string;
  file: string;
  /** Number of compilations after the first one. */
  warmRounds: { full: number; quick: number };
  /** The number of compiler threads of an additional row. */
  threads?: number;
}

export const BIG_MODULES: readonly BigModule[] = [
  {
    name: "sql-wasm",
    package: "sql.js",
    version: "1.16.0",
    file: "dist/sql-wasm.wasm",
    warmRounds: { full: 12, quick: 8 },
  },
  {
    name: "esbuild",
    package: "esbuild-wasm",
    version: "0.28.2",
    file: "esbuild.wasm",
    warmRounds: { full: 6, quick: 0 },
    threads: 2,
  },
];

/** The cache folder for fetched files: WAFT_BENCH_CACHE, else below the user's cache folder. */
export function cacheFolder(): string {
  const { WAFT_BENCH_CACHE: own, XDG_CACHE_HOME: xdg } = process.env;
  return own ?? join(xdg ?? join(homedir(), ".cache"), "waft-bench");
}

/** The path of `module`, fetched on first use, or the reason why it is not available. */
export function fetchModule({ package: name, version, file }: BigModule): { path: string } | { missing: string } {
  const folder = join(cacheFolder(), `${name}-${version}`);
  const path = join(folder, "package", file);
  if (existsSync(path)) return { path };
  try {
    mkdirSync(folder, { recursive: true });
    const options: ExecFileSyncOptions = { cwd: folder, stdio: ["ignore", "pipe", "ignore"], timeout: 120_000 };
    const packed = execFileSync("npm", ["pack", "--silent", `${name}@${version}`], options).toString().trim();
    execFileSync("tar", ["xzf", packed.split("\n").at(-1) ?? ""], options);
  } catch {
    return { missing: `npm cannot fetch ${name}@${version}` };
  }
  return existsSync(path) ? { path } : { missing: `${name}@${version} does not contain ${file}` };
}

/** The size of the code section in bytes, the basis of compile speed. */
export function codeSectionBytes(bytes: Uint8Array): number {
  let total = 0;
  for (let at = 8; at < bytes.length;) {
    const id = bytes[at++];
    let size = 0;
    for (let shift = 0;; shift += 7) {
      const byte = bytes[at++];
      size += (byte & 127) * 2 ** shift;
      if (byte < 128) break;
    }
    if (id === 10) total += size;
    at += size;
  }
  return total;
}
