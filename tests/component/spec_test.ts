/**
 * The component model's suite: every command of every script passes or is left out for a known reason.
 */
import assert from "node:assert/strict";
import { HAS_COMPONENT_BINARIES, NEEDS_COMPONENT_BINARIES, runComponentScripts } from "../support/component_suite.ts";

/** Reasons for which commands are left out, with their numbers. The list only shrinks. */
const LEFT_OUT: Readonly<Record<string, number>> = {
  "needs instantiation": 684,
};

/** Rejections with a message of our own; the errors of core modules and of the end of input are the engine's. */
const OWN_MESSAGES = 17;

Deno.test({
  name: `the component model's suite passes${NEEDS_COMPONENT_BINARIES}`,
  ignore: !HAS_COMPONENT_BINARIES,
  fn: () => {
    const { kinds, failures, left, messages } = runComponentScripts();
    assert.deepEqual(failures, []);
    assert.deepEqual(Object.fromEntries(left), LEFT_OUT);
    assert.ok(messages.length <= OWN_MESSAGES, messages.join("\n"));
    const total = [...kinds.values()].reduce((sum, { passed, left }) => sum + passed + left, 0);
    assert.equal(total, 1423);
  },
});
