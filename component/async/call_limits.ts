/**
 * Limits of a call whose tasks may outlive a turn of the event loop. In: the context of the call. Out: a deadline for
 * every core function that its tasks call, accounts of fuel and processor time that they share, and a timer and a
 * signal that end the call while nothing runs. Invariant: a limit that the code cannot enforce is refused before
 * anything runs.
 */
import { clearTimeout, setTimeout } from "node:timers";
import { type Context, ProcessorAccount, TrapError, underLimits } from "@waft/engine";
import type { CoreFunction } from "./core_function.ts";

const MAX_TIMER_MS = 0x7fff_ffff;

export class CallLimits {
  /** The limits of a core function that a task calls. */
  readonly coreContext: Context;
  /** The processor time that the core functions of all tasks share. */
  readonly processorTime: ProcessorAccount | undefined;
  readonly #core: CoreFunction;
  readonly #context: Context;
  readonly #deadline: Date | undefined;

  /** `core` is a function of the component's code. Throws TypeError and RangeError for limits that are refused. */
  constructor(core: CoreFunction, context: Context) {
    underLimits(core, { ...context }, () => {});
    const { deadline } = context;
    const { processorTime } = context;
    this.processorTime = processorTime === undefined ? undefined : new ProcessorAccount(processorTime);
    this.#core = core;
    this.#context = context;
    this.#deadline = typeof deadline === "number" ? new Date(Date.now() + deadline) : deadline;
    this.coreContext = this.#deadline === undefined ? {} : { deadline: this.#deadline };
  }

  /** Runs `action`, which runs tasks of the call, on the call's fuel. */
  run<T>(action: () => T): T {
    const { fuel } = this.#context;
    if (fuel === undefined) return action();
    const account: Context = { fuel };
    try {
      return underLimits(this.#core, account, action);
    } finally {
      this.#context.fuel = account.fuel!;
    }
  }

  /** Calls `expire` once the deadline passes or the signal aborts. Returns a function that ends the watch. */
  watch(expire: (error: unknown) => void): () => void {
    const { signal } = this.#context;
    const abort = () => expire(signal!.reason);
    signal?.addEventListener("abort", abort, { once: true });
    const stopTimer = this.#deadline === undefined ? undefined : this.#startTimer(this.#deadline, expire);
    return () => {
      signal?.removeEventListener("abort", abort);
      stopTimer?.();
    };
  }

  #startTimer(deadline: Date, expire: (error: unknown) => void): () => void {
    const left = () => deadline.getTime() - Date.now();
    let timer: ReturnType<typeof setTimeout>;
    const start = () => {
      timer = setTimeout(() => left() > 0 ? start() : expire(this.#interruption()), Math.min(left(), MAX_TIMER_MS));
    };
    start();
    return () => clearTimeout(timer);
  }

  #interruption(): TrapError {
    const error = new TrapError("interrupted");
    const { deadline } = this.#context;
    error.detail = typeof deadline === "number"
      ? `the deadline of ${deadline} ms`
      : `the deadline at ${this.#deadline!.toISOString()}`;
    return error;
  }
}
