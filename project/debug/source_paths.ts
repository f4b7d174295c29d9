/**
 * Source files by path. In: a path as an editor or a person names it, and the sources of a program, whose names are
 * relative to a folder of the machine that compiled it. Out: the source that is meant.
 */
import type { Source } from "./sources.ts";

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
