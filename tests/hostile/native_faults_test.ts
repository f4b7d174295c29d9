/**
 * Refused calls of the system, in child processes (native_faults_program.ts): memory, protection, anonymous files,
 * threads, signals and libraries fail at every place of the engine's code that asks for them.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { CHILD_TIMEOUT, hostArguments } from "../support/host_arguments.ts";
import { removeFolder } from "../support/remove_folder.ts";

const PROGRAM = fileURLToPath(new URL("./native_faults_program.ts", import.meta.url));

/** The number of scenarios takes long on a busy machine. */
const TIMEOUT = 20 * CHILD_TIMEOUT;

/** The fewest refusals by call over all scenarios. */
const FEWEST: Readonly<Record<string, number>> = {
  dlopen: 3,
  memfd_create: 3,
  mmap: 40,
  mprotect: 60,
  pthread_create: 1,
  sigaction: 5,
  sigaltstack: 2,
  write: 3,
};

/** The refusals in all scenarios, by call. */
function refusals(mode: "once" | "onward"): Record<string, number> {
  const folder = mkdtempSync(join(tmpdir(), "waft-faults-"));
  try {
    const args = [...hostArguments(PROGRAM), folder, mode, "all"];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", timeout: TIMEOUT });
    assert.equal(status, 0, stderr);
    const sums: Record<string, number> = {};
    for (const line of stdout.trim().split("\n")) {
      const { calls } = JSON.parse(line) as { calls: Record<string, number> };
      for (const [call, count] of Object.entries(calls)) sums[call] = (sums[call] ?? 0) + count;
    }
    return sums;
  } finally {
    removeFolder(folder);
  }
}

for (const mode of ["once", "onward"] as const) {
  Deno.test({
    name: `calls that the system refuses (${mode}): a clear error or a fallback, nothing lost, and the next attempt works`,
    ignore: process.platform !== "linux", // the FFI of the test refuses the calls of Linux
    fn: () => {
      const sums = refusals(mode);
      for (const [call, fewest] of Object.entries(FEWEST)) {
        assert.ok((sums[call] ?? 0) >= fewest, `${call} was refused ${sums[call] ?? 0} times`);
      }
    },
  });
}
