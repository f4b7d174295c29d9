/**
 * Workers that are kept for jobs to come. In: the URL of a module that takes jobs as messages. Out: functions that send one. Workers do not keep the
 * process alive, start without the event loop of who starts them, and end when nothing was asked of them for a while.
 */
import type { Worker } from "node:worker_threads";
import { nodeModule } from "./process.ts";

/** Milliseconds after which idle Workers are ended: their memory is worth more. */
const IDLE_MS = 10_000;

const WORKERS: Worker[] = [];
let idle: { refresh(): unknown; unref(): unknown } | undefined;

/** Jobs that need the Workers for longer than the idle time: each tells whether it is under way. */
const UNDER_WAY = new Set<() => boolean>();

/** Keeps Workers, however long nothing is asked of them, while a job is under way. */
export function keepWorkersWhile(isUnderWay: () => boolean): void {
  UNDER_WAY.add(isUnderWay);
}

/** How many threads this machine runs at once. */
export function processorCount(): number {
  const { navigator } = globalThis as { navigator?: { hardwareConcurrency?: number } };
  return navigator?.hardwareConcurrency ?? nodeModule("node:os").availableParallelism();
}

/** How many Workers there are. */
export function workerCount(): number {
  return WORKERS.length;
}

/** At most `count` Workers of `module`, as functions that send them a message; fewer when the host refuses. */
export function startWorkers(module: URL, count: number): ((message: unknown) => void)[] {
  try {
    const { Worker } = nodeModule("node:worker_threads");
    while (WORKERS.length < count) {
      const worker = new Worker(module);
      worker.unref();
      const forget = () => {
        const at = WORKERS.indexOf(worker);
        if (at >= 0) WORKERS.splice(at, 1);
      };
      // Who has asked it for something finds out by itself.
      worker.on("error", forget);
      worker.on("exit", forget);
      WORKERS.push(worker);
    }
  } catch {
    // those that there are
  }
  if (WORKERS.length > 0) endLater();
  return WORKERS.slice(0, count).map((worker) => (message) => worker.postMessage(message));
}

function endLater(): void {
  if (idle !== undefined) {
    idle.refresh();
    return;
  }
  const timer = nodeModule("node:timers").setTimeout(() => {
    for (const isUnderWay of UNDER_WAY) if (!isUnderWay()) UNDER_WAY.delete(isUnderWay);
    if (UNDER_WAY.size > 0) timer.refresh();
    else void endWorkers();
  }, IDLE_MS);
  timer.unref();
  idle = timer;
}

/** Ends all Workers, whatever they do; resolves when they are gone. */
export async function endWorkers(): Promise<void> {
  nodeModule("node:timers").clearTimeout(idle as Parameters<typeof clearTimeout>[0]);
  idle = undefined;
  UNDER_WAY.clear();
  await Promise.all(WORKERS.splice(0).map((worker) => worker.terminate()));
}
