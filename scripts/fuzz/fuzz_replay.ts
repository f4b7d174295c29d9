/**
 * Recordings of random programs: `deno task fuzz:replay [--count N] [--seed S]`. Each program is recorded and replayed
 * in both tiers. Out: totals; fails at the first replay that differs, with its seed.
 */
import { replayPrograms } from "../../tests/fuzz/recording.ts";
import { progress, readTaskLine, wholeNumber } from "../task_options.ts";

/** Programs between two lines of progress. */
const BATCH = 20;

const task = {
  name: "task fuzz:replay",
  about: "Records random programs, and replays them in both tiers with the same state and fuel.",
  options: {
    count: { value: "N", help: "number of programs", default: "1000" },
    seed: { value: "S", help: "first seed", default: "1" },
  },
} as const;
const { values } = readTaskLine(task);
const count = wholeNumber(task, "--count", values.count, 1);
const first = wholeNumber(task, "--seed", values.seed, 0);

const totals: Record<string, number> = {};
for (let at = 0; at < count; at += BATCH) {
  progress(`${at} of ${count}`);
  const sums = replayPrograms(first + at, Math.min(BATCH, count - at));
  for (const [name, value] of Object.entries(sums)) totals[name] = (totals[name] ?? 0) + value;
  // Memories that nothing refers to give their address space back in a task of their own.
  await new Promise((resolve) => setTimeout(resolve));
}
progress("");
const { recordings, bytes, calls, hostCalls, failed } = totals;
console.log(
  `${count} programs, ${recordings} recordings of ${bytes} bytes replayed: ${calls} calls, ${hostCalls} calls of the ` +
    `host; ${failed} ended with an error`,
);
