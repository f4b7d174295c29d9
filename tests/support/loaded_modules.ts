/**
 * The modules that an entry point loads before any of its code runs, read from the sources. In: a file of this tree.
 * Out: files, and the names that other imports mention. Type imports load nothing; `import()` is the caller's concern.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { dirname, join as joinNames, normalize } from "node:path/posix";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** The exports of packages of this tree, by their folders. */
const EXPORTS = new Map(["engine", "component"].map((folder) => {
  const text = readFileSync(join(ROOT, folder, "deno.json"), "utf8");
  return [folder, (JSON.parse(text) as { exports: Record<string, string> }).exports];
}));

/** The text of a file of this tree. */
export function sourceOf(file: string): string {
  return readFileSync(join(ROOT, file), "utf8");
}

/** The number of characters of a file without comments. */
export function codeSize(file: string): number {
  return sourceOf(file).replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "").length;
}

/** The modules that `entries` load, and all other names in their imports. */
export function loadedWith(...entries: string[]): { files: string[]; others: string[] } {
  const files = new Set(entries);
  const others = new Set<string>();
  for (const file of files) {
    for (
      const [, names, target] of sourceOf(file).matchAll(
        /^(?:import|export(?= [*{]))(?! type)([^;"]*?)(?:\bfrom )?"([^"]+)";/gm,
      )
    ) {
      const listed = /\{([\s\S]*)\}/.exec(names)?.[1]?.split(",").map((name) => name.trim()).filter((name) =>
        name !== ""
      );
      if (listed !== undefined && listed.length > 0 && listed.every((name) => name.startsWith("type "))) continue;
      if (target.startsWith(".")) files.add(normalize(joinNames(dirname(file), target)));
      else if (target.startsWith("@waft/")) {
        const [, folder, ...path] = target.split("/");
        files.add(joinNames(folder, EXPORTS.get(folder)![[".", ...path].join("/")]));
      } else others.add(`${target} in ${file}`);
    }
  }
  return { files: [...files], others: [...others] };
}
