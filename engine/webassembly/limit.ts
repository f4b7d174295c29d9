/**
 * Limits over the work of programs that know nothing of them, such as packages that were written for the global
 * `WebAssembly`. In: limits, and a function that calls such a program. Out: the function's result; its error once a
 * limit is reached, after which instances are as after a trap.
 *
 * A function that returns a promise goes on working in later turns of the event loop. The calls that it makes there are
 * recognized by the host's asynchronous context (AsyncLocalStorage), which follows promises, timers and events. Nothing
 * is asked while no such work goes on.
 */
import { inWords, requireKnownNames, requireRecord } from "../base/arguments.ts";
import { TrapError } from "../base/errors.ts";
import { clearTimer, now, setTimer } from "../host/clocks.ts";
import { nodeModule } from "../host/process.ts";
import { realmStore, underLimits } from "../api/engine.ts";
import { onAbort } from "../runtime/suspension/abort_listeners.ts";
import {
  type ControlContext,
  deadlineInWords,
  deadlineTime,
  processorTimeInWords,
} from "../runtime/suspension/call_limits.ts";
import { TRAP, TRAP_MESSAGES } from "../base/traps.ts";
import { outward, withLimitOfWork } from "./errors.ts";
import { theEngine } from "./module.ts";

/** Limits of the work of a function; see {@linkcode limit}. */
export type WorkLimits = Pick<ControlContext, "deadline" | "processorTime" | "fuel" | "signal">;

const LIMIT_NAMES: Readonly<Record<keyof WorkLimits, true>> = {
  deadline: true,
  processorTime: true,
  fuel: true,
  signal: true,
};

/** The longest time of a timer of the host. */
const MAX_TIMER_MS = 0x7fff_ffff;

/** Work that goes on in later turns of the event loop. */
class Work {
  readonly #at: number;
  readonly #limits: WorkLimits;
  readonly #signal: AbortSignal | undefined;
  /** The reason why the work may run no more code. */
  #end: { readonly reason: unknown } | undefined;

  constructor(limits: WorkLimits) {
    const { deadline, signal } = limits;
    this.#at = deadline === undefined ? Infinity : deadlineTime(deadline);
    this.#limits = limits;
    this.#signal = signal;
  }

  /** The deadline of a call that belongs to the work; throws the reason if it may run no more code. */
  admit(): number {
    if (this.#end === undefined && now() >= this.#at) this.#end = { reason: this.#interruption() };
    if (this.#end !== undefined) throw this.#end.reason;
    return this.#at;
  }

  /** The error of a call or of the work, with the limit that it has reached. */
  explain(error: unknown): unknown {
    const { deadline, processorTime } = this.#limits;
    if (deadline !== undefined && now() >= this.#at) return withLimitOfWork(error, deadlineInWords(deadline));
    return processorTime === undefined ? error : withLimitOfWork(error, processorTimeInWords(processorTime));
  }

  #interruption(): unknown {
    return this.explain(outward(new TrapError(TRAP_MESSAGES[TRAP.INTERRUPTED])));
  }

  /**
   * Follows the work until `promise` settles, then releases it. Rejects as soon as a limit is reached, also while the
   * work waits.
   */
  follow<T>(promise: PromiseLike<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let timer: ReturnType<typeof setTimer> | undefined;
      const stop = (reason: unknown) => {
        this.#end ??= { reason };
        reject(this.#end.reason);
      };
      const wait = () => {
        const left = this.#at - now();
        if (left <= 0) stop(this.#interruption());
        else timer = setTimer(wait, Math.min(Math.ceil(left), MAX_TIMER_MS));
      };
      if (this.#at !== Infinity) wait();
      const cancel = this.#signal === undefined ? undefined : onAbort(this.#signal, () => stop(this.#signal?.reason));
      const settled = () => {
        clearTimer(timer);
        cancel?.();
        release(this);
      };
      promise.then(
        (value) => {
          settled();
          resolve(value);
        },
        (error) => {
          settled();
          reject(this.explain(error));
        },
      );
    });
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

type Storage = InstanceType<typeof import("node:async_hooks").AsyncLocalStorage<Work>>;

let storage: Storage | undefined;

/** The work in later turns of the event loop. */
const BOUND = new Set<Work>();

/** Lets calls from JavaScript ask for the work that they belong to. */
function bind(work: Work): void {
  BOUND.add(work);
  realmStore().thread.attention.limitWork(() => {
    const current = storage?.getStore();
    return current !== undefined && BOUND.has(current) ? current.admit() : Infinity;
  });
}

function release(work: Work): void {
  BOUND.delete(work);
  if (BOUND.size === 0) realmStore().thread.attention.limitWork(undefined);
}

/**
 * Runs `action` under limits that bind all code of the namespace's modules that it runs, in this thread, however deep
 * in packages that know nothing of limits. Returns its result.
 *
 * A limit that is reached ends the running code with a `WebAssembly.RuntimeError`, whose `code` is `interrupted` or
 * `out-of-fuel`; the instance is as after any trap. If `action` returns a promise, deadline and signal also bind what
 * it does in later turns of the event loop, and the promise that `limit` returns rejects when they are reached, also
 * while `action` waits. Processor time and fuel bind functions that return no promise; with one, a TypeError rejects.
 *
 * Deadlines and processor time require `configure({ interruptible: true })`, fuel `configure({ fuel: true })`. Memories
 * and tables have limits in `configure({ limits })`. Throws TypeError for unknown limits and limits that the code does
 * not enforce, RangeError for values out of range, and the reason of a signal that is aborted.
 *
 * @example
 * ```ts
 * import { configure, limit, WebAssembly } from "@waft/engine/webassembly";
 *
 * configure({ interruptible: true });
 * // (module (func (export "spin") (loop (br 0))))
 * const bytes = Uint8Array.from(atob("AGFzbQEAAAABBAFgAAADAgEABwgBBHNwaW4AAAoJAQcAA0AMAAsL"), (c) => c.charCodeAt(0));
 * const { spin } = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports as { spin(): void };
 * try {
 *   limit({ deadline: 20 }, () => spin());
 * } catch (error) {
 *   console.log(String(error)); // RuntimeError: interrupted (the deadline of 20 ms)
 * }
 * ```
 */
export function limit<T>(limits: WorkLimits, action: () => T): T {
  requireRecord(limits, "The limits");
  requireKnownNames("limit", limits, LIMIT_NAMES);
  if (typeof action !== "function") throw new TypeError(`The action must be a function, not ${inWords(action)}`);
  storage ??= new (nodeModule("node:async_hooks").AsyncLocalStorage)<Work>();
  const engine = theEngine();
  const work = new Work(limits);
  let isOver = true;
  bind(work);
  try {
    const result = storage.run(work, () => underLimits(engine, limits, action));
    if (!isThenable(result)) return result;
    isOver = false;
    return follow(work, result, limits) as T;
  } catch (error) {
    throw work.explain(error);
  } finally {
    if (isOver) release(work);
  }
}

/** The promise of work that goes on. */
function follow(work: Work, result: PromiseLike<unknown>, limits: WorkLimits): Promise<unknown> {
  const { processorTime, fuel } = limits;
  const followed = work.follow(result);
  if (processorTime === undefined && fuel === undefined) return followed;
  followed.catch(() => {});
  const name = fuel === undefined ? "processorTime" : "fuel";
  return Promise.reject(new TypeError(`The limit ${name} is for functions that return no promise: use a deadline`));
}
