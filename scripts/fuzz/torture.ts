/**
 * Repeats the thread torture tests: `deno task torture [--count N]` runs tests/threads/torture.ts N times (20 by
 * default) in both bounds modes. Fails with the first failed assertion. Whether threads race depends on the scheduler,
 * so a long run covers more than a short one.
 */
import process from "node:process";
import { withTeam } from "../../tests/threads/team.ts";
import * as torture from "../../tests/threads/torture.ts";
import { progress, readTaskLine } from "../task_options.ts";

const task = {
  name: "task torture",
  about: "Runs threads that race for shared memory, in both bounds modes; fails with the first failed assertion.",
  options: { count: { value: "N", least: 1, help: "number of repetitions", default: "20" } },
} as const;
const { values: { count } } = readTaskLine(task);
for (const bounds of ["guard", "explicit"] as const) {
  const start = performance.now();
  for (let n = 0; n < count; n++) {
    progress(`${bounds}: ${n} of ${count}`);
    await withTeam(4, torture.TORTURE, { pages: 18, maximum: 64, bounds }, async (team) => {
      for (let round = 0; round < 5; round++) {
        await torture.storeBuffering(team, torture.MAX_ROUNDS);
        await torture.loadBuffering(team, torture.MAX_ROUNDS);
        await torture.messagePassing(team, torture.MAX_ROUNDS);
        await torture.counters(team, 50_000);
        await torture.locks(team, 20_000);
        await torture.queue(team, 10_000);
        await torture.pingPong(team, 1000);
        await torture.wakeUps(team);
      }
      await torture.growing(team);
    });
  }
  progress("");
  console.log(`${bounds}: ${count} repetitions, ${((performance.now() - start) / 1000).toFixed(1)} s, no failure`);
}
process.exit(0);
