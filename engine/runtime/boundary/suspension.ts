/**
 * Objects by which a host function suspends its caller, and the wait for them. In: the value that a host function has
 * returned. Out: one call of `onValue` or `onReason`, never before the wait has begun.
 *
 * Invariant: code of the program runs before {@linkcode whenSettled} returns or in a later job, so that the guest can
 * still get an exception: while its frames are on the stack, or as the outcome of the wait.
 */

/** Receives the outcome of a wait. */
type Settle = (value: unknown) => void;

const NOTHING: Settle = () => {};

/** Promise as it is when the engine is loaded. */
const IntrinsicPromise = Promise;

/**
 * Suspends the guest whose host function returns it, like a promise, but `resume` and `fail` continue the guest before
 * they return, unless a call of its group is preempted. For schedulers that decide which of several suspended calls
 * runs next. If it is settled before the host function returns it, the guest is not suspended: it gets the value or the
 * reason. Throws an Error if it is settled twice or returned to two calls.
 */
export class Suspension {
  #onValue: Settle | undefined;
  #onReason: Settle | undefined;
  #early: { readonly isValue: boolean; readonly settled: unknown } | undefined;
  #isSettled = false;

  /**
   * Whether `value` is a suspension. Runs no code of the program.
   *
   * @internal
   */
  static is(value: unknown): value is Suspension {
    return typeof value === "object" && value !== null && #isSettled in value;
  }

  /**
   * The outcome of `value` for the call whose host function returned it, if that is a suspension that was settled
   * before. Throws an Error if it belongs to another call.
   *
   * @internal
   */
  static takeEarly(value: unknown): { readonly isValue: boolean; readonly settled: unknown } | undefined {
    if (!Suspension.is(value)) return undefined;
    const early = value.#early;
    if (early !== undefined) value.then(NOTHING, NOTHING);
    return early;
  }

  /** Continues the guest: its host function returns `value`. */
  resume(value?: unknown): void {
    this.#settleWith(true, value);
  }

  /** Continues the guest: its host function throws `reason`. */
  fail(reason: unknown): void {
    this.#settleWith(false, reason);
  }

  /** Connects the suspended call. */
  then(onValue: (value: unknown) => void, onReason: (reason: unknown) => void): void {
    if (typeof onValue !== "function" || typeof onReason !== "function") {
      throw new TypeError("A suspension is connected by two functions: for its value and for its reason");
    }
    if (this.#onValue !== undefined) throw new Error("A suspension belongs to one call");
    this.#onValue = onValue;
    this.#onReason = onReason;
    const early = this.#early;
    this.#early = undefined;
    if (early !== undefined) (early.isValue ? onValue : onReason)(early.settled);
  }

  #settleWith(isValue: boolean, settled: unknown): void {
    if (this.#isSettled) throw new Error("A suspension can be resumed only once");
    this.#isSettled = true;
    const settle = isValue ? this.#onValue : this.#onReason;
    if (settle === undefined) this.#early = { isValue, settled };
    else settle(settled);
  }
}

/**
 * A promise of a host function with the work by which its value becomes the guest's. The work is done when the guest
 * continues, under the limits of its call: it may run code of the guest, such as an allocator.
 */
export class Delivery implements PromiseLike<unknown> {
  readonly #promise: Promise<unknown>;
  readonly #finish: (value: unknown) => unknown;

  /** `finish` gets the value of `promise`, and returns that of the host function. */
  constructor(promise: Promise<unknown>, finish: (value: unknown) => unknown) {
    this.#promise = promise;
    this.#finish = finish;
  }

  /**
   * The promise and the work of `value`; undefined if it is no such object. Runs no code of the program.
   *
   * @internal
   */
  static parts(
    value: unknown,
  ): { readonly promise: Promise<unknown>; readonly finish: (value: unknown) => unknown } | undefined {
    if (typeof value !== "object" || value === null || !(#promise in value)) return undefined;
    return { promise: value.#promise, finish: value.#finish };
  }

  /** The outcome after the work, for code other than the guest's call. */
  then<Value, Reason>(
    onValue?: ((value: unknown) => Value | PromiseLike<Value>) | null,
    onReason?: ((reason: unknown) => Reason | PromiseLike<Reason>) | null,
  ): Promise<Value | Reason> {
    return this.#promise.then(this.#finish).then(onValue, onReason) as Promise<Value | Reason>;
  }
}

/** The result of a suspending import, promise or not: its caller waits for it (JavaScript Promise Integration). */
export class Awaited {
  readonly #value: unknown;

  constructor(value: unknown) {
    this.#value = value;
  }

  /** The result in `value`, or `value` itself if it is no such object. */
  static unwrap(value: unknown): unknown {
    return typeof value === "object" && value !== null && #value in value ? value.#value : value;
  }
}

/** Whether `value` has a `then` method. Such a value suspends the guest if all results are numbers. */
export function isThenable(value: object): boolean {
  return typeof (value as { then?: unknown }).then === "function";
}

/**
 * True for promises and suspensions. Only these suspend the guest if a result is a reference, because any other object
 * is an ordinary value.
 */
export function isPromise(value: object): boolean {
  if (Suspension.is(value) || Delivery.parts(value) !== undefined) return true;
  try {
    return value instanceof IntrinsicPromise;
  } catch {
    return false; // a Proxy
  }
}

/**
 * Waits for `value` as `await` does, and reports the outcome. Throws, without waiting, what the program's code throws
 * because of which the value cannot be awaited.
 */
export function whenSettled(value: unknown, onValue: Settle, onReason: Settle): void {
  if (Suspension.is(value)) return value.then(onValue, onReason);
  let isWaiting = false;
  let refused: { readonly reason: unknown } | undefined;
  // The operator calls no method of the promise, which the program may have replaced.
  const wait = async () => {
    let settled: unknown;
    try {
      settled = await value;
    } catch (reason) {
      if (isWaiting) return onReason(reason);
      refused = { reason };
      return;
    }
    onValue(settled);
  };
  wait();
  isWaiting = true;
  if (refused !== undefined) throw (refused as { reason: unknown }).reason;
}

/** Handles a promise that no code waits for: its rejection must not count as unhandled. */
export function ignorePromise(value: unknown): void {
  if (Suspension.is(value)) return;
  try {
    whenSettled(value, NOTHING, NOTHING);
  } catch {
    // It cannot be awaited, so it has no rejection.
  }
}
