/**
 * Runs multithreaded programs (wasi-threads). Every thread of the guest, including the first, is a Worker with its own
 * instance of one shared module on one shared memory. In: a module that imports its memory and `wasi` `thread-spawn`,
 * and exports `wasi_thread_start`. Out: the exit status, or the TrapError of the thread that trapped.
 *
 * The realm that calls `runThreads` runs no guest code, so its event loop stays responsive. It starts Workers, and it
 * serializes the WASI calls of all threads that touch descriptors on one table, so that no thread can close a
 * descriptor during another's call. A call that would block is retried until it does not block, and the other threads
 * go on.
 *
 * The guest's process ends when its first thread returns, when any thread calls proc_exit, and when any thread traps.
 * Workers are then terminated; one that is running compiled code ends at its next host call or wait.
 */
import { availableParallelism } from "node:os";
import { clearTimer, dateNow, now, setTimer } from "../host/clocks.ts";
import { Worker } from "node:worker_threads";
import { wholeNumber } from "../base/arguments.ts";
import type { Context, Module } from "../api/engine.ts";
import { TrapError, type TrapFrame } from "../base/errors.ts";
import { TRAP, TRAP_MESSAGES } from "../base/traps.ts";
import type { SharedMemoryToken } from "../runtime/memory/shared_pages.ts";
import type { SharedModuleToken } from "../artifact/shared_module.ts";
import { Wasi, type WasiOptions } from "./mod.ts";
import { StartQueue } from "./start_queue.ts";

/**
 * Words of the block shared by all threads: the last thread id assigned, the number of live threads, and 1 when the
 * program has ended.
 */
export const SHARED = { LAST_ID: 0, ALIVE: 1, ENDED: 2, WORDS: 3 } as const;
/** Words of a thread's own block: 1 when the answer is there, and the answer. */
export const REPLY = { READY: 0, RESULT: 1, WORDS: 2 } as const;

/** Start parameters of a Worker. */
export interface ThreadStart {
  /** The program. */
  module: SharedModuleToken;
  /** The memory of all its threads. */
  memory: SharedMemoryToken;
  /** The import that `memory` satisfies. */
  memoryImport: { module: string; name: string };
  /** Arguments, environment and directories. */
  wasi: WasiOptions;
  /** The program's SHARED words. */
  shared: SharedArrayBuffer;
  /** The thread's REPLY words. */
  reply: SharedArrayBuffer;
  /** Maximum number of live threads, including the first. */
  maxThreads: number;
  /** Until when it may run, on the clock of Date.now(). */
  until?: number;
  /** Number and argument of the thread; the first one calls `_start` instead. */
  thread?: { id: number; argument: number };
}

/** A message from a Worker. `ready` is the first, after all modules have loaded. */
export type ThreadMessage =
  | { kind: "ready" }
  | { kind: "call"; name: string; args: (number | bigint)[] }
  | { kind: "spawn"; id: number; argument: number }
  | { kind: "exit"; status: number }
  | { kind: "trap"; message: string; frames: readonly TrapFrame[] }
  | { kind: "error"; message: string }
  | { kind: "end" };

/** The import that starts a thread. */
export const SPAWN = { module: "wasi", name: "thread-spawn" } as const;

/** Default maximum of live threads. */
const MAX_THREADS = 64;
/**
 * Threads whose Workers load their modules at once. Further ones wait: more would not start sooner, and the end of the
 * program has to wait for those that are starting.
 */
const MAX_STARTING = Math.max(2, availableParallelism());
/** Milliseconds between two tries of a call that would block. */
const RETRY_MS = 1;

/** The clock of performance.now() at a time of Date.now(). */
function monotonic(time: number): number {
  return now() + (time - dateNow());
}

/** Calls that may block, and whether they write. Their first argument is the descriptor. */
const BLOCKING: ReadonlyMap<string, boolean> = new Map([
  ["fd_read", false],
  ["sock_recv", false],
  ["sock_accept", false],
  ["fd_write", true],
  ["sock_send", true],
]);

