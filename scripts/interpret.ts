/**
 * Finds the pass that miscompiles: `deno task interpret SCRIPT` runs a test script in the IR interpreter, with
 * functions as translated, then after their first pass, their first two, and so on. In: a `.wast` script and the
 * optimizations. Out: one line per step; exit status 1 if an assertion fails at any step.
 *
 * A pass that is not needed for a function does not count there, so the steps of different functions may be different
 * passes: reduce the script to one function first.
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import type { IrFunction } from "../engine/ir/function.ts";
import { verifyFunction } from "../engine/ir/verify.ts";
import type { OptimizationSet } from "../engine/settings/optimizations.ts";
import { optimize } from "../engine/optimize/passes.ts";
import { Statistics } from "../engine/base/statistics.ts";
import { runInterpreted } from "../tests/support/interpreted_script.ts";
import { OPTIMIZATION_SWITCHES, switchedOptimizations } from "./optimization_switches.ts";
import { readTaskLine } from "./task_options.ts";

const task = {
  name: "task interpret",
  about: "Runs a test script in the IR interpreter after each pass, to find the one that changes a result.",
  operands: "SCRIPT",
  options: {
    explicit: { help: "compile with explicit bounds checks" },
    ...OPTIMIZATION_SWITCHES,
  },
} as const;

/** Ends the optimization of a function after its last wanted pass. */
class Enough extends Error {}

/** Applies the first `steps` passes to `f`; adds the name of the last of them to `names`. */
function applyPasses(f: IrFunction, optimizations: OptimizationSet, steps: number, names: Set<string>): void {
  if (steps === 0) return;
  let done = 0;
  try {
    optimize(f, optimizations, new Statistics(), (pass, g) => {
      if (++done < steps) return;
      verifyFunction(g, pass);
      names.add(pass);
      throw new Enough();
    });
  } catch (error) {
    if (!(error instanceof Enough)) throw error;
  }
}

/** Runs `text` after 0, 1, 2 … passes, until no function has more; returns whether an assertion failed. */
function runSteps(text: string, optimizations: OptimizationSet, explicitBounds: boolean): boolean {
  let failed = false;
  for (let steps = 0;; steps++) {
    const names = new Set<string>();
    const { passed, skipped, failures } = runInterpreted(text, {
      optimizations,
      explicitBounds,
      prepare: (f) => applyPasses(f, optimizations, steps, names),
    });
    if (steps > 0 && names.size === 0) return failed;
    const label = steps === 0 ? "as translated" : `after ${[...names].join(" or ")}`;
    console.log(`${label}: ${passed} passed, ${failures.length} failed, ${skipped} skipped`);
    for (const failure of failures) console.log(`  ${failure}`);
    failed ||= failures.length > 0;
  }
}

const { values: flags, operands: [script] } = readTaskLine(task);
const optimizations = switchedOptimizations(task, flags);
if (runSteps(readFileSync(script, "utf8"), optimizations, flags.explicit)) process.exitCode = 1;
