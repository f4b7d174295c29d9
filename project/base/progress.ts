/**
 * A progress line on the terminal: a slow activity and its elapsed seconds.
 *
 * In: the name of the activity, and how much of it is done, if that is known. Out: after a second, one line on stderr
 * that is redrawn and removed at the end; nothing if stderr is not a terminal. Compiling blocks the caller's thread, so
 * `startBlocking` draws from a separate thread.
 */
import process from "node:process";
import { Worker } from "node:worker_threads";
import { escapeHostile } from "./diagnostic.ts";

/** The delay before the line appears, and the interval at which it is drawn. */
const FIRST_MS = 1000;
const EVERY_MS = 250;
/** Removes the line and leaves the cursor at its start. */
const CLEAR = "\r\u001b[K";

/** Ends of the lines that are on the terminal. */
const running = new Set<() => void>();

function isShown(): boolean {
  return process.stderr.isTTY === true && (process.env.TERM ?? "") !== "dumb";
}

/** Shows `what` while this thread waits; returns a function that ends the display. */
export function startWaiting(what: string): () => void {
  if (!isShown()) return () => {};
  const started = Date.now();
  const label = escapeHostile(what);
  let drawn = false;
  const draw = (): void => {
    const seconds = Math.floor((Date.now() - started) / 1000);
    if (seconds < 1) return;
    drawn = true;
    process.stderr.write(`${CLEAR}${label} … ${seconds} s`);
  };
  const timer = setInterval(draw, EVERY_MS);
  timer.unref?.();
  return ended(() => {
    clearInterval(timer);
    if (drawn) process.stderr.write(CLEAR);
  });
}

/** Words of the memory that the drawing thread reads. */
const WORD = { STATE: 0, DONE: 1, TOTAL: 2, COUNT: 3 } as const;

/** The memory of the innermost line of a computation. */
let counts: Int32Array | undefined;

/** Shows how many of the parts of the computation are done, in percent. */
export function reportDone(done: number, total: number): void {
  if (counts === undefined) return;
  counts[WORD.DONE] = done;
  counts[WORD.TOTAL] = total;
}

/** Shows `what` while this thread computes; returns a function that ends the display. */
export function startBlocking(what: string): () => void {
  if (!isShown()) return () => {};
  const flag = new Int32Array(new SharedArrayBuffer(4 * WORD.COUNT));
  const outer = counts;
  counts = flag;
  const worker = new Worker(DRAWER, {
    eval: true,
    workerData: { flag, label: escapeHostile(what), CLEAR, FIRST_MS, EVERY_MS, WORD },
  });
  worker.unref();
  return ended(() => {
    counts = outer;
    const drawn = Atomics.exchange(flag, WORD.STATE, 2) === 1;
    void worker.terminate();
    if (drawn) process.stderr.write(CLEAR);
  });
}

/** The thread that draws: the state is 1 once something is on the terminal, 2 when it must end. */
const DRAWER = `const { workerData } = require("node:worker_threads"); const { writeSync } = require("node:fs");
const { flag, label, CLEAR, FIRST_MS, EVERY_MS, WORD } = workerData; const started = Date.now();
const part = () => { const total = flag[WORD.TOTAL];
  return total === 0 ? "" : ", " + Math.floor(100 * Math.min(flag[WORD.DONE] / total, 1)) + " %"; };
const draw = () => { if (Atomics.compareExchange(flag, WORD.STATE, 0, 1) === 2) return;
  try { writeSync(2, CLEAR + label + " … " + Math.floor((Date.now() - started) / 1000) + " s" + part()); } catch {}
  setTimeout(draw, EVERY_MS); };
setTimeout(draw, FIRST_MS);`;

function ended(end: () => void): () => void {
  const once = (): void => {
    if (running.delete(once)) end();
  };
  running.add(once);
  return once;
}

/** Ends every line, before a question or other output takes the terminal. */
export function endProgress(): void {
  for (const end of [...running]) end();
}