/** Options of `runThreads`. */
export interface ThreadsOptions extends WasiOptions {
  /** Maximum number of live threads, including the first. Default 64. */
  maxThreads?: number;
  /** Gets the files in memory when the program has ended. */
  onFiles?: (files: Record<string, Uint8Array>) => void;
}

/** Returns whether the module starts threads by wasi-threads. */
export function usesThreads(module: Module): boolean {
  return module.imports.some((entry) => entry.module === SPAWN.module && entry.name === SPAWN.name);
}

/** Runs a program with threads to its end. `context` can have a deadline, for all threads together. */
export async function runThreads(module: Module, options: ThreadsOptions = {}, context: Context = {}): Promise<number> {
  const process = new GuestProcess(module, options, context);
  try {
    return await process.run();
  } finally {
    await process.close();
  }
}

/** The greatest delay of a timer. */
const MAX_TIMER_MS = 0x7fff_ffff;

function interrupted(): TrapError {
  return new TrapError(TRAP_MESSAGES[TRAP.INTERRUPTED]);
}

class GuestProcess {
  readonly #wasi: Wasi;
  readonly #start: Omit<ThreadStart, "reply" | "thread">;
  readonly #module: Module;
  readonly #workers = new Set<Worker>();
  /** The workers that have not reported that they are ready. */
  readonly #starting = new Set<Worker>();
  readonly #starts = new StartQueue<ThreadStart["thread"]>(MAX_STARTING, (thread) => this.#startWorker(thread));
  readonly #until: number | undefined;
  readonly #onFiles: (files: Record<string, Uint8Array>) => void;
  #ended = false;
  #end: (outcome: number | Error) => void = () => {};

