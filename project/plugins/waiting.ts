/**
 * What a call that may wait is subject to, handed on to the calls of plugins within it.
 *
 * In: the context of the outermost call. Out: contexts for the calls inside: the same deadline, as a point in time, the same signal, and
 * what is left of the fuel. A call inside that does not wait is charged by the engine to the one outside; what it uses after it has
 * waited, the engine charges to it alone, so it is kept here, and counts from the next call into a plugin on and in what is left at
 * the end.
 */
import { type Context, TrapError } from "@waft/engine";

/** One outermost call. */
export class Waiting {
  /** Of the outermost call; the engine keeps what is left of the fuel in it. */
  readonly context: Context;
  /** Fuel that calls inside have used after they waited. */
  #owed = 0n;

  constructor({ deadline, fuel, signal }: Context) {
    this.context = {
      ...(deadline === undefined
        ? {}
        : { deadline: typeof deadline === "number" ? new Date(Date.now() + deadline) : deadline }),
      ...(fuel === undefined ? {} : { fuel }),
      ...(signal === undefined ? {} : { signal }),
    };
  }

  /** Was it aborted, with `error` as the reason? */
  aborted(error: unknown): boolean {
    const { signal } = this.context;
    return signal?.aborted === true && signal.reason === error;
  }

  /** What is left of the fuel, in the type that it was given in; undefined when there is no limit. */
  get fuelLeft(): number | bigint | undefined {
    const { fuel } = this.context;
    if (fuel === undefined) return undefined;
    const left = BigInt(fuel) - this.#owed;
    const counted = left > 0n ? left : 0n;
    return typeof fuel === "number" ? Number(counted) : counted;
  }

  /** Makes a call inside. */
  async inside(call: (context: Context) => Promise<unknown>): Promise<unknown> {
    const fuel = this.fuelLeft;
    if (fuel === undefined) return await call(this.context);
    if (BigInt(fuel) === 0n) throw new TrapError("out of fuel");
    const context: Context = { ...this.context, fuel };
    const result = call(context);
    const whenItWaited = BigInt(context.fuel!);
    try {
      return await result;
    } finally {
      this.#owed += whenItWaited - BigInt(context.fuel!);
    }
  }
}

/** What comes of `value`, now or when it is there. */
export function whenThere<T, U>(value: T | Promise<T>, then: (value: T) => U): U | Promise<U> {
  return value instanceof Promise ? value.then(then) : then(value);
}
