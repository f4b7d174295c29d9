/**
 * Limits of a call: deadline, processor time and fuel. In: the context that the program passes, and an action. Out: the
 * result of the action, or a TrapError with the message `interrupted` or `out of fuel`, after which the instance
 * remains usable.
 *
 * The limits belong to the thread, not to an instance: all compiled code that runs during the action is subject to
 * them, regardless of its caller. Calls nest through host functions: the earliest deadline applies, and fuel and
 * processor time used under an inner context are charged to the outer one as well. Invariant: a limit that the code
 * cannot enforce is refused before anything runs.
 */
import { dateNow, now } from "../../host/clocks.ts";
import { THREAD } from "../../abi/context_layout.ts";
import { inWords, isRecord, requireBoolean, requireKnownNames } from "../../base/arguments.ts";
import { TrapError } from "../../base/errors.ts";
import type { GuestThread } from "../thread/guest_thread.ts";
import type { Budget } from "./budget.ts";
import type { CallRecorder } from "./call_recorder.ts";
import { fuelUnits } from "./fuel_units.ts";
import type { ProcessorAccount } from "./processor_account.ts";

/** The parts of an instance that limits depend on. */
export interface LimitedInstance {
  readonly store: {
    readonly thread: GuestThread;
    /** Whether there has been an instance whose code does not enforce the limit. */
    readonly lacks: Readonly<Record<"interruptible" | "fuel", boolean>>;
  };
  /** The limits that its code enforces. */
  readonly module: { readonly settings: { readonly interruptible: boolean; readonly fuel: boolean } };
  /** The instances whose functions its code can call directly, without JavaScript in between. */
  neighbours(): Iterable<LimitedInstance>;
}

/** The context of a call or an instantiation: the limits it runs under, and settings of the instance. */
export interface ControlContext {
  /**
   * The deadline: milliseconds from the start of the call, or a point in time. Compiled code that runs at that time
   * traps with the message `interrupted`; a running host function is not interrupted. Requires an engine with
   * `interruptible`.
   */
  deadline?: number | Date;
  /**
   * The processor time that the call may use, in milliseconds. Only the time counts during which its thread runs the
   * call, host functions included: not waiting, not the slices of other asynchronous calls, and not the time that the
   * system gives to other threads. So other guests cannot use up a call's time, and a call that only waits never does.
   * Compiled code that exceeds it traps with the message `interrupted`. Requires an engine with `interruptible`.
   */
  processorTime?: number;
  /**
   * The fuel that the call may use, in units of the instruction prices in translate/fuel_prices.ts. When the call ends,
   * the property is set to the remaining fuel, with the type it had. Code that exceeds it traps with the message `out
   * of fuel`. Without it, the call uses the fuel of its caller. Requires an engine with `fuel`.
   */
  fuel?: number | bigint;
  /**
   * The budget of a tenant. Read by `instantiate`: it pays for the memories, tables and objects of the instance. In a
   * call: its processor time and fuel limit the call, in addition to the call's own; fuel is for synchronous calls.
   */
  budget?: Budget;
  /**
   * Aborts the call: `callAsync` rejects with the signal's reason, while the guest waits for a promise or, with an
   * engine with `interruptible`, when it is preempted. A synchronous call checks the signal only before it begins. A
   * wait that blocks the thread, such as a read of WASI, delays the signal; a deadline ends it.
   */
  signal?: AbortSignal;
  /**
   * Read by `instantiate`: the treatment of promises returned by host functions of the instance. `await` (the default)
   * suspends the guest until the promise settles, in calls by `callAsync`; `values` passes promises as ordinary values,
   * as in the JavaScript API, except for functions with the property SUSPENDING.
   */
  promises?: "await" | "values";
  /**
   * Read by `instantiate`: maps each error thrown by a call of the instance's exports to the value that the caller
   * receives instead.
   */
  errors?: (error: unknown) => unknown;
  /**
   * Read by `instantiate`: records the instance, so that its run can be replayed (`@waft/engine/recording`). Requires
   * an engine with `deterministic`.
   */
  record?: CallRecorder;
  /** Read by `instantiate`: records the state after the start function, so that the instance can be reset to it. */
  resettable?: boolean;
}

/** The field names of a context; `instantiate` reads `limits`. */
const CONTEXT_NAMES = {
  deadline: true,
  processorTime: true,
  fuel: true,
  budget: true,
  signal: true,
  promises: true,
  errors: true,
  resettable: true,
  record: true,
  limits: true,
} as const satisfies Record<keyof ControlContext | "limits", true>;

