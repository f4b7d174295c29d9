/**
 * Control of what a call may use: its deadline and its fuel. In: a context as the program gives it, and what is to be done. Out: the
 * action's own result, or a TrapError with the message `interrupted` or `out of fuel`; the instance stays usable.
 *
 * Both belong to the thread, not to an instance: whatever compiled code runs meanwhile, called by whomever, is subject to them. Calls
 * nest through host functions: the earliest deadline counts, and fuel that an inner context uses is its own and the outer one's.
 * Invariant: a limit that the code cannot keep is refused before anything runs.
 */
import { THREAD } from "../../abi/context_layout.ts";
import { inWords, isRecord, requireBoolean, requireKnownNames } from "../../base/arguments.ts";
import { type GuestThread, UNLIMITED_FUEL } from "../thread/guest_thread.ts";

/** What the limits of a call need of an instance. */
export interface LimitedInstance {
  readonly store: { readonly thread: GuestThread };
  /** Which limits its code keeps. */
  readonly module: { readonly interruptible: boolean; readonly fuel: boolean };
  /** Instances whose functions its code can call without JavaScript in between. */
  neighbours(): Iterable<LimitedInstance>;
}

/** What a call is subject to. */
export interface ControlContext {
  /**
   * When the call is interrupted: milliseconds from its beginning, or a point in time. Compiled code that runs then, wherever it is, traps
   * with the message `interrupted`; a host function that runs then is not disturbed. Needs an engine with `interruptible`.
   */
  deadline?: number | Date;
  /**
   * Fuel that the call may use; when the call has ended, the property holds what is left, a bigint if it was one. Code that runs out of
   * it traps with the message `out of fuel`. Needs an engine with `fuel`. Without it, a call is subject to what its caller has.
   */
  fuel?: number | bigint;
  /**
   * Aborts the call: `callAsync` rejects with the signal's reason, whether the guest is waiting for a promise or running (then between two
   * slices, which needs an engine with `interruptible`). A synchronous call can only find it aborted before it begins.
   */
  signal?: AbortSignal;
  /**
   * Read by `instantiate`: what a promise is that a host function of the instance returns. `await` (the default): something to wait for,
   * in calls by `callAsync`; `values`: a value like any other, as in the JavaScript API, except for functions with the property SUSPENDING.
   */
  promises?: "await" | "values";
  /** Read by `instantiate`: what callers of the instance's exports get instead of the errors that these calls throw. */
  errors?: (error: unknown) => unknown;
  /** Read by `instantiate`: record what a start function leaves, so that the instance can be reset to it. */
  resettable?: boolean;
}

/** The names of a context's fields; `limits` is read by `instantiate`. */
const CONTEXT_NAMES = {
  deadline: true,
  fuel: true,
  signal: true,
  promises: true,
  errors: true,
  resettable: true,
  limits: true,
} as const satisfies Record<keyof ControlContext | "limits", true>;

/** Refuses what is no context, and fields that a context does not have, so that no misspelled limit is ignored. */
export function checkContext(context: unknown): void {
  if (!isRecord(context)) {
    throw new TypeError(`A call or an instantiation begins with a context, such as {}, not with ${inWords(context)}`);
  }
  requireKnownNames("field of a context", context, CONTEXT_NAMES);
}

/** Refuses a signal that is none. */
export function checkSignal(signal: unknown): void {
  if (typeof (signal as AbortSignal | null)?.throwIfAborted !== "function") {
    throw new TypeError(`The signal of a context must be an AbortSignal, not ${inWords(signal)}`);
  }
}

/** Refuses settings of an instantiation that would be ignored. */
export function checkSettings({ promises, errors, resettable }: ControlContext): void {
  if (promises !== undefined && promises !== "await" && promises !== "values") {
    throw new TypeError(`The field promises of a context is "await" or "values", not ${inWords(promises)}`);
  }
  if (errors !== undefined && typeof errors !== "function") {
    throw new TypeError(`The field errors of a context must be a function, not ${inWords(errors)}`);
  }
  requireBoolean(resettable, "The field resettable of a context");
}

