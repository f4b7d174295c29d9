/**
 * Runs the component model's suite: `deno task spec:components [--messages] [FILTER…]`. A filter is part of a script's
 * name. The suite's folder is COMPONENT_TESTSUITE. Out: the counts by kind of command; fails if a command fails.
 */
import process from "node:process";
import {
  HAS_COMPONENT_BINARIES,
  NEEDS_COMPONENT_BINARIES,
  runComponentScripts,
} from "../tests/support/component_suite.ts";
import { readTaskLine } from "./task_options.ts";

const task = {
  name: "task spec:components",
  about: "Runs the component model's suite (in the folder COMPONENT_TESTSUITE) from its binaries.",
  operands: "[FILTER…]",
  options: { messages: { help: "list the rejections whose message differs from the script's" } },
} as const;
const { values, operands: filters } = readTaskLine(task);
if (!HAS_COMPONENT_BINARIES) {
  console.error(`The component model's suite is not present${NEEDS_COMPONENT_BINARIES}.`);
  process.exit(1);
}
const { kinds, failures, left, messages } = runComponentScripts((script) =>
  filters.length === 0 || filters.some((filter) => script.includes(filter))
);
for (const failure of failures) console.log(failure);
if (values.messages) { for (const message of messages) console.log(message); }
for (const [kind, counts] of kinds) {
  console.log(`${kind}: ${counts.passed} passed, ${counts.failed} failed, ${counts.left} left out`);
}
for (const [reason, number] of left) console.log(`left out: ${number} ${reason}`);
if (failures.length > 0) process.exitCode = 1;
