/**
 * Late imports (project/base/late_import.ts) as literal ones, which packagers follow. In: the sources of a tree. Out:
 * the same sources with `() => import("./x.ts")` in place of `late("./x.ts")`, for the time of packaging.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The files with late imports. */
export const LATE_FILES: readonly string[] = [
  "cli.ts",
  "project/commands/run/program_file.ts",
  "project/commands/run/serve.ts",
  "project/commands/settings/config.ts",
  "project/commands/table.ts",
  "project/ops/run/granted_drafts.ts",
];

const LATE_IMPORT = /\blate(?:<(?:[^<>()]|\([^()]*\))*>)?\(\s*("\.[^"]+"),?\s*\)/g;

/** The text of a module with literal imports. */
export function literalImports(text: string): string {
  return text.replace(LATE_IMPORT, (_, specifier: string) => `() => import(${specifier})`);
}

/** Writes literal imports into the sources of `tree`. Returns a function that restores the sources. */
export function writeLiteralImports(tree: string): () => void {
  const kept = LATE_FILES.map((name) => join(tree, name)).filter((path) => existsSync(path))
    .map((path) => ({ path, text: readFileSync(path, "utf8") }));
  for (const { path, text } of kept) writeFileSync(path, literalImports(text));
  return () => {
    for (const { path, text } of kept) writeFileSync(path, text);
  };
}
