/**
 * npm packages that only tests use: 110 MB that users of the command must not download, so they are listed in
 * packages/package.json and not in deno.json. In: a package's name, or a folder with such a list. Out: the package,
 * installed with `npm ci` into .cache/ of the tree on first use.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const LISTS = fileURLToPath(new URL("./packages/", import.meta.url));
const CACHE = fileURLToPath(new URL("../../.cache/test-packages/", import.meta.url));

/**
 * Installs the packages that `lists` locks; returns the folder whose node_modules contains them. Throws an Error with
 * npm's output if that fails.
 */
export function installPackages(lists: string): string {
  const lock = readFileSync(join(lists, "package-lock.json"));
  const folder = join(CACHE, createHash("sha256").update(lock).digest("hex").slice(0, 16));
  if (existsSync(folder)) return folder;
  mkdirSync(CACHE, { recursive: true });
  // Test processes may install concurrently: each uses its own scratch folder, and the first to finish renames it.
  const scratch = mkdtempSync(join(CACHE, "new-"));
  try {
    for (const name of ["package.json", "package-lock.json"]) copyFileSync(join(lists, name), join(scratch, name));
    const args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
    const { status, stderr, error } = spawnSync("npm", args, { cwd: scratch, encoding: "utf8" });
    if (status !== 0) throw new Error(`Cannot install the packages of the tests: ${error?.message ?? stderr}`);
    try {
      renameSync(scratch, folder);
    } catch (problem) {
      if (!existsSync(folder)) throw problem;
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return folder;
}

/** The folder of a package. */
export function packageFolder(name: "binaryen" | "wabt"): string {
  return join(installPackages(LISTS), "node_modules", name);
}

/** The used subset of wabt. */
interface Wabt {
  parseWat(name: string, text: string | Uint8Array, features: Record<string, boolean>): {
    toBinary(options: { canonicalize_lebs?: boolean; write_debug_names?: boolean }): { buffer: Uint8Array };
    destroy(): void;
  };
  readWasm(bytes: Uint8Array, features: Record<string, boolean>): {
    toText(options: { foldExprs: boolean; inlineExport: boolean }): string;
    destroy(): void;
  };
}

/** Loads wabt. */
export function loadWabt(): Promise<Wabt> {
  return (createRequire(join(installPackages(LISTS), "package.json"))("wabt") as () => Promise<Wabt>)();
}

/** The used subset of binaryen. */
interface Binaryen {
  readonly Features: { readonly All: number };
  readBinary(bytes: Uint8Array, features: number): { emitText(): string; dispose(): void };
}

/** Loads binaryen. */
export async function loadBinaryen(): Promise<Binaryen> {
  const module = await import(pathToFileURL(join(packageFolder("binaryen"), "index.js")).href) as { default: Binaryen };
  return module.default;
}
