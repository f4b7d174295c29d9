/** The confinement of a process: what machine code in it can still ask of the system. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { CHILD_TIMEOUT, hostCommand } from "../support/host_arguments.ts";

Deno.test("a confined process reaches no files, sockets, programs or processes", () => {
  if (process.platform !== "linux") return;
  const [command, first] = hostCommand(fileURLToPath(new URL("./confined_program.ts", import.meta.url)));
  const env = { ...process.env, UV_USE_IO_URING: "0" }; // as runners have it
  const folder = mkdtempSync(join(tmpdir(), "waft-confined-"));
  const cache = join(folder, "cache");
  writeFileSync(cache, "a cache of the runtime");
  const { status, stdout, stderr } = spawnSync(command, [...first, cache], {
    encoding: "utf8",
    timeout: CHILD_TIMEOUT,
    env,
  });
  rmSync(folder, { recursive: true });
  assert.equal(status, 0, stderr);
  const { measures, attempts, allowed, pid } = JSON.parse(stdout);
  if (!measures.includes("system-calls")) return; // an emulator of processors has no filters
  assert.deepEqual(measures, ["ends-with-parent", "no-core-dump", "descriptors", "system-calls"]);
  const [EPERM, ENOENT, ENOSYS] = [-1, -2, -38];
  for (const [name, result] of Object.entries(attempts)) {
    const expected = name.startsWith("openat") ? ENOENT : name === "clone3" ? ENOSYS : EPERM;
    assert.equal(result, expected, name);
  }
  assert.equal(allowed.kept, 10, "a file that is open for reading stays");
  assert.equal(allowed.cache, 0, "a file that is open for writing is gone");
  assert.equal(allowed.getpid, pid);
  assert.ok(allowed.mmap > 0);
  assert.equal(allowed.yield, 0);
});
