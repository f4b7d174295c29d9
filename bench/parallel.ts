/**
 * One program on one and on two threads, on waft and on V8: each Worker has its own instance of one module on one
 * shared memory. As a Worker, this file is such a thread. In: an effort. Out: lines to print; throws an Error if the
 * engines disagree.
 */
import { host, Memory, Module, NewEngine, type SharedMemoryToken, type SharedModuleToken } from "@waft/engine";
import { encodeModule } from "../engine/binary/encode.ts";
import { readFileSync } from "node:fs";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { type Effort, median } from "./measure.ts";

const SIZE = 700;
const PROGRAM = new URL("parallel_mandelbrot.wat", import.meta.url);

type Shared =
  | { side: "waft"; module: SharedModuleToken; memory: SharedMemoryToken }
  | { side: "V8"; module: WebAssembly.Module; memory: WebAssembly.Memory };

if (!isMainThread && parentPort !== null && (workerData as { bench?: string }).bench === "parallel") {
  const { shared } = workerData as { shared: Shared };
  const instance = shared.side === "waft"
    ? Module.fromShared(shared.module).instantiate({}, { env: { memory: Memory.fromShared(shared.memory) } })
    : new WebAssembly.Instance(shared.module, { env: { memory: shared.memory } });
  const run = instance.exports["run"] as (size: number) => void;
  const port = parentPort;
  port.on("message", (size: number) => {
    run(size);
    port.postMessage("done");
  });
  port.postMessage("ready");
}

function nextMessage(worker: Worker): Promise<void> {
  return new Promise((resolve, reject) => {
    worker.once("message", () => resolve());
    worker.once("error", reject);
  });
}

/** Milliseconds of the program with `count` threads, and its result. */
async function measure(
  shared: Shared,
  bytes: ArrayBufferLike,
  count: number,
  effort: Effort,
): Promise<[number, number]> {
  const workers = Array.from(
    { length: count },
    () => new Worker(new URL(import.meta.url), { workerData: { bench: "parallel", shared } }),
  );
  await Promise.all(workers.map(nextMessage));
  const words = new Int32Array(bytes);
  const times: number[] = [];
  for (let round = 0; round < effort.rounds + 3; round++) {
    words.fill(0);
    const start = performance.now();
    for (const worker of workers) worker.postMessage(SIZE);
    await Promise.all(workers.map(nextMessage));
    if (round >= 3) times.push(performance.now() - start); // V8 tiers up during the first rounds
  }
  await Promise.all(workers.map((worker) => worker.terminate()));
  return [median(times), words[16]];
}

/** Measures each number of threads; one line each. */
export async function measureParallel(effort: Effort): Promise<string[]> {
  const engine = NewEngine({ tier: "optimizing" });
  const bytes = new Uint8Array(encodeModule(engine.parse(readFileSync(PROGRAM, "utf8"))));
  const waftMemory = host.sharedMemory(1, 1);
  const v8Memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
  const module = engine.compile(bytes);
  const lines: string[] = [];
  for (const count of [1, 2]) {
    const waft: Shared = { side: "waft", module: module.share(), memory: waftMemory.share() };
    const v8: Shared = { side: "V8", module: new WebAssembly.Module(bytes), memory: v8Memory };
    const [waftMs, answer] = await measure(waft, waftMemory.buffer, count, effort);
    const [v8Ms, expected] = await measure(v8, v8Memory.buffer, count, effort);
    if (answer !== expected) throw new Error(`waft returns ${answer}, V8 returns ${expected}`);
    const ratio = (waftMs / v8Ms).toFixed(2);
    const threads = count === 1 ? "1 thread" : `${count} threads`;
    lines.push(
      `parallel_mandelbrot, ${threads}: waft ${waftMs.toFixed(2)} ms, V8 ${v8Ms.toFixed(2)} ms, ratio ${ratio}`,
    );
  }
  module.unshare();
  return lines;
}
