/**
 * Compares the verdicts of the baseline tier and the validator on generated modules and mutants of them: `deno task
 * agree --count N --seed S`. Out: one line with the numbers, or the first module on which they differ and status 1.
 */
import process from "node:process";
import { compareSeed } from "../../tests/baseline/agreement.ts";
import { readTaskLine } from "../task_options.ts";

const task = {
  name: "task agree",
  about: "Compares the baseline tier's validation with the validator, on generated modules and mutants of them.",
  options: {
    count: { value: "N", least: 1, help: "least number of modules", default: "20000" },
    seed: { value: "S", least: 0, help: "first seed", default: "0" },
  },
} as const;
const { values: { count, seed: first } } = readTaskLine(task);
const SEEDS_PER_LINE = 200;

let total = 0;
let invalid = 0;
let seed = first;
const line = () => `seeds ${first} to ${seed - 1}: ${total} modules agree, ${invalid} of them are invalid`;
for (; total < count; seed++) {
  try {
    const compared = compareSeed(seed);
    total += compared.total;
    invalid += compared.invalid;
  } catch (error) {
    console.error((error as Error).message);
    process.exit(1);
  }
  if ((seed - first) % SEEDS_PER_LINE === SEEDS_PER_LINE - 1) console.error(line());
}
console.log(line());
