/**
 * Traps of the Canonical ABI and the error by which functions report the error case of a `result`. Invariant: a trap
 * names the rule that the component broke.
 */
import { TrapError } from "@waft/engine/internal/errors";

/** Throws the trap of the rule that `message` states. */
export function trap(message: string): never {
  throw new TrapError(message);
}

/** The error case of a function's `result`: thrown to JavaScript callers, and by JavaScript implementations. */
export class ComponentError extends Error {
  /** The value of the error case. */
  readonly payload: unknown;

  /** Creates the error for a value of the error case. */
  constructor(payload: unknown) {
    super(describe(payload));
    this.name = "ComponentError";
    this.payload = payload;
  }
}

function describe(payload: unknown): string {
  if (typeof payload === "string") return payload;
  if (payload instanceof Error) return payload.message;
  if (typeof payload === "object" && payload !== null && "tag" in payload) return String(payload.tag);
  return payload === undefined
    ? "The function returned an error"
    : `The function returned the error ${String(payload)}`;
}

/** The payload of an error that an implementation in JavaScript threw; rethrows all other errors. */
export function payloadOf(error: unknown): unknown {
  if (typeof error === "object" && error !== null && Object.hasOwn(error, "payload")) {
    return (error as { payload: unknown }).payload;
  }
  if (error instanceof Error) throw error;
  return error;
}
