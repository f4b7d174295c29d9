/** The example that captures the output of a program. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { hostArguments } from "../support/host_arguments.ts";

const EXAMPLE = fileURLToPath(new URL("../../examples/wasi/capture.ts", import.meta.url));

Deno.test("the example prints the captured output of a program with input from memory", () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, hostArguments(EXAMPLE), { encoding: "utf8" });
  assert.equal(status, 0, stderr);
  assert.match(stdout, /^status 0\n1 lines, 6 words, 19 bytes\n2 be\n2 to\n/);
});
