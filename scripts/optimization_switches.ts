/**
 * The options `--on` and `--off` of tasks that compile. In: an option's text, keys separated by commas, or `all`. Out:
 * overrides of the default optimizations; an unknown key ends the process as wrong usage.
 */
import { OPTIMIZATION_ROWS, type OptimizationName } from "../engine/optimizations.ts";
import { oneOf } from "./task_options.ts";

/** The optimizations that `keys`, the text of `option`, names, switched to `value`. */
export function optimizationSwitches(
  task: Parameters<typeof oneOf>[0],
  option: string,
  keys: string,
  value: boolean,
): Partial<Record<OptimizationName, boolean>> {
  const names = OPTIMIZATION_ROWS.map(({ name }) => name);
  const named = keys.split(",").filter((key) => key !== "").map((key) => oneOf(task, option, key, ["all", ...names]));
  return Object.fromEntries((named.includes("all") ? names : named).map((name) => [name, value]));
}