  constructor(module: Module, options: ThreadsOptions, { deadline, processorTime, fuel, signal }: Context) {
    if (processorTime !== undefined || fuel !== undefined || signal !== undefined) {
      throw new TypeError(
        "A program with threads supports only the limit deadline, not processorTime, fuel or signal",
      );
    }
    const memoryImport = module.imports.find((entry) => entry.kind === "memory");
    if (memoryImport === undefined) throw new TypeError("A program with threads must import its memory");
    const memory = module.memoryForImport(memoryImport.module, memoryImport.name);
    const { maxThreads = MAX_THREADS, onFiles = () => {}, args, env, ...own } = options;
    this.#onFiles = onFiles;
    const strings = { ...(args === undefined ? {} : { args }), ...(env === undefined ? {} : { env }) };
    if (wholeNumber(maxThreads, "The option maxThreads") === 0) {
      throw new RangeError("The option maxThreads must be at least 1: a program has its first thread");
    }
    this.#module = module;
    const until = deadline === undefined
      ? undefined
      : deadline instanceof Date
      ? deadline.getTime()
      : dateNow() + deadline;
    this.#until = until;
    // Calls are made here, but their deadline is the program's.
    const end = until === undefined ? Infinity : monotonic(until);
    this.#wasi = new Wasi({ ...own, ...strings }, {
      deadline: () => end,
      isOver: () => now() >= end,
      isBounded: () => end !== Infinity,
      interrupted,
      charge: () => {},
    });
    this.#wasi.attachMemory(memory);
    this.#start = {
      module: module.share(),
      memory: memory.share(),
      memoryImport: { module: memoryImport.module, name: memoryImport.name },
      // Descriptors stay here.
      wasi: strings,
      shared: new SharedArrayBuffer(SHARED.WORDS * 4),
      maxThreads,
      ...(until === undefined ? {} : { until }),
    };
  }

  async run(): Promise<number> {
    let stopTimer = () => {};
    const outcome = await new Promise<number | Error>((resolve) => {
      this.#end = resolve;
      stopTimer = this.#endAtDeadline();
      this.#starts.add(undefined);
    });
    stopTimer();
    if (outcome instanceof Error) throw outcome;
    return outcome;
  }

  /** Ends the program at its deadline, also while no thread of it runs. Returns a function that cancels that. */
  #endAtDeadline(): () => void {
    const until = this.#until;
    if (until === undefined) return () => {};
    let timer: ReturnType<typeof setTimer>;
    const start = () => {
      const left = until - dateNow();
      if (left <= 0) return this.#end(interrupted());
      timer = setTimer(start, Math.min(left, MAX_TIMER_MS));
    };
    start();
    return () => clearTimer(timer);
  }

  /**
   * Ends all threads. A thread that is still starting is not terminated (thread_worker.ts): it finds the program ended
   * and returns.
   */
  async close(): Promise<void> {
    this.#ended = true;
    Atomics.store(new Int32Array(this.#start.shared), SHARED.ENDED, 1);
    await this.#starts.close();
    for (const worker of this.#workers) worker.terminate();
    this.#workers.clear();
    this.#module.unshare();
    this.#onFiles(this.#wasi.files);
    this.#wasi.close();
  }

  #startWorker(thread: ThreadStart["thread"]): void {
    const reply = new SharedArrayBuffer(REPLY.WORDS * 4);
    const workerData: ThreadStart = { ...this.#start, reply, ...(thread === undefined ? {} : { thread }) };
    const suffix = import.meta.url.endsWith(".ts") ? "ts" : "js";
    let worker: Worker;
    try {
      worker = new Worker(new URL(`./thread_worker.${suffix}`, import.meta.url), { workerData });
    } catch (error) {
      this.#end(error as Error);
      this.#starts.ended();
      return;
    }
    this.#workers.add(worker);
    this.#starting.add(worker);
    worker.on("error", (error: Error) => {
      this.#started(worker);
      this.#end(error);
    });
    worker.on("exit", () => this.#started(worker));
    worker.on("message", (message: ThreadMessage) => {
      if (message.kind === "ready") this.#started(worker);
      else if (!this.#ended) this.#serve(worker, message, new Int32Array(reply), thread === undefined);
    });
  }

  #started(worker: Worker): void {
    if (this.#starting.delete(worker)) this.#starts.ended();
  }

  #serve(worker: Worker, message: ThreadMessage, reply: Int32Array, first: boolean): void {
    switch (message.kind) {
      case "call":
        this.#call(message.name, message.args, reply);
        return;
      case "spawn":
        this.#starts.add({ id: message.id, argument: message.argument });
        return;
      case "exit":
        this.#end(message.status);
        return;
      case "trap":
        this.#end(new TrapError(message.message, message.frames));
        return;
      case "error":
        this.#end(new Error(message.message));
        return;
      case "end":
        this.#workers.delete(worker);
        worker.terminate();
        if (first) this.#end(0);
    }
  }

  /** Makes a WASI call for a thread, which sleeps until the answer is there. `began`: time of its request. */
  #call(name: string, args: (number | bigint)[], reply: Int32Array, began: number = now()): void {
    try {
      const result = this.#attempt(name, args, now() - began);
      if (result === undefined) {
        setTimer(() => {
          if (!this.#ended) this.#call(name, args, reply, began);
        }, RETRY_MS);
        return;
      }
      reply[REPLY.RESULT] = result;
    } catch (error) {
      this.#end(error as Error);
      return;
    }
    Atomics.store(reply, REPLY.READY, 1);
    Atomics.notify(reply, REPLY.READY);
  }

  /** The result of a call, or undefined when it would block. */
  #attempt(name: string, args: (number | bigint)[], waitedMs: number): number | undefined {
    if (name === "poll_oneoff") return this.#wasi.attemptPoll(args as [number, number, number, number], waitedMs);
    const writes = BLOCKING.get(name);
    if (writes !== undefined && !this.#wasi.isReady(Number(args[0]) >>> 0, writes)) return undefined;
    return this.#wasi.imports[name](...args as never[]) as number;
  }
}