/** Throws TypeError if `context` is not an object or has an unknown field, so that no misspelled limit is ignored. */
export function checkContext(context: unknown): void {
  if (!isRecord(context)) {
    throw new TypeError(`The first argument must be a context, such as {}, not ${inWords(context)}`);
  }
  requireKnownNames("context field", context, CONTEXT_NAMES);
}

/** Throws TypeError if `signal` is not an AbortSignal. */
export function checkSignal(signal: unknown): void {
  if (typeof (signal as AbortSignal | null)?.throwIfAborted !== "function") {
    throw new TypeError(`The context's signal must be an AbortSignal, not ${inWords(signal)}`);
  }
}

/** Throws TypeError for invalid settings of an instantiation. */
export function checkSettings({ promises, errors, resettable }: ControlContext): void {
  if (promises !== undefined && promises !== "await" && promises !== "values") {
    throw new TypeError(`The context field promises must be "await" or "values", not ${inWords(promises)}`);
  }
  if (errors !== undefined && typeof errors !== "function") {
    throw new TypeError(`The context field errors must be a function, not ${inWords(errors)}`);
  }
  requireBoolean(resettable, "The context field resettable");
}

/**
 * Runs `action`, which calls into `instance`, under the limits of `context`; its processor time is charged to
 * `account`, if given, in place of the context's.
 */
export function underControl<T>(
  instance: LimitedInstance,
  context: ControlContext,
  action: () => T,
  account?: ProcessorAccount,
): T {
  const { budget } = context;
  const limited = () => underOwnLimits(instance, context, action, account);
  return budget === undefined ? limited() : underBudget(instance, budget, limited);
}

function underOwnLimits<T>(
  instance: LimitedInstance,
  context: ControlContext,
  action: () => T,
  account: ProcessorAccount | undefined,
): T {
  const { deadline, processorTime, fuel, signal } = context;
  const { thread } = instance.store;
  if (signal !== undefined) {
    checkSignal(signal);
    signal.throwIfAborted();
  }
  const fueled = fuel === undefined ? action : () => withFuel(instance, thread, context, fuel, action);
  const timed = account !== undefined
    ? () => withAccount(instance, thread, account, fueled)
    : processorTime === undefined
    ? fueled
    : () => withProcessorTime(instance, thread, processorTime, fueled);
  if (deadline === undefined) return timed();
  requireControl(instance, "interruptible", "deadline");
  const at = deadlineTime(deadline);
  return at < thread.limits.deadline ? withDeadline(thread, deadline, at, timed) : timed();
}

/** Throws RangeError unless `time` is a number of at least 0, in milliseconds. */
export function checkProcessorTime(time: unknown): void {
  if (typeof time === "number" && time >= 0) return;
  throw new RangeError(`The context's processorTime must be milliseconds, at least 0, not ${inWords(time)}`);
}

/**
 * Converts a context's deadline to the clock of performance.now(). Throws TypeError for a value of another type, and
 * RangeError for NaN or an invalid Date.
 */
export function deadlineTime(deadline: number | Date): number {
  if (typeof deadline !== "number" && !(deadline instanceof Date)) {
    throw new TypeError(`The context's deadline must be milliseconds or a Date, not ${inWords(deadline)}`);
  }
  const delay = typeof deadline === "number" ? deadline : deadline.getTime() - dateNow();
  if (Number.isNaN(delay)) throw new RangeError("The context's deadline must be milliseconds or a valid Date");
  return now() + delay;
}

/** Runs `action` under the processor time and the fuel of `budget`. */
function underBudget<T>(instance: LimitedInstance, budget: Budget, action: () => T): T {
  const { thread } = instance.store;
  const { account, fuel } = checkBudget(budget);
  const fueled = fuel === undefined ? action : () => withFuel(instance, thread, budget, fuel, action);
  return account === undefined ? fueled() : withAccount(instance, thread, account, fueled);
}

/** Throws TypeError unless `budget` is a Budget. */
export function checkBudget(budget: unknown): Budget {
  if (typeof (budget as Budget | null)?.take === "function") return budget as Budget;
  throw new TypeError(`The context's budget must be a Budget, not ${inWords(budget)}`);
}

