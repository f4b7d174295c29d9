/** The example of deadlines: runaway guests are stopped, and the same instance answers. How late, it prints. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";

const EXAMPLE = fileURLToPath(new URL("../../examples/deadline.ts", import.meta.url));

Deno.test("a loop, a tree of calls and a start function are stopped, and the same instance answers", () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, hostArguments(EXAMPLE), { encoding: "utf8" });
  assert.match(stdout, /^(.*stopped .* ms after its deadline; the same instance then returns 42\n){3}$/, stderr);
  assert.equal(status, 0, stderr);
});
