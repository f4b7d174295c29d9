/** Tasks that go on after all calls of the host have ended: they run, and do not keep the process alive. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { CHILD_TIMEOUT, hostCommand } from "../support/host_arguments.ts";

const PROGRAM = fileURLToPath(new URL("./background_tasks.ts", import.meta.url));

/** The output of a program that pumps a store whose tasks are always ready. */
async function outputOf(...args: string[]): Promise<string> {
  const [command, first] = hostCommand(PROGRAM);
  const { stdout } = await promisify(execFile)(command, [...first, ...args], { timeout: 2 * CHILD_TIMEOUT });
  return stdout;
}

Deno.test("a task that yields forever does not keep the process alive", async () => {
  assert.equal(await outputOf(), "20000\n");
});

Deno.test("a call that waits for such a task keeps the process alive, and two pumps share a turn", async () => {
  assert.equal(await outputOf("wait"), "50000\n");
});
