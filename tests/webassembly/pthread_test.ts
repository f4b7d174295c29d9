/**
 * Threads in Emscripten's manner, and clones, in a process that loads waft's install module first (pthread_program.ts).
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { CHILD_TIMEOUT, preloadArguments } from "../support/host_arguments.ts";

const PROGRAM = fileURLToPath(new URL("./pthread_program.ts", import.meta.url));

Deno.test("threads in the way of Emscripten get modules and memories in messages", () => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    preloadArguments("@waft/engine/install", PROGRAM),
    { encoding: "utf8", timeout: CHILD_TIMEOUT },
  );
  assert.equal(status, 0, `${stdout}${stderr}`);
  const names = stdout.trimEnd().split("\n");
  for (const kind of ["node:worker_threads", ...("Worker" in globalThis ? ["the web"] : [])]) {
    assert.ok(names.includes(`threads in the way of Emscripten, with Workers of ${kind}`), stdout);
  }
  assert.equal(names.filter((name) => name.startsWith("clones: ")).length, 4, stdout);
});
