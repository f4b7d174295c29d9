/**
 * The compiler of the playground as one script for browsers. In: the sources of a checkout, which `deno bundle` makes
 * into one module, or the file of a package. Out: the script. In a checkout it is made at the first request, in another
 * process; `deno task build:reference` writes it for packages.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** The script's address on the site. */
export const COMPILER_PATH = "/playground/compiler.js";

const FOLDER = new URL("../../../docs/reference/", import.meta.url);
const ROOT = new URL("../../../", import.meta.url);
const NAME = "playground_compiler.js";

/** The script, once it was requested. */
let script: Promise<Uint8Array<ArrayBuffer> | undefined> | undefined;

/** The script; undefined where there are neither sources with `deno bundle` nor the file. */
export async function compilerScript(): Promise<Uint8Array<ArrayBuffer> | undefined> {
  script ??= build();
  try {
    return await script ?? readCompiler();
  } catch (error) {
    script = undefined;
    throw error;
  }
}

/** Writes the script for a package. */
export async function writeCompiler(): Promise<void> {
  const bytes = await build();
  if (bytes === undefined) throw new Error("the playground's compiler is built by deno, from the sources");
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(new URL(NAME, FOLDER), bytes);
}

function readCompiler(): Uint8Array<ArrayBuffer> | undefined {
  const file = new URL(NAME, FOLDER);
  return existsSync(file) ? new Uint8Array(readFileSync(file)) : undefined;
}

/** Bundles the worker's sources; undefined where there are none, or no deno. */
async function build(): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const source = new URL("registry/site/playground/worker.ts", ROOT);
  // Not in a compiled program, which is its own execPath.
  if (!/^deno(?:\.exe)?$/.test(basename(process.execPath)) || !existsSync(source)) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "waft-playground-"));
  try {
    const out = join(folder, NAME);
    const args = ["bundle", "--quiet", "--platform", "browser", "--minify", "--output", out, fileURLToPath(source)];
    await new Promise<void>((resolve, reject) => {
      execFile(process.execPath, args, { cwd: fileURLToPath(ROOT) }, (error, _, stderr) => {
        if (error === null) resolve();
        else reject(new Error(`deno bundle failed: ${stderr.trim().split("\n")[0]}`));
      });
    });
    return new Uint8Array(readFileSync(out));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
