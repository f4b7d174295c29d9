/**
 * The first module of a Worker that helps to compile (parallel/helper.ts). In: jobs as messages, one after the other.
 * It lives until it is terminated, and does not keep the process alive.
 *
 * Invariant: the listener exists as soon as this module is evaluated. Deno drops messages that arrive before, while
 * modules wait for others at their top level, as those of the compiler may; they are imported afterwards.
 */
import { parentPort } from "node:worker_threads";
import type { CompileJob } from "./helper.ts";
import type { OptimizeJob } from "../background/optimize_job.ts";

const JOBS = Promise.all([
  import("../compile/backends.ts"),
  import("./helper.ts"),
  import("../background/run_optimize_job.ts"),
]);

parentPort?.on("message", async (job: CompileJob | OptimizeJob) => {
  const [{ backendFor }, { helpCompile }, { runOptimizeJob }] = await JOBS;
  const target = backendFor(job.target);
  if ("kind" in job) runOptimizeJob(job, target);
  else helpCompile(job, target);
});
