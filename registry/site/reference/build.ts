/**
 * Builds the pages of the API reference with `deno doc`, or reads those that a package contains.
 *
 * `deno task build:reference` writes the pages to docs/reference/ for packages. A checkout does not keep them, since
 * every change of a comment would make them stale: there the registry builds them in the background once it listens
 * (about 0.3 s in other processes), so its start does not wait for them.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import type { StoredDocument } from "../../store/keys.ts";
import { type DocModule, readDocJson } from "./doc_json.ts";
import { REFERENCE_MODULES, type ReferenceModule, referencePages } from "./pages.ts";

const FOLDER = new URL("../../../docs/reference/", import.meta.url);
const ROOT = new URL("../../../", import.meta.url);
const MAX_OUTPUT_BYTES = 64 << 20;

/** The pages, built where that is possible, else read from the package; none when neither is possible. */
export async function loadReference(): Promise<StoredDocument[]> {
  return await buildReference() ?? readReference();
}

function readReference(): StoredDocument[] {
  if (!existsSync(FOLDER)) return [];
  const names = (readdirSync(FOLDER, { recursive: true }) as string[]).filter((name) => name.endsWith(".md"));
  return names.map((name) => ({
    path: name.replaceAll("\\", "/"),
    source: readFileSync(join(fileURLToPath(FOLDER), name), "utf8"),
  }));
}

/** The pages, from the sources; undefined where there is no `deno doc` or no source. */
export async function buildReference(): Promise<StoredDocument[] | undefined> {
  // Not in a compiled program, which is its own execPath.
  const isDeno = /^deno(?:\.exe)?$/.test(basename(process.execPath));
  const files = REFERENCE_MODULES.map(sourceOf);
  if (!isDeno || !files.every((file) => file !== undefined)) return undefined;
  const pages = await Promise.all(
    REFERENCE_MODULES.map(async (module, k) => referencePages(module, await documentation(files[k]), ROOT.href)),
  );
  return pages.flat();
}

/** Writes the pages for a package. */
export async function writeReference(): Promise<number> {
  const pages = await buildReference();
  if (pages === undefined) throw new Error("the API reference is built by deno, from the sources of the packages");
  for (const { path, source } of pages) {
    const file = new URL(path, FOLDER);
    mkdirSync(dirname(fileURLToPath(file)), { recursive: true });
    writeFileSync(file, source);
  }
  return pages.length;
}

/** The source file of a module; undefined in a package, which has none. */
function sourceOf(module: ReferenceModule): URL | undefined {
  const folder = new URL(`${module.package}/`, ROOT);
  const file = new URL("deno.json", folder);
  if (!existsSync(file)) return undefined;
  const { exports } = JSON.parse(readFileSync(file, "utf8")) as { exports: Record<string, string> };
  return new URL(exports[module.entry], folder);
}

function documentation(file: URL): Promise<DocModule> {
  return new Promise((resolve, reject) => {
    const args = ["doc", "--json", "--quiet", fileURLToPath(file)];
    execFile(process.execPath, args, { maxBuffer: MAX_OUTPUT_BYTES }, (error, stdout, stderr) => {
      if (error === null) resolve(readDocJson(stdout));
      else reject(new Error(`deno doc failed: ${stderr.trim().split("\n")[0]}`));
    });
  });
}
