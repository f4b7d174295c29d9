/**
 * Source files by path. In: a path as an editor or the user gives it, and the sources of a program, whose names are
 * relative to a folder of the machine that compiled it. Out: the source that is meant, and its text on this machine.
 *
 * The module names the files, so they are untrusted: only regular files of a bounded size are read, and a name never
 * leads to another machine, because Windows presents the user's credentials to it.
 */
import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import type { Source } from "./sources.ts";

/** The most bytes of a source file that is read. */
const MAX_BYTES = 32 << 20;

/** True for the name of a file on another machine (`\\\\server\\share\\file`). */
export function isRemote(name: string): boolean {
  return /^[\\/]{2}/.test(name);
}

/** The paths that the name of a source may mean on this machine, for the module at `module`. */
export function candidatePaths(name: string, module: string): string[] {
  return isRemote(name) ? [] : [resolve(name), resolve(module, "..", name)];
}

/** The text of the first of these files that can be read. */
export function firstText(paths: readonly string[]): string | undefined {
  for (const path of paths) {
    try {
      const status = statSync(path);
      if (status.isFile() && status.size <= MAX_BYTES) return readFileSync(path, "utf8");
    } catch {
      // The file may be elsewhere, or not on this machine.
    }
  }
  return undefined;
}

/** The source that `path` means: the one whose name agrees with it in the most last parts; undefined if none does. */
export function matchingSource(path: string, sources: readonly Source[]): Source | undefined {
  const wanted = partsOf(path);
  let best: Source | undefined;
  let most = 0;
  for (const source of sources) {
    const agreeing = agreement(wanted, partsOf(source.name));
    if (agreeing <= most) continue;
    best = source;
    most = agreeing;
  }
  return best;
}

function partsOf(path: string): string[] {
  return path.split(/[\\/]/).filter((part) => part !== "" && part !== ".");
}

function agreement(a: readonly string[], b: readonly string[]): number {
  let count = 0;
  while (count < a.length && count < b.length && a.at(-1 - count) === b.at(-1 - count)) count++;
  return count;
}
