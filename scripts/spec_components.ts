/**
 * Runs the component model's suite: `deno task spec:components [--text] [--messages] [FILTER…]`. A filter is part of a
 * script's name. The suite's folder is COMPONENT_TESTSUITE or the copy fetched by `deno task testsuite`; its scripts
 * are run from their binaries where it has them, else as text. Out: the counts by kind of command; fails if a command
 * fails that is not a known failure.
 */
import process from "node:process";
import { KNOWN_FAILURES, runComponentSuite, sumOfKinds } from "../tests/support/component_run.ts";
import { HAS_COMPONENT_BINARIES, HAS_COMPONENT_SUITE } from "../tests/support/component_suite.ts";
import { suiteFolder, suiteHint, suiteNamed } from "../tests/support/suites.ts";
import { readTaskLine } from "./task_options.ts";

const task = {
  name: "task spec:components",
  about: "Runs the component model's suite (in the folder COMPONENT_TESTSUITE), from its binaries where it has them. " +
    "FILTER is part of a script's name.",
  operands: "[FILTER…]",
  options: {
    text: { help: "run the scripts in text form, even if there are binaries" },
    messages: { help: "list the errors and traps whose message differs from the script's" },
  },
} as const;
const { values, operands: filters } = readTaskLine(task);
if (!HAS_COMPONENT_SUITE) {
  const suite = suiteNamed("components");
  console.error(`The component model's suite is not at ${suiteFolder(suite)}: ${suiteHint(suite)}.`);
  process.exit(1);
}
const { scripts, kinds, failures, known, left, otherMessages } = await runComponentSuite(
  values.text || !HAS_COMPONENT_BINARIES ? "text" : "binary",
  (script) => filters.length === 0 || filters.some((filter) => script.includes(filter)),
);
for (const failure of failures) console.log(failure);
if (values.messages) { for (const message of otherMessages) console.log(message); }
for (const [kind, counts] of kinds) {
  console.log(`${kind}: ${counts.passed} passed, ${counts.failed} failed, ${counts.left} left out`);
}
for (const place of known) console.log(`known failure: ${place}: ${KNOWN_FAILURES[place]}`);
for (const [reason, number] of left) console.log(`left out: ${number} ${reason}`);
const { passed, failed, left: leftOut } = sumOfKinds(kinds);
console.log(`${scripts} scripts: ${passed} passed, ${failed} failed, ${leftOut} left out`);
if (failures.length > 0) process.exitCode = 1;
