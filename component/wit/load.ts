/**
 * Reads WIT packages from files (WIT, "Filesystem structure"): a file, or a directory whose `deps` contains the
 * packages that it depends on, each a file or a directory.
 *
 * Errors are MalformedError and InvalidError with file, line and column; a missing file is the error of the file
 * system.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { MalformedError } from "@waft/engine/internal/errors";
import { packageId } from "./document.ts";
import { parseWit } from "./parse.ts";
import { referencedPackages } from "./references.ts";
import { type ResolveOptions, resolveWit, type WitDocument } from "./resolve.ts";
import type { FileSyntax, PackageName } from "./syntax.ts";

/** The most bytes of a file that is found in a directory. */
const MAX_FOUND_BYTES = 1 << 24;

/** Reads the package at `path`. */
export function loadWit(path: string, options: ResolveOptions = {}): WitDocument {
  if (!statSync(path).isDirectory()) return resolveWit([readWitFile(path)], [], options);
  const root = readFolder(path);
  if (root.length === 0) throw new MalformedError("this directory contains no .wit file", { file: path });
  return resolveWit(root, readDependencies(join(path, "deps")), options);
}

/** The names of packages in a directory of WIT, before names are resolved. */
export interface WitReferences {
  /** The packages that are there, by `namespace:name` with `@version`. */
  readonly present: ReadonlySet<string>;
  /** The packages of other names that these refer to. */
  readonly missing: readonly PackageName[];
}

/** Finds the packages that the one at `path`, and those in its `deps`, refer to and that are not there. */
export function missingPackages(path: string): WitReferences {
  const files = [...readFolder(path), ...readDependencies(join(path, "deps")).flat()];
  const parts = files.flatMap(({ root, nested }) => [root, ...nested]);
  const present = new Set(parts.flatMap(({ name }) => name === undefined ? [] : [packageId(name)]));
  const missing = new Map<string, PackageName>();
  for (const used of parts.flatMap(referencedPackages)) {
    if (!present.has(packageId(used))) missing.set(packageId(used), used);
  }
  return { present, missing: [...missing.values()] };
}

/** The packages that a file refers to. */
export function referencesOf(text: string): PackageName[] {
  const { root, nested } = parseWit({ file: "package.wit", text });
  return [root, ...nested].flatMap(referencedPackages);
}

function readDependencies(folder: string): FileSyntax[][] {
  const names = statSync(folder, { throwIfNoEntry: false })?.isDirectory() ? readdirSync(folder).sort() : [];
  return names.flatMap((name) => {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) return [readFolder(path)];
    return name.endsWith(".wit") ? [[readFoundFile(path)]] : [];
  }).filter((files) => files.length > 0);
}

function readFolder(folder: string): FileSyntax[] {
  return readdirSync(folder).filter((name) => name.endsWith(".wit")).sort().map((name) =>
    readFoundFile(join(folder, name))
  );
}

/** Reads a file of a directory, which may come from elsewhere: a pipe or a device would never end. */
function readFoundFile(file: string): FileSyntax {
  const status = statSync(file);
  if (!status.isFile()) throw new MalformedError("this is not a regular file", { file });
  if (status.size > MAX_FOUND_BYTES) {
    throw new MalformedError(`this file has more than ${MAX_FOUND_BYTES} bytes`, { file });
  }
  return readWitFile(file);
}

function readWitFile(file: string): FileSyntax {
  try {
    return parseWit({ file, text: new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(file)) });
  } catch (error) {
    if (error instanceof TypeError) throw new MalformedError("this file is not UTF-8", { file });
    throw error;
  }
}
