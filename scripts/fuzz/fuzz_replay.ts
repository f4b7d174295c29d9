/**
 * Recordings of random programs: `deno task fuzz:replay [--count N] [--seed S]`. Each program is recorded and replayed
 * in both tiers. Out: totals; fails at the first replay that differs, with its seed.
 */
import { replayPrograms } from "../../tests/fuzz/recording.ts";
import { progress, readTaskLine } from "../task_options.ts";

/** Programs between two lines of progress. */
const BATCH = 20;

const task = {
  name: "task fuzz:replay",
  about: "Records random programs, and replays them in both tiers with the same state and fuel.",
  options: {
    count: { value: "N", least: 1, help: "number of programs", default: "1000" },
    seed: { value: "S", least: 0, help: "first seed", default: "1" },
  },
} as const;
const { values: { count, seed: first } } = readTaskLine(task);

const totals: Record<string, number> = {};
for (let at = 0; at < count; at += BATCH) {
  progress(`${at} of ${count}`);
  const sums = replayPrograms(first + at, Math.min(BATCH, count - at));
  for (const [name, value] of Object.entries(sums)) totals[name] = (totals[name] ?? 0) + value;
  // The address space of unreachable memories is released in a later task of the event loop.
  await new Promise((resolve) => setTimeout(resolve));
}
progress("");
const { recordings, bytes, calls, hostCalls, failed } = totals;
console.log(
  `${count} programs, ${recordings} recordings of ${bytes} bytes replayed: ${calls} calls, ${hostCalls} calls of the ` +
    `host; ${failed} ended with an error`,
);
