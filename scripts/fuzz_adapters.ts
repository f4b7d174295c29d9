/**
 * Random calls between components, through an adapter and through JavaScript:
 * `deno task fuzz:adapters [--count N] [--seed S]`. The two must have the same effects. Out: the outcomes by fault;
 * fails at the first difference.
 */
import assert from "node:assert/strict";
import { comparable, observe } from "../tests/component/adapter_pairs.ts";
import { progress, readTaskLine } from "./task_options.ts";

const task = {
  name: "task fuzz:adapters",
  about: "Compares random calls between components through fused adapters with calls through JavaScript.",
  options: {
    count: { value: "N", help: "number of calls", default: "10000" },
    seed: { value: "S", help: "first seed", default: "1" },
  },
} as const;
const { values } = readTaskLine(task);
const first = Number(values.seed);
const count = Number(values.count);
const outcomes = new Map<string, number>();
for (let seed = first; seed < first + count; seed++) {
  if (seed % 100 === 0) {
    progress(`${seed - first} of ${count}`);
    // Code and memories are released in a turn of the event loop.
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
  const slow = observe(seed, false);
  assert.deepEqual(comparable(observe(seed, true), slow), comparable(slow, slow), `seed ${seed}, ${slow.fault}`);
  const { throws = "returns" } = slow.outcome as { throws?: string };
  const outcome = `${slow.fault}: ${throws.replace(/\d+$/, "N")}`;
  outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
}
progress("");
for (const [outcome, calls] of [...outcomes].sort()) console.log(`${String(calls).padStart(8)}  ${outcome}`);
