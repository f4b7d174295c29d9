/** A short form of the thread torture tests in both bounds modes; `deno task torture` runs longer. */
import { withTeam } from "./team.ts";
import {
  counters,
  growing,
  loadBuffering,
  locks,
  messagePassing,
  pingPong,
  queue,
  storeBuffering,
  TORTURE,
  wakeUps,
} from "./torture.ts";

/** Repetitions, since races depend on the scheduler. */
const TIMES = 3;

for (const bounds of ["guard", "explicit"] as const) {
  Deno.test(`${bounds}: four threads on one memory`, async (t) => {
    await withTeam(4, TORTURE, { pages: 18, maximum: 64, bounds }, async (team) => {
      const step = (name: string, action: () => Promise<void>) =>
        t.step(name, async () => {
          for (let n = 0; n < TIMES; n++) await action();
        });
      await step("store buffering", () => storeBuffering(team, 3000));
      await step("load buffering", () => loadBuffering(team, 3000));
      await step("message passing", () => messagePassing(team, 3000));
      await step("counters", () => counters(team, 20_000));
      await step("locks", () => locks(team, 10_000));
      await step("a queue", () => queue(team, 5000));
      await step("ping-pong", () => pingPong(team, 500));
      await step("wake-ups", () => wakeUps(team));
      await t.step("growing while others read", () => growing(team));
    });
  });
}
