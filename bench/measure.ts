/**
 * Timing: medians and geometric means, warm-up until times settle, and rounds that alternate between two sides so that
 * other load on the machine affects both. All times are in milliseconds.
 */
import { readdirSync, readFileSync } from "node:fs";
import process from "node:process";

/** Timed work; returns its result so that it can be checked. */
type Work = () => unknown;

/** The duration of a measurement. */
export interface Effort {
  /** Alternating rounds; the median counts. */
  rounds: number;
  /** Minimum warm-up time of one side. */
  warmMs: number;
}

export const FULL: Effort = { rounds: 9, warmMs: 250 };
export const QUICK: Effort = { rounds: 5, warmMs: 60 };

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export function geometricMean(values: readonly number[]): number {
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}

/** Time of one execution. */
export function timeOf(work: Work): number {
  const start = performance.now();
  work();
  return performance.now() - start;
}

/** Milliseconds of one tick of the clock that counts processor time: Linux counts 100 a second. */
const TICK = 10;

/** Processor time, user and system, of a process and of those of its children that have ended. Linux only. */
export function processorTimes(pid: number | "self"): { own: number; children: number } {
  // The name of the command, in parentheses, may contain spaces; the fields from the 3rd on follow it.
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "").split(" ").map(Number);
  const [userTime, systemTime, childrenUserTime, childrenSystemTime] = fields.slice(11, 15);
  return { own: (userTime + systemTime) * TICK, children: (childrenUserTime + childrenSystemTime) * TICK };
}

/**
 * The processor time, user and system, of a process and of those below it, in milliseconds. Linux; elsewhere NaN.
 * Servers answer in children of the process that was started.
 */
export function processorTimeBelow(pid: number | undefined): number {
  if (process.platform !== "linux" || pid === undefined) return NaN;
  const below = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").split(" ").filter((word) => word !== "")
  );
  return below.reduce((sum, child) => sum + processorTimeBelow(Number(child)), processorTimes(pid).own);
}

/** Yields to the event loop, so that background compilers publish their results. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * Runs `work` until `warmMs` have passed and the last three times are within 5 % of the minimum, at most 8 × `warmMs`.
 */
export async function warmUp(work: Work, { warmMs }: Effort): Promise<void> {
  const start = performance.now();
  const times: number[] = [];
  for (;;) {
    times.push(timeOf(work));
    const elapsed = performance.now() - start;
    const settled = times.length >= 6 && Math.max(...times.slice(-3)) <= Math.min(...times) * 1.05;
    if (times.length >= 4 && elapsed >= warmMs && (settled || elapsed >= 8 * warmMs)) return;
    if (times.length % 3 === 0) await pause(4);
  }
}

/** Medians of both sides over alternating rounds. */
export function alternate(a: Work, b: Work, rounds: number): { a: number; b: number } {
  const timesA: number[] = [];
  const timesB: number[] = [];
  for (let round = 0; round < rounds; round++) {
    if (round % 2 === 0) timesA.push(timeOf(a));
    timesB.push(timeOf(b));
    if (round % 2 === 1) timesA.push(timeOf(a));
  }
  return { a: median(timesA), b: median(timesB) };
}
