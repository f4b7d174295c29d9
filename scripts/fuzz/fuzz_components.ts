/**
 * Mutates the binaries of the component model's suite: `deno task fuzz:components [--count N] [--seed S]`. Every
 * mutation must be accepted or rejected with one error that has an offset. Out: the counts; fails at the first other
 * outcome.
 */
import process from "node:process";
import { mutateComponent, reject } from "../../tests/support/component_mutations.ts";
import {
  commandBytes,
  commandsOf,
  componentScripts,
  HAS_COMPONENT_BINARIES,
  NEEDS_COMPONENT_BINARIES,
} from "../../tests/support/component_suite.ts";
import { progress, readTaskLine } from "../task_options.ts";

const task = {
  name: "task fuzz:components",
  about: "Decodes and validates mutated components of the component model's suite.",
  options: {
    count: { value: "N", least: 1, help: "number of mutations", default: "100000" },
    seed: { value: "S", least: 0, help: "first seed", default: "1" },
  },
} as const;
const { values: { count, seed: first } } = readTaskLine(task);
if (!HAS_COMPONENT_BINARIES) {
  console.error(`The component model's suite has no binaries here${NEEDS_COMPONENT_BINARIES}.`);
  process.exit(1);
}
const corpus = componentScripts().flatMap((script) =>
  commandsOf(script).flatMap(({ filename, module_type }) =>
    filename === undefined || module_type !== "binary" ? [] : [commandBytes(script, filename)]
  )
);
let rejected = 0;
for (let seed = first; seed < first + count; seed++) {
  if (seed % 1000 === 0) progress(`${seed - first} of ${count}`);
  if (reject(mutateComponent(corpus[seed % corpus.length], seed), seed) !== undefined) rejected++;
}
progress("");
console.log(`${count} mutated components: ${rejected} rejected, ${count - rejected} valid`);
