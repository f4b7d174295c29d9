/** A thread of pthread_program.ts as a Worker of node:worker_threads. */
import { parentPort } from "node:worker_threads";
import { startThread } from "./pthread_worker.ts";

startThread(parentPort!, (listener) => parentPort!.on("message", listener));
