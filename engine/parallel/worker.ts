/**
 * The first module of a Worker that helps to compile (parallel/helper.ts). In: jobs as messages, one after the other.
 * It lives until it is terminated, and does not keep the process alive.
 */
import { parentPort } from "node:worker_threads";
import type { Target } from "../codegen/target.ts";
import { type CompileJob, helpCompile } from "./helper.ts";
import type { OptimizeJob } from "./optimize_job.ts";
import { runOptimizeJob } from "./run_optimize_job.ts";

/** Backends are loaded on first use. */
async function targetOf(name: Target["name"]): Promise<Target> {
  return name === "arm64"
    ? (await import("../backend_arm64/target.ts")).ARM64
    : (await import("../backend_x64/target.ts")).X64;
}

parentPort?.on("message", async (job: CompileJob | OptimizeJob) => {
  const target = await targetOf(job.target);
  if ("kind" in job) runOptimizeJob(job, target);
  else helpCompile(job, target);
});
