/**
 * Passes the limits of an asynchronous call to the plugin calls nested in it.
 *
 * In: the context of the outermost call. Out: contexts for the nested calls: the same deadline, as a point in
 * time, the same signal, and the remaining fuel. The engine charges a nested call that does not wait to the outer call.
 * Fuel that a nested call uses after it has waited is charged to that call alone, so this file records it; it counts
 * for the next call into a plugin and in the fuel left at the end.
 */
import { type Context, TrapError } from "@waft/engine";

/** The limits of an outermost call. */
export class Waiting {
  /** The context of the outermost call, in which the engine keeps the remaining fuel. */
  readonly context: Context;
  /** Fuel that calls inside have used after they waited. */
  #owed = 0n;

  constructor({ deadline, processorTime, fuel, signal }: Context) {
    if (processorTime !== undefined) {
      throw new TypeError("Calls that wait for plugins can have a deadline and fuel, but no processorTime");
    }
    this.context = {
      ...(deadline === undefined
        ? {}
        : { deadline: typeof deadline === "number" ? new Date(Date.now() + deadline) : deadline }),
      ...(fuel === undefined ? {} : { fuel }),
      ...(signal === undefined ? {} : { signal }),
    };
  }

  /** Whether the wait was aborted, with `error` as the reason. */
  aborted(error: unknown): boolean {
    const { signal } = this.context;
    return signal?.aborted === true && signal.reason === error;
  }

  /** The remaining fuel, in the type in which it was given; undefined without a limit. */
  get fuelLeft(): number | bigint | undefined {
    const { fuel } = this.context;
    if (fuel === undefined) return undefined;
    const left = BigInt(fuel) - this.#owed;
    const counted = left > 0n ? left : 0n;
    return typeof fuel === "number" ? Number(counted) : counted;
  }

  /** Makes a call inside that does not wait, while the outer call is suspended. */
  insideNow<T>(call: (context: Context) => T): T {
    const fuel = this.fuelLeft;
    if (fuel === undefined) return call(this.context);
    if (BigInt(fuel) === 0n) throw new TrapError("out of fuel");
    const context: Context = { ...this.context, fuel };
    try {
      return call(context);
    } finally {
      this.#owed += BigInt(fuel) - BigInt(context.fuel!);
    }
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

/** Applies `then` to `value`, immediately or when the promise resolves. */
export function whenThere<T, U>(value: T | Promise<T>, then: (value: T) => U): U | Promise<U> {
  return value instanceof Promise ? value.then(then) : then(value);
}
