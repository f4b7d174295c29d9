/**
 * The options `--on` and `--off` of tasks that compile. In: their texts, keys separated by commas, or `all`. Out: the
 * set of optimizations; an unknown key ends the process as wrong usage.
 */
import {
  OPTIMIZATION_ROWS,
  type OptimizationName,
  type OptimizationSet,
  optimizationSet,
} from "../engine/settings/optimizations.ts";
import { oneOf } from "./task_options.ts";

type Task = Parameters<typeof oneOf>[0];

/** The options, as rows of a task's options. */
export const OPTIMIZATION_SWITCHES = {
  off: { value: "KEY,…", help: "disable these optimizations, or all", default: "" },
  on: { value: "KEY,…", help: "enable these optimizations, or all; stronger than --off", default: "" },
} as const;

/** The default optimizations as the options `off` and `on` change them. */
export function switchedOptimizations(
  task: Task,
  { off, on }: { readonly off: string; readonly on: string },
): OptimizationSet {
  return optimizationSet({ ...switches(task, "--off", off, false), ...switches(task, "--on", on, true) });
}

/** The optimizations that `keys`, the text of `option`, names, switched to `value`. */
function switches(
  task: Task,
  option: string,
  keys: string,
  value: boolean,
): Partial<Record<OptimizationName, boolean>> {
  const names = OPTIMIZATION_ROWS.map(({ name }) => name);
  const named = keys.split(",").filter((key) => key !== "").map((key) => oneOf(task, option, key, ["all", ...names]));
  return Object.fromEntries((named.includes("all") ? names : named).map((name) => [name, value]));
}
