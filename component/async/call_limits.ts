/**
 * Limits of a call whose tasks may outlive a turn of the event loop. In: the context of the call. Out: a deadline for
 * every core function that its tasks call, accounts of fuel and processor time that they share with the work of the
 * host for the call, and a timer and a signal that end the call while nothing runs. Invariant: a limit that the code
 * cannot enforce is refused before anything runs.
 */
import { clearTimeout, setTimeout } from "node:timers";
import { type Context, ProcessorAccount, TrapError, underLimits } from "@waft/engine";
import { dateNow } from "@waft/engine/internal/host/clocks";
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
  /** Whether `run` is in progress, whose accounts then count for everything in it. */
  #running = false;

  /** `core` is a function of the component's code. Throws TypeError and RangeError for limits that are refused. */
  constructor(core: CoreFunction, context: Context) {
    underLimits(core, { ...context }, () => {});
    const { deadline } = context;
    const { processorTime } = context;
    this.processorTime = processorTime === undefined ? undefined : new ProcessorAccount(processorTime);
    this.#core = core;
    this.#context = context;
    this.#deadline = typeof deadline === "number" ? new Date(dateNow() + deadline) : deadline;
    this.coreContext = this.#deadline === undefined ? {} : { deadline: this.#deadline };
  }

  /**
   * Runs `action` under the limits: tasks of the call, or work of the host on its behalf, such as storing a value by
   * the component's `realloc` and passing on a stream. Throws the trap if the time is up already.
   */
  run<T>(action: () => T): T {
    if (this.#running) return action();
    const { fuel } = this.#context;
    const context: Context = fuel === undefined ? { ...this.coreContext } : { ...this.coreContext, fuel };
    this.#running = true;
    try {
      return underLimits(this.#core, context, () => {
        this.#requireTime();
        return action();
      }, this.processorTime);
    } finally {
      this.#running = false;
      if (fuel !== undefined) this.#context.fuel = context.fuel;
    }
  }

  #requireTime(): void {
    if (this.processorTime?.isUsedUp === true) throw new TrapError("interrupted");
    if (this.#deadline !== undefined && dateNow() > this.#deadline.getTime()) throw this.#interruption();
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
    const left = () => deadline.getTime() - dateNow();
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
    error.detail = typeof deadline === "number" ? `the deadline of ${deadline} ms` : "the deadline has passed";
    return error;
  }
}
