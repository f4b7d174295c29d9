/**
 * A program for native_test.ts: a realm ends while native threads compile for it. In: `process`, which ends with status
 * 3 at once, or `worker`, where the realm is that of a Worker that is terminated. Out: of the latter, a line once the
 * program itself has compiled the module ten times.
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { decodeModule } from "../../engine/binary/decode.ts";
import { hostBackend } from "../../engine/compile/backends.ts";
import { cpuFeatures, hostArchitecture } from "../../engine/host/cpu.ts";
import { currentHost } from "../../engine/host/current.ts";
import { useNativeCompiler } from "../../engine/portable/late_native.ts";
import { realmStore } from "../../engine/api/engine.ts";
import { codeSettings } from "../../engine/settings/code_settings.ts";
import { featureSet } from "../../engine/settings/features.ts";
import { optimizationSet } from "../../engine/settings/optimizations.ts";
import { NativeJobs } from "../../engine/tiers/native_job.ts";
import { validateModule } from "../../engine/validate/module.ts";
import { nativeCompiler } from "../../scripts/package/build_native_compiler.ts";

const native = await nativeCompiler(hostArchitecture());
useNativeCompiler(() => native);

const LISP = new Uint8Array(readFileSync(new URL("../../examples/wasi/lisp.wasm", import.meta.url)));

const jobs = new NativeJobs(
  realmStore().thread,
  validateModule(decodeModule(LISP), featureSet(), { bodies: false }),
  {
    target: hostBackend(),
    features: featureSet(),
    optimizations: optimizationSet(),
    settings: codeSettings(),
    cpu: cpuFeatures(currentHost()),
  },
);

/** Starts to compile the module in a native thread. */
function start() {
  const job = jobs.start(undefined, performance.now(), () => undefined);
  if (job === undefined) throw new Error("no native thread");
  return job;
}

/** Compiles the module in a native thread. */
function compile(): void {
  const job = start();
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    const result = job.advance(performance.now());
    if (result === "failed") throw new Error("the native thread has failed");
    if (result !== "waiting") return;
    Atomics.wait(pause, 0, 0, 1);
  }
}

if (!isMainThread) {
  for (let k = 0; k < 3; k++) start();
  parentPort!.postMessage("started");
} else if (process.argv[2] === "process") {
  for (let k = 0; k < 3; k++) start();
  process.exit(3);
} else {
  const worker = new Worker(new URL(import.meta.url));
  await new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
  await worker.terminate();
  for (let k = 0; k < 10; k++) compile();
  console.log("compiled");
  process.exit(0);
}
