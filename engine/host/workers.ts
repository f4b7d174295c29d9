/**
 * A pool of reusable Workers. In: the URL of a module that receives jobs as messages. Out: functions that send a job to
 * a Worker. Workers do not keep the process alive, start independently of the starting realm's event loop, and end
 * after an idle period.
 */
import type { Worker } from "node:worker_threads";
import { hasAddressSpace } from "./memory/address_space.ts";
import { currentHost } from "./current.ts";
import { nodeModule } from "./process.ts";
import { reportedConcurrency } from "./globals.ts";

/** Milliseconds after which idle Workers end, to free their memory. */
const IDLE_MS = 10_000;

/**
 * Address space in bytes without which no Worker is started: its heap reserves about one gigabyte, and a runtime that
 * gets none ends the process.
 */
const WORKER_ROOM = 4 * 2 ** 30;

const WORKERS: Worker[] = [];
/** Whether Workers may be started: a confined process cannot read the modules that they run. */
let mayStart = true;

/** Starts no Workers from now on: their clients do the work themselves. */
export function refuseWorkers(): void {
  mayStart = false;
}

/** The timer that ends idle Workers. */
let idle: { refresh(): unknown; unref(): unknown } | undefined;

/** Jobs that need the Workers for longer than the idle time; each function reports whether its job is in progress. */
const UNDER_WAY = new Set<() => boolean>();

/** Keeps idle Workers alive while a job is in progress. */
export function keepWorkersWhile(isUnderWay: () => boolean): void {
  forgetEnded(); // a program that is never idle would keep all of its jobs
  UNDER_WAY.add(isUnderWay);
}

function forgetEnded(): void {
  for (const isUnderWay of UNDER_WAY) if (!isUnderWay()) UNDER_WAY.delete(isUnderWay);
}

/** The number of threads that this machine runs at once. */
export function processorCount(): number {
  return reportedConcurrency() ?? nodeModule("node:os").availableParallelism();
}

/** The number of Workers in the pool. */
export function workerCount(): number {
  return WORKERS.length;
}

/**
 * Message senders for at most `count` Workers of `module`; fewer when the host refuses to start more, or has no
 * address space for them.
 */
export function startWorkers(module: URL, count: number): ((message: unknown) => void)[] {
  try {
    const { Worker } = nodeModule("node:worker_threads");
    if (mayStart && failsToStartWorkers()) mayStart = false;
    while (mayStart && WORKERS.length < count && hasAddressSpace(currentHost(), WORKER_ROOM)) {
      const worker = new Worker(module);
      worker.unref();
      const forget = () => {
        const at = WORKERS.indexOf(worker);
        if (at >= 0) WORKERS.splice(at, 1);
      };
      // Clients of the Worker detect its end themselves.
      worker.on("error", forget);
      worker.on("exit", forget);
      WORKERS.push(worker);
    }
  } catch {
    // use the Workers already started
  }
  if (WORKERS.length > 0) endLater();
  return WORKERS.slice(0, count).map((worker) => (message) => worker.postMessage(message));
}

/** Deno 2.9 ends each Worker of a process that is a worker of `node:cluster`, with an error that it also prints. */
function failsToStartWorkers(): boolean {
  return "Deno" in globalThis && nodeModule("node:process").send !== undefined && nodeModule("node:cluster").isWorker;
}

function endLater(): void {
  if (idle !== undefined) {
    idle.refresh();
    return;
  }
  const timer = nodeModule("node:timers").setTimeout(() => {
    forgetEnded();
    if (UNDER_WAY.size > 0) timer.refresh();
    else void endWorkers();
  }, IDLE_MS);
  timer.unref();
  idle = timer;
}

/**
 * Lets the event loop call `action` soon, unless the process ends before. Loading the module of timers takes Deno about
 * as long as starting a Worker, so the code that is running ends first.
 */
export function callSoon(action: () => void): void {
  queueMicrotask(() => nodeModule("node:timers").setTimeout(action, 0).unref());
}

/** Terminates all Workers, including busy ones; resolves when they have ended. */
export async function endWorkers(): Promise<void> {
  nodeModule("node:timers").clearTimeout(idle as Parameters<typeof clearTimeout>[0]);
  idle = undefined;
  UNDER_WAY.clear();
  await Promise.all(WORKERS.splice(0).map((worker) => worker.terminate()));
}
