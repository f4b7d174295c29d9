/**
 * Warm-up in fresh processes, without a cache: waft with its default tier beside V8 with its default pipeline, in
 * alternating processes. In: programs. Out: per program, the time that waft takes for the work that V8 gets done by
 * some times, relative to them, and for the first run; when each side's runs come near their best; and curves of the
 * ratio.
 *
 * The work of a process by a time is its number of runs, where a run in progress counts in part. Only ratios of
 * processes that ran one after the other are formed, so other load of the machine affects both. waft is its npm
 * package.
 */
import type { RunProgram } from "./engine_package.ts";
import { geometricMean, median } from "./measure.ts";

/** The times in milliseconds whose work is compared. */
const WORK_MS = [100, 500, 2000] as const;
/** The times of the curve. */
const CURVE_MS: readonly number[] = [20, 50, 100, 200, 500, 1000, 2000];
/** A run is near the best one if it takes at most this many times as long. */
const NEAR = 1.15;

/** The times in milliseconds at which the runs of a process ended. */
type RunEnds = readonly number[];

/** A program with the argument of its export `run`. */
export interface WarmUpProgram {
  readonly name: string;
  readonly file: string;
  readonly n: number;
}

/** The measurements of one program: medians over pairs of processes. */
interface WarmUpResult {
  readonly name: string;
  /** From the bytes to the end of the first run, waft / V8. */
  readonly firstRatio: number;
  /** For each of WORK_MS: the time that waft takes for the work of V8, relative to that time. */
  readonly workRatios: readonly number[];
  /** The best run, waft / V8. */
  readonly bestRatio: number;
  /** As `workRatios`, for each of CURVE_MS. */
  readonly curve: readonly number[];
  /** Milliseconds until a run is near the best one of its process. */
  readonly waftNearMs: number;
  readonly v8NearMs: number;
}

/** The number of runs that end by time `ms`; a run in progress counts in part. */
export function workBy(ends: RunEnds, ms: number): number {
  const done = ends.findIndex((end) => end > ms);
  if (done < 0) return ends.length;
  const begin = done === 0 ? 0 : ends[done - 1];
  return done + (ms - begin) / (ends[done] - begin);
}

/** The time at which `work` runs have ended: the inverse of `workBy`. Beyond the last run, as fast as the best one. */
export function timeOfWork(ends: RunEnds, work: number): number {
  const whole = Math.floor(work);
  if (whole >= ends.length) return ends[ends.length - 1] + (work - ends.length) * bestRun(ends);
  const begin = whole === 0 ? 0 : ends[whole - 1];
  return begin + (work - whole) * (ends[whole] - begin);
}

/** The time that waft takes for the work that V8 has done by `ms`, relative to that time. */
function workRatio({ waft, v8 }: { waft: RunEnds; v8: RunEnds }, ms: number): number {
  return timeOfWork(waft, workBy(v8, ms)) / ms;
}

function runTimes(ends: RunEnds): number[] {
  return ends.map((end, k) => end - (k === 0 ? 0 : ends[k - 1]));
}

/** Milliseconds of the best run. */
export function bestRun(ends: RunEnds): number {
  return Math.min(...runTimes(ends));
}

/** Milliseconds until a run ends that is near the best one. */
export function nearBest(ends: RunEnds): number {
  const best = bestRun(ends);
  return ends[runTimes(ends).findIndex((ms) => ms <= best * NEAR)];
}

/** Runs a program in a process for `ms` milliseconds. */
function child(run: RunProgram, side: "waft" | "v8", { file, n }: WarmUpProgram, ms: number): RunEnds {
  return run("warm_up_child.ts", [side, file, String(n), String(ms)]) as RunEnds;
}

/** Measures a program in `rounds` pairs of processes that run for `ms` milliseconds each. */
function measureWarmUp(run: RunProgram, program: WarmUpProgram, rounds: number, ms: number): WarmUpResult {
  const pairs: { waft: RunEnds; v8: RunEnds }[] = [];
  for (let round = 0; round < rounds; round++) {
    const [one, other] = round % 2 === 0 ? ["waft", "v8"] as const : ["v8", "waft"] as const;
    const ends = { [one]: child(run, one, program, ms), [other]: child(run, other, program, ms) };
    pairs.push(ends as { waft: RunEnds; v8: RunEnds });
  }
  const of = (figure: (pair: { waft: RunEnds; v8: RunEnds }) => number) => median(pairs.map(figure));
  return {
    name: program.name,
    firstRatio: of(({ waft, v8 }) => waft[0] / v8[0]),
    workRatios: WORK_MS.map((at) => of((pair) => workRatio(pair, at))),
    bestRatio: of(({ waft, v8 }) => bestRun(waft) / bestRun(v8)),
    curve: CURVE_MS.map((at) => of((pair) => workRatio(pair, at))),
    waftNearMs: of(({ waft }) => nearBest(waft)),
    v8NearMs: of(({ v8 }) => nearBest(v8)),
  };
}

/** The measurements of several programs, and the geometric means of their curves at `times`. */
export interface WarmUpFigures {
  readonly times: readonly number[];
  readonly curve: readonly number[];
  readonly programs: readonly WarmUpResult[];
}

/** Measures all of `programs` as `measureWarmUp` does, in processes by `run`; `failed` gets the errors. */
export function measureWarmUps(
  run: RunProgram,
  programs: readonly WarmUpProgram[],
  rounds: number,
  ms: number,
  progress: (name: string) => void,
  failed: (name: string, error: unknown) => void,
): WarmUpFigures {
  const results: WarmUpResult[] = [];
  for (const program of programs) {
    progress(program.name);
    try {
      results.push(measureWarmUp(run, program, rounds, ms));
    } catch (error) {
      failed(program.name, error);
    }
  }
  const mean = (k: number) => geometricMean(results.map(({ curve }) => curve[k]));
  return { times: CURVE_MS, curve: results.length === 0 ? [] : CURVE_MS.map((_, k) => mean(k)), programs: results };
}

/** The rows of the results as text: ratios, and geometric means in the last row. */
export function warmUpTable(results: readonly WarmUpResult[]): string {
  const head = ["program", "first run", ...WORK_MS.map((ms) => `${ms / 1000} s`), "best", "near best: waft", "V8"];
  const ratio = (value: number) => value.toFixed(2);
  const rows = results.map(({ name, firstRatio, workRatios, bestRatio, waftNearMs, v8NearMs }) => [
    name,
    ...[firstRatio, ...workRatios, bestRatio].map(ratio),
    ...[waftNearMs, v8NearMs].map((ms) => `${(ms / 1000).toFixed(2)} s`),
  ]);
  if (results.length > 1) {
    const mean = (figure: (result: WarmUpResult) => number) => ratio(geometricMean(results.map(figure)));
    rows.push([
      "geometric mean",
      mean(({ firstRatio }) => firstRatio),
      ...WORK_MS.map((_, k) => mean(({ workRatios }) => workRatios[k])),
      mean(({ bestRatio }) => bestRatio),
      ...[(result: WarmUpResult) => result.waftNearMs, (result: WarmUpResult) => result.v8NearMs]
        .map((figure) => `${(geometricMean(results.map(figure)) / 1000).toFixed(2)} s`),
    ]);
  }
  const widths = head.map((cell, k) => Math.max(cell.length, ...rows.map((row) => row[k].length)));
  return [head, ...rows].map((row) =>
    row.map((cell, k) => k === 0 ? cell.padEnd(widths[k]) : cell.padStart(widths[k])).join("  ")
  ).join("\n");
}
