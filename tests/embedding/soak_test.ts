/**
 * The short forms of scripts/soak.ts and scripts/many_instances.ts: nothing grows, and many instances live where address space is short.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { soak, type Usage } from "../../scripts/soak.ts";

Deno.test("cycles of instantiate, call, trap, grow, reset, close, abort, pool and restore: nothing grows", async () => {
  const usages: Usage[] = [];
  await soak(2000, (_, usage) => usages.push(usage));
  const [early, last] = [usages[4]!, usages.at(-1)!];
  assert.equal(last.suspended, 0);
  assert.ok(last.descriptors <= early.descriptors, `${early.descriptors} → ${last.descriptors} descriptors`);
  assert.ok(last.mappings < early.mappings + 300, `${early.mappings} → ${last.mappings} mappings`);
  assert.ok(last.handles < early.handles + 1100, `${early.handles} → ${last.handles} handles`);
  assert.ok(last.residentMiB < early.residentMiB + 100, `${early.residentMiB} → ${last.residentMiB} MiB`);
});

/** Address space in KiB: Deno reserves 18 GiB for itself, and must find it aligned. */
const DENO_KIB = 45_000_000;

Deno.test({
  name: "thousands of instances live where there is no address space for guard pages",
  ignore: process.platform !== "linux",
  fn: () => {
    const script = fileURLToPath(new URL("../../scripts/many_instances.ts", import.meta.url));
    // In the environment: what looks like a call of this program in arguments is rewritten by the runtime.
    const env = { ...process.env, PROGRAM: process.execPath, SCRIPT: script };
    const command = `ulimit -v ${DENO_KIB} && exec "$PROGRAM" run -A --no-check "$SCRIPT" 3000`;
    const { status, stdout, stderr } = spawnSync("bash", ["-c", command], { encoding: "utf8", timeout: 60_000, env });
    assert.equal(status, 0, stderr);
    assert.match(stdout, /^3000 instances/);
    const addresses = Number(/([\d.]+) GiB of addresses/.exec(stdout)![1]);
    assert.ok(addresses < DENO_KIB / 2 ** 20, stdout);
  },
});
