/**
 * Random programs of stack switching beside a model in JavaScript's generators: `deno task fuzz:stacks --count N --seed
 * S`, with guard pages, explicit bounds, fuel and without optimizations in turn. Out: one line with the numbers, or the
 * first program that differs and status 1.
 */
import process from "node:process";
import { compareStackProgram, stackEngines, StackTotals } from "../../tests/fuzz/stack_programs.ts";
import { progress, readTaskLine } from "../task_options.ts";

const task = {
  name: "task fuzz:stacks",
  about: "Compares random programs of stack switching with a model in JavaScript's generators.",
  options: {
    count: { value: "N", least: 1, help: "number of programs", default: "20000" },
    seed: { value: "S", least: 0, help: "first seed", default: "1" },
  },
} as const;
const { values: { count, seed: first } } = readTaskLine(task);

/** Number of programs that run in one turn of the event loop. */
const PROGRAMS_PER_TURN = 50;

const engines = stackEngines();
const totals = new StackTotals();
for (let seed = first; seed < first + count; seed++) {
  progress(`${seed - first} of ${count} programs`);
  // Between turns of the event loop, the host frees what collected modules had.
  if (seed % PROGRAMS_PER_TURN === 0) await new Promise((resolve) => setTimeout(resolve, 0));
  try {
    compareStackProgram(engines[seed % engines.length], seed, totals);
  } catch (error) {
    progress("");
    console.error((error as Error).message);
    process.exit(1);
  }
}
progress("");
const ends = [...totals.ends].sort(([, a], [, b]) => b - a).map(([kind, runs]) => `${runs} ${kind}`).join(", ");
console.log(`seeds ${first} to ${first + count - 1}: ${count} programs agree, ${totals.handled} suspensions; ${ends}`);
