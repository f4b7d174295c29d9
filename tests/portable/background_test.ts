/**
 * A thread in the background compiles whole modules and batches with the compiled form of the compiler: it loads none
 * of the TypeScript form, which makes the same code where the host has no WebAssembly.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { CHILD_TIMEOUT } from "../support/host_arguments.ts";

/** Runs the jobs of a Worker on this thread, and prints digests of their code and whether TypeScript made it. */
const PROGRAM = `
const { createHash } = await import("node:crypto");
const { readFileSync } = await import("node:fs");
const { backendFor } = await import("ENGINE/compile/backends.ts");
const { optimizingForm } = await import("ENGINE/compile/compile.ts");
const { JOB, RequestedJob } = await import("ENGINE/background/optimize_job.ts");
const { runOptimizeJob } = await import("ENGINE/background/run_optimize_job.ts");
const { hostArchitecture } = await import("ENGINE/host/cpu.ts");
const { codeSettings } = await import("ENGINE/settings/code_settings.ts");
const { featureSet } = await import("ENGINE/settings/features.ts");
const { optimizationSet } = await import("ENGINE/settings/optimizations.ts");
const target = hostArchitecture(), backend = backendFor(target);
const options = { features: featureSet(), optimizations: optimizationSet(), settings: codeSettings() };
const binary = readFileSync("examples/wasi/lisp.wasm");
const codes = [{ batch: { wanted: [5], mostBytes: 4000 } }, {}].map((more) => {
  const job = RequestedJob.make({ target, cpu: [], pollPage: 0, options, ...more }, new Uint8Array(binary), true);
  runOptimizeJob(job.message, backend);
  if (job.state !== JOB.COMPILED) throw new Error("state " + job.state);
  return createHash("sha256").update(job.code.slice()).digest("hex");
});
console.log(JSON.stringify({ codes, form: optimizingForm(target) }));
`;

/** The output of the program, run after `before`. */
function run(before: string): { readonly codes: readonly string[]; readonly form: string } {
  const engine = new URL("../../engine", import.meta.url).href;
  const { stdout, stderr } = spawnSync(process.execPath, ["run", "--quiet", "--no-check", "-A", "-"], {
    input: before + PROGRAM.replaceAll("ENGINE", engine),
    cwd: fileURLToPath(new URL("../..", import.meta.url)),
    encoding: "utf8",
    timeout: CHILD_TIMEOUT,
  });
  assert.notEqual(stdout, "", stderr);
  return JSON.parse(stdout);
}

Deno.test("a job in the background loads none of the TypeScript form, and falls back to it", () => {
  const compiled = run(""), fallback = run("delete globalThis.WebAssembly;");
  assert.equal(compiled.form, "compiled");
  assert.equal(fallback.form, "TypeScript");
  assert.deepEqual(compiled.codes, fallback.codes);
});
