/**
 * Workers for tests, on every JavaScript runtime. In: the URL of a program that calls `serve`. Out: one answer per
 * message.
 *
 * The program announces that it listens before it receives messages: Bun drops messages to a Worker whose modules still
 * await each other (top-level await), as the engine's do.
 */
import { parentPort, Worker } from "node:worker_threads";

type Reply = { result: unknown } | { error: string };

/** The message that `serve` sends once it listens. */
const READY = "ready";

/** Answers every message with the result of `answer`; an exception rejects the request. */
export function serve(answer: (request: never) => unknown): void {
  const port = parentPort!;
  port.on("message", async (request) => {
    let reply: Reply;
    try {
      reply = { result: await answer(request as never) };
    } catch (error) {
      reply = { error: (error as Error).message };
    }
    port.postMessage(reply);
  });
  port.postMessage(READY);
}

/** One Worker, which handles one request at a time. */
export class TestWorker {
  readonly #worker: Worker;
  readonly #listens: Promise<void>;
  #settle: { resolve(result: unknown): void; reject(error: Error): void } | undefined;

  constructor(program: URL) {
    this.#worker = new Worker(program);
    this.#listens = new Promise((resolve, reject) => {
      this.#worker.on("error", (error: Error) => {
        reject(error);
        this.#settle?.reject(error);
      });
      this.#worker.on("message", (reply: Reply | typeof READY) => {
        if (reply === READY) resolve();
        else if ("error" in reply) this.#settle!.reject(new Error(reply.error));
        else this.#settle!.resolve(reply.result);
      });
    });
    this.#listens.catch(() => {}); // reported by ask()
  }

  async ask(request: unknown): Promise<unknown> {
    await this.#listens;
    return await new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
      this.#worker.postMessage(request);
    });
  }

  terminate(): void {
    void this.#worker.terminate();
  }
}
