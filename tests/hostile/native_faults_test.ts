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

/** A busy machine takes long for all scenarios. */
const TIMEOUT = 30 * CHILD_TIMEOUT;

/** The scenarios of an ordinary run, by mode; `deno task faults` runs all of them in both. */
const SCENARIOS = {
  once: "engine made,snapshot and reset,deadline",
  onward: "engine made,both tiers,memory with guard pages,objects",
} as const;

/** The fewest refusals by call in both modes. */
const FEWEST: Readonly<Record<string, number>> = {
  dlopen: 3,
  memfd_create: 3,
  mmap: 20,
  mprotect: 30,
  pthread_create: 1,
  sigaction: 2,
  sigaltstack: 1,
  write: 3,
};

/** Adds the refusals of a run, by call. */
function addRefusals(mode: keyof typeof SCENARIOS, sums: Record<string, number>): void {
  const folder = mkdtempSync(join(tmpdir(), "waft-faults-"));
  try {
    const args = [...hostArguments(PROGRAM), folder, mode, process.env["WAFT_TEST_FAULTS"] ?? SCENARIOS[mode]];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", timeout: TIMEOUT });
    assert.equal(status, 0, stderr);
    for (const line of stdout.trim().split("\n")) {
      const { calls } = JSON.parse(line) as { calls: Record<string, number> };
      for (const [call, count] of Object.entries(calls)) sums[call] = (sums[call] ?? 0) + count;
    }
  } finally {
    removeFolder(folder);
  }
}

Deno.test({
  name: "calls that the system refuses: a clear error or a fallback, nothing lost, and the next attempt works",
  ignore: process.platform !== "linux", // the FFI of the test refuses the calls of Linux
  fn: () => {
    const sums: Record<string, number> = {};
    addRefusals("once", sums);
    addRefusals("onward", sums);
    for (const [call, fewest] of Object.entries(FEWEST)) {
      assert.ok((sums[call] ?? 0) >= fewest, `${call} was refused ${sums[call] ?? 0} times`);
    }
  },
});