/** Runs `action`, which calls into `instance`, subject to `context`. */
export function underControl<T>(instance: LimitedInstance, context: ControlContext, action: () => T): T {
  const { deadline, fuel, signal } = context;
  const { thread } = instance.store;
  if (signal !== undefined) {
    checkSignal(signal);
    signal.throwIfAborted();
  }
  if (deadline === undefined) return fuel === undefined ? action() : withFuel(instance, thread, context, fuel, action);
  requireControl(instance, "interruptible", "deadline");
  const at = deadlineTime(deadline);
  const inner = fuel === undefined ? action : () => withFuel(instance, thread, context, fuel, action);
  return at < thread.deadline ? withDeadline(thread, at, inner) : inner();
}

/** A context's deadline on the clock of performance.now(). */
export function deadlineTime(deadline: number | Date): number {
  if (typeof deadline !== "number" && !(deadline instanceof Date)) {
    throw new TypeError(`The deadline of a context must be milliseconds or a Date, not ${inWords(deadline)}`);
  }
  const delay = typeof deadline === "number" ? deadline : deadline.getTime() - Date.now();
  if (Number.isNaN(delay)) throw new RangeError("The deadline of a context must be milliseconds or a valid Date");
  return performance.now() + delay;
}

function withDeadline<T>(thread: GuestThread, at: number, action: () => T): T {
  const outer = thread.deadline;
  thread.watch(at);
  try {
    thread.deadline = at;
    return action();
  } finally {
    thread.deadline = outer;
    thread.watch(outer);
  }
}

function withFuel<T>(
  instance: LimitedInstance,
  thread: GuestThread,
  context: ControlContext,
  fuel: number | bigint,
  action: () => T,
): T {
  requireControl(instance, "fuel", "fuel");
  const given = fuelUnits(fuel);
  context.fuel = fuel; // a context that cannot be written to is an error now, not afterwards
  const cell = THREAD.FUEL >> 3;
  const { i64 } = thread.state;
  const outer = i64[cell]!;
  const start = given < outer ? given : outer;
  i64[cell] = start;
  try {
    return action();
  } finally {
    const used = start - i64[cell]!;
    i64[cell] = outer - used;
    context.fuel = typeof fuel === "number" ? Number(given - used) : given - used;
  }
}

/** Fuel as a context gives it. Throws RangeError for what is none. */
export function fuelUnits(fuel: number | bigint): bigint {
  if (typeof fuel === "bigint" ? fuel < 0n || fuel > UNLIMITED_FUEL : !Number.isSafeInteger(fuel) || fuel < 0) {
    throw new RangeError(`The fuel of a context must be a whole number from 0 to 2^62, not ${inWords(fuel)}`);
  }
  return BigInt(fuel);
}

/** Refuses a limit that code which `instance` may reach without JavaScript does not keep. */
export function requireControl(instance: LimitedInstance, option: "interruptible" | "fuel", limit: string): void {
  const blind = findWithout(instance, option);
  if (blind === undefined) return;
  throw new TypeError(
    blind === instance
      ? `A ${limit} needs code that keeps it: compile the module with an engine made with { ${option}: true }`
      : `A ${limit} needs code that keeps it: an instance that this one imports from, or shares a table with, was compiled without { ${option}: true }`,
  );
}

/** An instance without `option` among those whose functions `instance` can call by its imports and tables. */
function findWithout(instance: LimitedInstance, option: "interruptible" | "fuel"): LimitedInstance | undefined {
  if (!instance.module[option]) return instance;
  const seen = new Set<LimitedInstance>([instance]);
  for (const reached of seen) {
    if (!reached.module[option]) return reached;
    for (const other of reached.neighbours()) seen.add(other);
  }
  return undefined;
}
