/**
 * Soak test of the garbage collector: `deno task soak:gc [GIGABYTES]` allocates that volume in total (100 by default)
 * with about 10 MB live: cyclic lists of structures with byte arrays of random sizes up to 128 KiB, replaced at random.
 * The program checks every object before dropping it. Prints the allocated volume, the process memory and the
 * collector's pauses; fails if an object is damaged or memory keeps growing.
 */
import process from "node:process";
import { gcStatistics, NewEngine } from "@waft/engine";
import { GC_SOAK_PROGRAM } from "./gc_soak_program.ts";
import { readTaskLine, wholeNumber } from "../task_options.ts";

const SLOTS = 25_000;
const task = {
  name: "task soak:gc",
  about: "Allocates gigabytes of structures (100 by default) with 10 MB live; fails if memory keeps growing.",
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
      `${(allocated / 1e9).toFixed(1)} GB in ${seconds.toFixed(1)} s; live ${mb(liveBytes)}, heap ${
        mb(heapBytes)
      }, process ${mb(process.memoryUsage.rss())} (peak ${mb(peak)}); ${collections} collections, pauses ${
        (pauses.total / collections).toFixed(2)
      } ms mean, ${pauses.max.toFixed(2)} ms max`,
    );
  }
}
if (peak > before + 200e6) {
  console.error(`Memory keeps growing: ${mb(before)} after warm-up, ${mb(peak)} at the peak`);
  process.exit(1);
}

function mb(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
