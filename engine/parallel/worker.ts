/**
 * The first module of a Worker that helps to compile (parallel/helper.ts). In: jobs as messages, one after the other.
 * It lives until it is terminated, and does not keep the process alive.
 *
 * Invariant: the listener exists as soon as this module is evaluated. Deno drops messages that arrive before, while
 * modules wait for others at their top level, as those of the compiler may; they are imported afterwards.
 */
import { parentPort } from "node:worker_threads";
import type { Target } from "../codegen/target.ts";
import type { CompileJob } from "./helper.ts";
import type { OptimizeJob } from "./optimize_job.ts";

/** Backends are loaded on first use. */
async function targetOf(name: Target["name"]): Promise<Target> {
  return name === "arm64"
    ? (await import("../backend_arm64/target.ts")).ARM64
    : (await import("../backend_x64/target.ts")).X64;
}

const JOBS = Promise.all([import("./helper.ts"), import("./run_optimize_job.ts")]);

parentPort?.on("message", async (job: CompileJob | OptimizeJob) => {
  const [{ helpCompile }, { runOptimizeJob }] = await JOBS;
  const target = await targetOf(job.target);
  if ("kind" in job) runOptimizeJob(job, target);
  else helpCompile(job, target);
});
