/**
 * Files that a module names: its source map and its sources. In: names from a module, which are untrusted. Out: texts.
 * Invariant: only regular files of a bounded size are read, and only inside of the module's folder or that of the
 * sources, whatever a name or a link says.
 */
import { readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";

/** Largest source file or source map that is read, in bytes. */
const MAX_SOURCE = 8 << 20;
const MAX_MAP = 64 << 20;
/** Most directories of a source's name that are looked for. */
const MAX_STEPS = 64;

/** The text of a file inside of `directory`, links followed; undefined if it is elsewhere, missing or too large. */
function readInside(directory: string, path: string, limit: number): string | undefined {
  try {
    const root = realpathSync(directory);
    const file = realpathSync(join(root, path));
    if (!file.startsWith(root.endsWith(sep) ? root : root + sep)) return undefined;
    // A pipe beside a module would never end.
    const status = statSync(file);
    return status.isFile() && status.size <= limit ? new TextDecoder().decode(readFileSync(file)) : undefined;
  } catch {
    return undefined;
  }
}

/** The source map that a module names: a file beside the module, or below that directory. */
export function readSourceMap(path: string, url: string): string | undefined {
  const file = url.replace(/^\.\//, "");
  return /^[a-z]+:/i.test(file) ? undefined : readInside(dirname(resolve(path)), file, MAX_MAP);
}

/**
 * The text of source file `name` below `directory`: the longest end of the name for which there is a file, because
 * compilers record the paths of other machines.
 */
export function readSource(directory: string, name: string): string | undefined {
  const steps = name.split(/[\\/]/).filter((step) => step !== "" && step !== ".")
    .slice(-MAX_STEPS);
  for (let from = 0; from < steps.length; from++) {
    const text = readInside(directory, steps.slice(from).join("/"), MAX_SOURCE);
    if (text !== undefined) return text;
  }
  return undefined;
}
