/**
 * A worker of `waft serve`: a process that shares the address with others. In: messages of the primary process, which
 * holds the address. Out: the worker's address and its samples. Invariant: a worker ends with its primary.
 */
import process from "node:process";
import type { Samples } from "../../base/prometheus.ts";
import type { Serving } from "./serve_component.ts";

/** Messages to a worker. */
export type ToWorker =
  /** Send samples now. */
  | { readonly type: "sample" }
  /** Accept no more connections, and end when clients have closed theirs, at the latest after `idleMs` without one. */
  | { readonly type: "drain"; readonly idleMs: number }
  /** Accept no more connections, and end after the requests in progress. */
  | { readonly type: "stop" };

/** Messages of a worker. */
export type FromWorker =
  | { readonly type: "ready"; readonly url: string }
  | { readonly type: "samples"; readonly samples: Samples };

/** The interval in which a worker sends its samples; a worker that is killed loses what it has counted since. */
const SAMPLE_INTERVAL_MS = 500;

/** Serves until the primary or SIGTERM ends this worker. `samples` returns those of this process. */
export async function runWorker(serving: Serving, samples: () => Samples): Promise<void> {
  const sendSamples = () => send({ type: "samples", samples: samples() });
  const ended = new Promise<void>((resolve, reject) => {
    const stop = () => void serving.stop().then(resolve, reject);
    process.on("message", (message: ToWorker) => {
      if (message.type === "sample") void sendSamples();
      else if (message.type === "drain") void serving.drain(message.idleMs).then(resolve, reject);
      else stop();
    });
    process.on("SIGTERM", stop);
    process.on("disconnect", stop);
  });
  const timer = setInterval(() => void sendSamples(), SAMPLE_INTERVAL_MS);
  await send({ type: "ready", url: serving.url });
  await ended;
  clearInterval(timer);
  await sendSamples();
}

/** Sends a message; resolves when it has been sent, or when the primary is gone. */
function send(message: FromWorker): Promise<void> {
  return new Promise((resolve) => {
    try {
      process.send?.(message, undefined, undefined, () => resolve());
    } catch {
      resolve();
    }
    if (process.send === undefined || !process.connected) resolve();
  });
}
