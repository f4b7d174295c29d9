/** The context that the flags of a run make. */
import assert from "node:assert/strict";
import { runContext } from "./control_flags.ts";

Deno.test("the time of --timeout runs from the first reading of the deadline", () => {
  const { now } = Date;
  let time = 1000;
  Date.now = () => time;
  try {
    const context = runContext({ timeout: "100", fuel: "5" });
    time = 5000;
    assert.deepEqual({ ...context }, { fuel: 5, deadline: new Date(5100) });
    time = 9000;
    assert.deepEqual(context.deadline, new Date(5100));
    assert.equal("deadline" in runContext({}), false);
    assert.throws(() => runContext({ timeout: "soon" }), /--timeout takes a whole number/);
  } finally {
    Date.now = now;
  }
});
