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
import { parseWit } from "./parse.ts";
import { type ResolveOptions, resolveWit, type WitDocument } from "./resolve.ts";
import type { FileSyntax } from "./syntax.ts";

/** Reads the package at `path`. */
export function loadWit(path: string, options: ResolveOptions = {}): WitDocument {
  if (!statSync(path).isDirectory()) return resolveWit([readWitFile(path)], [], options);
  const root = readFolder(path);
  if (root.length === 0) throw new MalformedError("this directory contains no .wit file", { file: path });
  return resolveWit(root, readDependencies(join(path, "deps")), options);
}

function readDependencies(folder: string): FileSyntax[][] {
  const names = statSync(folder, { throwIfNoEntry: false })?.isDirectory() ? readdirSync(folder).sort() : [];
  return names.flatMap((name) => {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) return [readFolder(path)];
    return name.endsWith(".wit") ? [[readWitFile(path)]] : [];
  }).filter((files) => files.length > 0);
}

function readFolder(folder: string): FileSyntax[] {
  return readdirSync(folder).filter((name) => name.endsWith(".wit")).sort().map((name) =>
    readWitFile(join(folder, name))
  );
}

function readWitFile(file: string): FileSyntax {
  try {
    return parseWit({ file, text: new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(file)) });
  } catch (error) {
    if (error instanceof TypeError) throw new MalformedError("this file is not UTF-8", { file });
    throw error;
  }
}
