/**
 * Golden tests of the passes as IR text before and after. In: two texts (indentation does not matter, and values are
 * compared by their order of appearance). Invariants are verified after every pass.
 */
import type { OptimizationSet } from "../../settings/optimizations.ts";
import { Statistics } from "../../base/statistics.ts";
import { noneBut } from "../../testing/optimizations.ts";
import { equal } from "node:assert/strict";
import { parseFunction } from "../../ir/parse.ts";
import { printFunction } from "../../ir/print.ts";
import { verifyFunction } from "../../ir/verify.ts";
import { optimize } from "../passes.ts";

/**
 * The optimizations of the passes that are on by default. A test of another one adds its key: `{ ...ALL,
 * "tree-order": true }`.
 */
export const ALL: OptimizationSet = noneBut({
  "simplify": true,
  "store-forward": true,
  "bounds-facts": true,
  "multi-bounds-cert": true,
  "loop-precheck": true,
  "v128-const-cache": true,
});

/** The blocks of the function as text, one trimmed line each, values renamed by appearance. */
function normalized(text: string): string {
  const names = new Map<string, string>();
  return text.split("\n").map((line) => line.trim())
    .filter((line) => line !== "" && !/^(func|sig) /.test(line))
    .map((line) =>
      line.replace(/\bv\d+\b/g, (name) => {
        if (!names.has(name)) names.set(name, `v${names.size + 1}`);
        return names.get(name)!;
      })
    ).join("\n");
}

/** Runs all passes over `text`. */
export function optimizeText(text: string, selection: OptimizationSet = ALL): string {
  const f = parseFunction(text);
  verifyFunction(f);
  optimize(f, selection, new Statistics(), (pass, g) => verifyFunction(g, pass));
  return printFunction(f);
}

/** Asserts that `before` becomes `after`; a layout line comes first when the layout is not the identity. */
export function becomes(before: string, after: string, selection?: OptimizationSet): void {
  equal(normalized(optimizeText(before, selection)), normalized(after));
}
