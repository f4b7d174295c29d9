/**
 * The component model's suite, in text form and as binaries: every command of every script is counted once, and passes
 * unless the list of known failures names it.
 */
import assert from "node:assert/strict";
import {
  KNOWN_FAILURES,
  runComponentSuite,
  type SuiteForm,
  type SuiteResult,
  sumOfKinds,
} from "../support/component_run.ts";
import {
  HAS_COMPONENT_BINARIES,
  HAS_COMPONENT_SUITE,
  NEEDS_COMPONENT_BINARIES,
  NEEDS_COMPONENT_SUITE,
} from "../support/component_suite.ts";

/** Numbers of commands by kind. */
const COMMANDS: Readonly<Record<string, number>> = {
  action: 1,
  assert_invalid: 380,
  assert_malformed: 75,
  assert_return: 388,
  assert_trap: 134,
  assert_uninstantiable: 2,
  component: 195,
  definition: 89,
  instance: 159,
};

/** Numbers of commands that are left out, by reason. The list only shrinks. */
const LEFT_OUT: Readonly<Record<string, number>> = {};

/** Limit on the rejections and traps whose message is not the script's. */
const OTHER_MESSAGES = 97;

/** Commands of scripts that the binaries lack: async/cancellable tests an option that the specification has removed. */
const TEXT_ONLY: Readonly<Record<string, number>> = { assert_return: 1, component: 1 };

function check({ scripts, kinds, failures, known, left, otherMessages }: SuiteResult, form: SuiteForm): void {
  const more = form === "text" ? TEXT_ONLY : {};
  assert.deepEqual(failures, []);
  assert.deepEqual(known.sort(), Object.keys(KNOWN_FAILURES).sort());
  assert.deepEqual(Object.fromEntries(left), LEFT_OUT);
  const commands = [...kinds].map(([kind, counts]) => [kind, counts.passed + counts.failed + counts.left]);
  const expected = Object.entries(COMMANDS).map(([kind, count]) => [kind, count + (more[kind] ?? 0)]);
  assert.deepEqual(Object.fromEntries(commands), Object.fromEntries(expected));
  assert.equal(scripts, form === "text" ? 63 : 62);
  // One trap of the known failures is another one than the script's, and counts as passed.
  assert.deepEqual(sumOfKinds(kinds), { passed: form === "text" ? 1422 : 1420, failed: 3, left: 0 });
  assert.ok(otherMessages.length <= OTHER_MESSAGES, otherMessages.join("\n"));
}

const FORMS: readonly { form: SuiteForm; present: boolean; hint: string }[] = [
  { form: "binary", present: HAS_COMPONENT_BINARIES, hint: NEEDS_COMPONENT_BINARIES },
  { form: "text", present: HAS_COMPONENT_SUITE, hint: NEEDS_COMPONENT_SUITE },
];

for (const { form, present, hint } of FORMS) {
  Deno.test({
    name: `every command of the component model's scripts passes in ${form} form${hint}`,
    ignore: !present,
    fn: async () => check(await runComponentSuite(form), form),
  });
}

/** Most functions of the scripts are called a few times, which is too rare for an adapter. */
for (const [calls, how] of [[0, "with adapters for the first call"], [Infinity, "without adapters"]] as const) {
  Deno.test({
    name: `every command of the scripts passes ${how}${NEEDS_COMPONENT_BINARIES}`,
    ignore: !HAS_COMPONENT_BINARIES,
    fn: async () => check(await runComponentSuite("binary", () => true, { callsBeforeAdapter: calls }), "binary"),
  });
}
