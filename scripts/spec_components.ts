/**
 * Runs the component model's suite: `deno task spec:components [--text] [--messages] [FILTER…]`. A filter is part of a
 * script's name. The suite's folder is COMPONENT_TESTSUITE. Out: the counts by kind of command; fails if a command
 * fails that is not a known failure.
 */
import process from "node:process";
import { KNOWN_FAILURES, runComponentSuite, sumOfKinds } from "../tests/support/component_run.ts";
import {
  HAS_COMPONENT_BINARIES,
  HAS_COMPONENT_SUITE,
  NEEDS_COMPONENT_BINARIES,
  NEEDS_COMPONENT_SUITE,
} from "../tests/support/component_suite.ts";
import { readTaskLine } from "./task_options.ts";

const task = {
  name: "task spec:components",
  about: "Runs the component model's suite (in the folder COMPONENT_TESTSUITE) from its binaries.",
  operands: "[FILTER…]",
  options: {
    text: { help: "run the scripts in text form" },
    messages: { help: "list the errors and traps whose message differs from the script's" },
  },
} as const;
const { values, operands: filters } = readTaskLine(task);
const isText = values.text === true;
if (!(isText ? HAS_COMPONENT_SUITE : HAS_COMPONENT_BINARIES)) {
  console.error(
    `The component model's suite is not present${isText ? NEEDS_COMPONENT_SUITE : NEEDS_COMPONENT_BINARIES}.`,
  );
  process.exit(1);
}
const { scripts, kinds, failures, known, left, otherMessages } = await runComponentSuite(
  isText ? "text" : "binary",
  (script) => filters.length === 0 || filters.some((filter) => script.includes(filter)),
);
for (const failure of failures) console.log(failure);
if (values.messages === true) { for (const message of otherMessages) console.log(message); }
for (const [kind, counts] of kinds) {
  console.log(`${kind}: ${counts.passed} passed, ${counts.failed} failed, ${counts.left} left out`);
}
for (const place of known) console.log(`known failure: ${place}: ${KNOWN_FAILURES[place]}`);
for (const [reason, number] of left) console.log(`left out: ${number} ${reason}`);
const { passed, failed, left: leftOut } = sumOfKinds(kinds);
console.log(`${scripts} scripts: ${passed} passed, ${failed} failed, ${leftOut} left out`);
if (failures.length > 0) process.exitCode = 1;
