/**
 * Compares random calls between components through an adapter with the same calls through JavaScript:
 * `deno task fuzz:adapters [--count N] [--seed S]`. Both must have the same effects. Out: the outcomes by fault;
 * fails at the first difference.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { comparable, observe } from "../../tests/component/adapter_pairs.ts";
import { progress, readTaskLine } from "../task_options.ts";

const task = {
  name: "task fuzz:adapters",
  about: "Compares random calls between components through fused adapters with calls through JavaScript.",
  options: {
    count: { value: "N", least: 1, help: "number of calls", default: "10000" },
    seed: { value: "S", least: 0, help: "first seed", default: "1" },
  },
} as const;
const { values: { count, seed: first } } = readTaskLine(task);
const outcomes = new Map<string, number>();

/** Calls per process, so that memory does not limit a long run. */
const BATCH = 500;

function add(outcome: string, calls: number): void {
  outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + calls);
}

/** Calls between two turns of the event loop, at which the targets of weak references are freed. */
const CALLS_PER_TURN = 16;

/** Makes the calls of the seeds from `from`. */
async function compare(from: number): Promise<void> {
  for (let seed = from; seed < from + count; seed++) {
    if (seed % CALLS_PER_TURN === 0) await new Promise((resolve) => setTimeout(resolve));
    const slow = observe(seed, false);
    assert.deepEqual(comparable(observe(seed, true), slow), comparable(slow, slow), `seed ${seed}, ${slow.fault}`);
    const { throws = "returns" } = slow.outcome as { throws?: string };
    add(`${slow.fault}: ${throws.replace(/\d+$/, "N")}`, 1);
  }
}

/** Makes a part of the calls in a separate process. */
function compareInChild(from: number, calls: number): void {
  const script = fileURLToPath(import.meta.url);
  const args = ["run", "-A", "--no-check", script, "--count", String(calls), "--seed", String(from)];
  const { status, stdout } = spawnSync(process.execPath, args, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (status !== 0) process.exit(1);
  for (const [, number, outcome] of stdout.matchAll(/^ *(\d+) {2}(.*)$/gm)) add(outcome, Number(number));
}

if (count <= BATCH) await compare(first);
else {
  for (let done = 0; done < count; done += BATCH) {
    progress(`${done} of ${count}`);
    compareInChild(first + done, Math.min(BATCH, count - done));
  }
  progress("");
}
for (const [outcome, calls] of [...outcomes].sort()) console.log(`${String(calls).padStart(8)}  ${outcome}`);
