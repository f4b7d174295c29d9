/**
 * The first module of a Worker that helps to compile (parallel/helper.ts). In: jobs as messages, one after the other.
 * It lives until it is terminated, and does not keep the process alive.
 */
import { parentPort } from "node:worker_threads";
import type { Target } from "../codegen/target.ts";
import { type CompileJob, helpCompile } from "./helper.ts";

/** Backends are loaded on first use. */
async function targetOf(name: Target["name"]): Promise<Target> {
  return name === "arm64"
    ? (await import("../backend_arm64/target.ts")).ARM64
    : (await import("../backend_x64/target.ts")).X64;
}

parentPort?.on("message", async (job: CompileJob) => helpCompile(job, await targetOf(job.target)));
