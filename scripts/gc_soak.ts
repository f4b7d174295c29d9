/**
 * Does the collector really collect? `deno task soak:gc [GIGABYTES]` allocates that many (default 100) in total while about
 * 10 MB are alive: lists of structures with byte arrays of random sizes, up to 128 KiB, in cycles, each replaced at random. The
 * program checks every object that it drops. Prints how much was allocated, the memory of the process, and the collector's
 * pauses; fails when an object was damaged or memory is not bounded.
 */
import process from "node:process";
import { gcStatistics, NewEngine } from "@waft/engine";
import { GC_SOAK_PROGRAM } from "./gc_soak_program.ts";
import { readTaskLine, wholeNumber } from "./task_options.ts";

const SLOTS = 25_000;
const task = {
  name: "task soak:gc",
  about: "Allocates gigabytes of structures, 100 by default, with 10 MB alive; fails when memory is not bounded.",
  operands: "[GIGABYTES]",
  options: {},
} as const;
const wanted = wholeNumber(task, "GIGABYTES", readTaskLine(task).operands[0] ?? "100", 1) * 1e9;
const { exports } = NewEngine().compile(GC_SOAK_PROGRAM).instantiate();
const start = exports["start"] as (slots: number) => void;
const step = exports["step"] as (count: number) => bigint;
start(SLOTS);
step(SLOTS * 20);
const before = process.memoryUsage.rss();
let allocated = 0;
let peak = before;
let shown = 0;
const begun = performance.now();
while (allocated < wanted) {
  allocated += Number(step(2_000_000));
  peak = Math.max(peak, process.memoryUsage.rss());
  if (allocated - shown >= wanted / 10 || allocated >= wanted) {
    shown = allocated;
    const { collections, liveBytes, heapBytes, pauses } = gcStatistics();
    const seconds = (performance.now() - begun) / 1000;
    console.log(
      `${(allocated / 1e9).toFixed(1)} GB in ${seconds.toFixed(1)} s; alive ${mb(liveBytes)}, heap ${
        mb(heapBytes)
      }, process ${mb(process.memoryUsage.rss())} (peak ${mb(peak)}); ${collections} collections, pauses ${
        (pauses.total / collections).toFixed(2)
      } ms on average, ${pauses.max.toFixed(2)} ms at most`,
    );
  }
}
if (peak > before + 200e6) {
  console.error(`Memory is not bounded: ${mb(before)} at first, ${mb(peak)} at most`);
  process.exit(1);
}

function mb(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
