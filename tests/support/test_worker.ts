/**
 * Workers of tests, on every JavaScript runtime. In: the URL of a program that calls `serve`. Out: its answers, one to each message.
 *
 * The program tells when it listens, and only then gets messages: Bun drops what is sent to a Worker whose modules still wait for one another
 * (top-level await), as the engine's do.
 */
import { parentPort, Worker } from "node:worker_threads";

type Reply = { result: unknown } | { error: string };

/** What `serve` sends when it listens. */
const READY = "ready";

/** Answers every message with what `answer` returns; what it throws is the error of the one who asked. */
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

/** One Worker, which is asked one thing at a time. */
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
    this.#listens.catch(() => {}); // told to whoever asks
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
