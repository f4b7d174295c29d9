/**
 * The limits of calls in messages. In: the context of a call. Out: bytes before its arguments, and the context again.
 * Invariant: a limit that the program did not give stays absent.
 */
import type { Context, Engine } from "../api/engine.ts";
import { inWords, requireKnownNames, requireRecord } from "../base/arguments.ts";
import type { PayloadReader, PayloadWriter } from "./values.ts";

/** The context of a call in a runner. */
export type RunnerContext = Pick<Context, "deadline" | "processorTime" | "fuel">;

const CONTEXT_NAMES: Readonly<Record<keyof RunnerContext, true>> = { deadline: true, processorTime: true, fuel: true };

/** The time in milliseconds that the runner has beyond a deadline to end a call itself. */
const GRACE_MS = 1000;

/** Flags of the limits that are present. */
const FLAG = { DEADLINE: 1, PROCESSOR_TIME: 2, FUEL: 4 } as const;

/** The milliseconds until a deadline, at least 0. Throws TypeError and RangeError. */
export function millisecondsOf(deadline: number | Date | undefined): number | undefined {
  if (deadline === undefined) return undefined;
  if (typeof deadline !== "number" && !(deadline instanceof Date)) {
    throw new TypeError(`The context's deadline must be milliseconds or a Date, not ${inWords(deadline)}`);
  }
  const delay = typeof deadline === "number" ? deadline : deadline.getTime() - Date.now();
  if (Number.isNaN(delay)) throw new RangeError("The context's deadline must be milliseconds or a valid Date");
  return Math.max(0, delay);
}

/** The time in which a request must be answered; undefined for any time. */
export function within(milliseconds: number | undefined): number | undefined {
  return milliseconds === undefined || milliseconds === Infinity ? undefined : milliseconds + GRACE_MS;
}

/** The limits of one call. */
export interface CallLimits {
  readonly write: (writer: PayloadWriter) => void;
  /** The settings of its request. */
  readonly options: { readonly within: number | undefined; readonly onFuel: (left: bigint) => void };
  /** Takes the remaining fuel out of the answer. */
  readonly read: (reader: PayloadReader) => void;
}

/** The limits of `context`, whose remaining fuel is updated. Throws TypeError and RangeError. */
export function limitsOf(context: RunnerContext): CallLimits {
  requireRecord(context, "The first argument");
  requireKnownNames("context field", context, CONTEXT_NAMES);
  const { processorTime, fuel } = context;
  const deadline = millisecondsOf(context.deadline);
  const onFuel = (left: bigint) => {
    context.fuel = typeof fuel === "number" ? Number(left) : left;
  };
  return {
    write: (writer) => {
      writer.u8(
        (deadline === undefined ? 0 : FLAG.DEADLINE) | (processorTime === undefined ? 0 : FLAG.PROCESSOR_TIME) |
          (fuel === undefined ? 0 : FLAG.FUEL),
      );
      if (deadline !== undefined) writer.f64(deadline);
      if (processorTime !== undefined) writer.f64(processorTime);
      if (fuel !== undefined) writer.i64(BigInt(fuel));
    },
    options: { within: within(deadline), onFuel },
    read: (reader) => {
      const left = reader.i64();
      if (fuel !== undefined) onFuel(left);
    },
  };
}

/**
 * The limits that the runner enforces itself. A deadline of code that cannot be interrupted is left to the program,
 * which ends the runner.
 */
export function enforceable<C extends Context>(context: C, { interruptible }: Engine): C {
  if (!interruptible) delete context.deadline;
  return context;
}

/** Reads the limits of a call, in the runner: those that `engine` enforces. */
export function readLimits(reader: PayloadReader, engine: Engine): Context {
  const flags = reader.u8();
  const context: Context = {};
  if (flags === 0) return context;
  if ((flags & FLAG.DEADLINE) !== 0) context.deadline = reader.f64();
  if ((flags & FLAG.PROCESSOR_TIME) !== 0) context.processorTime = reader.f64();
  if ((flags & FLAG.FUEL) !== 0) context.fuel = reader.i64();
  return enforceable(context, engine);
}

/** Writes the remaining fuel of a call, in the runner. */
export function writeFuel(writer: PayloadWriter, { fuel }: Context): void {
  writer.i64(BigInt(fuel ?? 0));
}