function withDeadline<T>(thread: GuestThread, deadline: number | Date, at: number, action: () => T): T {
  const { limits } = thread;
  const outer = limits.deadline;
  limits.deadline = at;
  try {
    limits.watch(limits.nextLimit());
    return action();
  } catch (error) {
    // The processor time of an outer call may have ended this one.
    if (now() < at && limits.processorTimeIsUp) throw error;
    throw withLimit(error, "interrupted", () => deadlineInWords(deadline));
  } finally {
    limits.deadline = outer;
    limits.watch(limits.nextLimit());
  }
}

function withProcessorTime<T>(instance: LimitedInstance, thread: GuestThread, time: number, action: () => T): T {
  requireControl(instance, "interruptible", "processorTime");
  checkProcessorTime(time);
  const { limits } = thread;
  const outer = limits.processorDeadline;
  const at = limits.processorNow() + time;
  if (at >= outer) return action();
  limits.processorDeadline = at;
  try {
    limits.watch(limits.nextLimit());
    return action();
  } catch (error) {
    throw limits.processorTimeIsUp ? withLimit(error, "interrupted", () => processorTimeInWords(time)) : error;
  } finally {
    limits.processorDeadline = outer;
    limits.watch(limits.nextLimit());
  }
}

function withAccount<T>(
  instance: LimitedInstance,
  thread: GuestThread,
  account: ProcessorAccount,
  action: () => T,
): T {
  requireControl(instance, "interruptible", "processorTime");
  const { limits } = thread;
  const outer = limits.processorDeadline;
  limits.processorDeadline = Math.min(outer, account.begin(limits.processorNow()));
  try {
    limits.watch(limits.nextLimit());
    return action();
  } catch (error) {
    throw limits.processorTimeIsUp
      ? withLimit(error, "interrupted", () => processorTimeInWords(account.milliseconds))
      : error;
  } finally {
    account.finish(limits.processorNow());
    limits.processorDeadline = outer;
    limits.watch(limits.nextLimit());
  }
}

function withFuel<T>(
  instance: LimitedInstance,
  thread: GuestThread,
  context: { fuel?: number | bigint | undefined },
  fuel: number | bigint,
  action: () => T,
): T {
  requireControl(instance, "fuel", "fuel");
  const given = fuelUnits(fuel);
  context.fuel = fuel; // throws now if the context is read-only
  const cell = THREAD.FUEL >> 3;
  const { i64 } = thread.state;
  const outer = i64[cell];
  const start = given < outer ? given : outer;
  i64[cell] = start;
  try {
    return action();
  } catch (error) {
    throw given <= outer ? withLimit(error, "out-of-fuel", () => `the limit of ${fuel} units of fuel`) : error;
  } finally {
    const used = start - i64[cell];
    i64[cell] = outer - used;
    context.fuel = typeof fuel === "number" ? Number(given - used) : given - used;
  }
}

/** Adds the limit that a trap reports, unless an inner call has added its own; other errors stay as they are. */
export function withLimit(error: unknown, code: string, limit: () => string): unknown {
  if (TrapError.is(error) && error.code === code) error.detail ??= limit();
  return error;
}

/** A deadline as a trap names it. */
export function deadlineInWords(deadline: number | Date): string {
  return typeof deadline === "number" ? `the deadline of ${deadline} ms` : "the deadline has passed";
}

/** A limit of processor time as a trap names it. */
export function processorTimeInWords(time: number): string {
  return `the limit of ${time} ms of processor time`;
}

/** Throws TypeError if code that `instance` can reach without JavaScript does not enforce the limit. */
export function requireControl(instance: LimitedInstance, option: "interruptible" | "fuel", limit: string): void {
  const blind = findWithout(instance, option);
  if (blind === undefined) return;
  throw new TypeError(
    blind === instance
      ? `A ${limit} requires code that enforces it: compile the module with an engine created with { ${option}: true }`
      : `A ${limit} requires code that enforces it: an instance that this one imports from, or shares a table with, ` +
        `was compiled without { ${option}: true }`,
  );
}

/** Finds an instance without `option` among those that `instance` reaches through imports and tables. */
function findWithout(instance: LimitedInstance, option: "interruptible" | "fuel"): LimitedInstance | undefined {
  if (!instance.module.settings[option]) return instance;
  if (!instance.store.lacks[option]) return undefined;
  const seen = new Set<LimitedInstance>([instance]);
  for (const reached of seen) {
    if (!reached.module.settings[option]) return reached;
    for (const other of reached.neighbours()) seen.add(other);
  }
  return undefined;
}
