/**
 * Short forms of scripts/measure/soak.ts and scripts/measure/many_instances.ts: resource use does not grow, and many
 * instances coexist in scarce address space.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import type { Usage } from "../../scripts/measure/soak.ts";
import { CHILD_TIMEOUT, hostArguments, hostCommand } from "../support/host_arguments.ts";

const SOAK = fileURLToPath(new URL("../../scripts/measure/soak.ts", import.meta.url));

// In a separate process: the counts cover the whole process, which also runs tests of other files.
Deno.test("cycles of instantiate, call, trap, grow, reset, close, abort, pool and restore: nothing grows", () => {
  const directory = mkdtempSync(join(tmpdir(), "waft-soak-"));
  try {
    const file = join(directory, "usage.json");
    const [program, first] = hostCommand(SOAK);
    const { stdout, stderr } = spawnSync(program, [...first, "2000", "--json", file], {
      encoding: "utf8",
      timeout: CHILD_TIMEOUT,
    });
    assert.match(stdout, /2000 cycles in/, stderr);
    const { reports } = JSON.parse(readFileSync(file, "utf8")) as { reports: Usage[] };
    const [early, last] = [reports[4], reports.at(-1)!];
    assert.equal(last.suspended, 0);
    assert.ok(last.descriptors <= early.descriptors, `${early.descriptors} → ${last.descriptors} descriptors`);
    assert.ok(last.mappings < early.mappings + 300, `${early.mappings} → ${last.mappings} mappings`);
    assert.ok(last.handles < early.handles + 1100, `${early.handles} → ${last.handles} handles`);
    assert.ok(last.residentMiB < early.residentMiB + 100, `${early.residentMiB} → ${last.residentMiB} MiB`);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

/**
 * Address space limit in KiB that is too small for guard pages, by host. Deno's V8 reserves 16 GiB, aligned; Bun needs
 * settings for smaller heaps of its own.
 */
const LIMITS: Readonly<Record<string, { kib: number; env: Readonly<Record<string, string>> }>> = {
  deno: { kib: 45_000_000, env: {} },
  node: { kib: 8_000_000, env: {} },
  bun: {
    kib: 8_000_000,
    env: { BUN_JSC_structureHeapSizeInKB: String(1 << 18), BUN_JSC_jitMemoryReservationSize: String(1 << 27) },
  },
};

/**
 * The end of a runtime whose own heap has no aligned place in the address space. That depends on where the system puts
 * the first mappings: one start of Deno in fifty ends so, also of an empty program.
 */
const RUNTIME_LACKS_ROOM = /^# Fatal process out of memory: Oilpan: CagedHeap reservation/m;

Deno.test({
  name: "thousands of instances live where there is no address space for guard pages",
  ignore: process.platform !== "linux",
  fn: () => {
    const { Deno: deno, Bun: bun } = globalThis as { Deno?: unknown; Bun?: unknown };
    const { kib, env } = LIMITS[deno !== undefined ? "deno" : bun !== undefined ? "bun" : "node"];
    const program = hostArguments(fileURLToPath(new URL("../../scripts/measure/many_instances.ts", import.meta.url)));
    // Passed through "$@", because Deno rewrites command text that resembles an invocation of the running program.
    const command = `ulimit -v ${kib} && exec "$@" 3000`;
    const start = () =>
      spawnSync("bash", ["-c", command, "bash", process.execPath, ...program], {
        encoding: "utf8",
        timeout: CHILD_TIMEOUT,
        env: { ...process.env, ...env },
      });
    let run = start();
    for (let attempt = 1; attempt < 20 && RUNTIME_LACKS_ROOM.test(run.stderr); attempt++) run = start();
    const { status, stdout, stderr } = run;
    assert.equal(status, 0, stderr);
    assert.match(stdout, /^3000 instances/);
    const addresses = Number(/([\d.]+) GiB of address space/.exec(stdout)![1]);
    // The rest is for the runtime, which ends the process when its heap or a thread gets none.
    assert.ok(addresses < kib / 2 ** 20 - 2, stdout);
  },
});
