/**
 * Calls of asynchronous functions of the host that a component may cancel. In: a promise and the function that ends its
 * work. Out: the same promise. Invariant: a call without such a function runs to its end, although it was cancelled.
 */

const CANCEL = new WeakMap<Promise<unknown>, () => void>();

/** Makes the call that `promise` ends cancellable: `cancel` ends its work, and the promise is then ignored. */
export function cancellable<T>(promise: Promise<T>, cancel: () => void): Promise<T> {
  CANCEL.set(promise, cancel);
  return promise;
}

/** The function that cancels the work behind `promise`. */
export function cancelOf(promise: Promise<unknown>): (() => void) | undefined {
  return CANCEL.get(promise);
}

/** Waits by `await`, which calls no method of the promise that the program may have replaced. */
async function mapOutcome<R>(
  promise: Promise<unknown>,
  ok: (value: unknown) => R,
  err: (error: unknown) => R,
): Promise<R> {
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    return err(error);
  }
  return ok(value);
}

/** Maps the outcome of a promise; the call stays as cancellable as it was. */
export function mapCall<R>(
  promise: Promise<unknown>,
  ok: (value: unknown) => R,
  err: (error: unknown) => R,
): Promise<R> {
  const mapped = mapOutcome(promise, ok, err);
  const cancel = CANCEL.get(promise);
  return cancel === undefined ? mapped : cancellable(mapped, cancel);
}
