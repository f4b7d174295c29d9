/**
 * Random programs over objects with descriptors beside a model: `deno task fuzz:descriptors --count N --seed S`. Out:
 * one line with the numbers, or the first program that differs or whose machine code is not proven, and status 1.
 */
import process from "node:process";
import { DescriptorComparison } from "../../tests/support/descriptor_programs.ts";
import { progress, readTaskLine } from "../task_options.ts";

const task = {
  name: "task fuzz:descriptors",
  about: "Compares random programs over objects with descriptors with a model, and proves their machine code.",
  options: {
    count: { value: "N", least: 1, help: "number of programs", default: "20000" },
    seed: { value: "S", least: 0, help: "first seed", default: "1" },
  },
} as const;
const { values: { count, seed: first } } = readTaskLine(task);

/** Number of programs that run in one turn of the event loop. */
const PROGRAMS_PER_TURN = 50;

const comparison = new DescriptorComparison();
for (let seed = first; seed < first + count; seed++) {
  progress(`${seed - first} of ${count} programs`);
  // Between turns of the event loop, the host frees what collected modules had.
  if (seed % PROGRAMS_PER_TURN === 0) await new Promise((resolve) => setTimeout(resolve, 0));
  try {
    comparison.compare(seed);
  } catch (error) {
    progress("");
    console.error(`seed ${seed}: ${(error as Error).message}`);
    process.exit(1);
  }
}
progress("");
const ends = [...comparison.ends].sort(([, a], [, b]) => b - a).map(([kind, runs]) => `${runs} ${kind}`).join(", ");
console.log(`seeds ${first} to ${first + count - 1}: ${count} programs agree, all code is proven; ${ends}`);
