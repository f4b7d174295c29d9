/**
 * Trace context of W3C: passes the fields `traceparent` and `tracestate` of a request on to the requests that the
 * component makes while it handles it. In: requests that arrive. Out: fields for requests that leave. Invariants: a
 * malformed `traceparent` is dropped together with its `tracestate`; requests that are handled at the same time keep
 * their own fields.
 */
import type { IncomingMessage } from "node:http";
import { nodeModule } from "@waft/engine/internal/host/process";

/** The fields, by name. */
type TraceFields = Readonly<Record<string, string>>;

/** Version, trace, parent and flags; identifiers of zeros alone are invalid. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[!-~]{1,256})?$/;
const TRACESTATE = /^[ -~\t]{1,8192}$/;

const NONE: TraceFields = {};

/** The trace contexts of the requests of a server. */
export class TraceContext {
  readonly #storage = new (nodeModule("node:async_hooks").AsyncLocalStorage)<TraceFields>();

  /** Calls `action`, which handles `request`. */
  run<T>({ headers: { traceparent, tracestate } }: IncomingMessage, action: () => T): T {
    if (typeof traceparent !== "string" || !TRACEPARENT.test(traceparent)) return action();
    const hasState = typeof tracestate === "string" && TRACESTATE.test(tracestate);
    return this.#storage.run({ traceparent, ...(hasState ? { tracestate } : {}) }, action);
  }

  /** The fields for a request that the running call makes. A `traceparent` of the component replaces both. */
  fieldsBeside(hasField: (name: string) => boolean): TraceFields {
    return hasField("traceparent") || hasField("tracestate") ? NONE : this.#storage.getStore() ?? NONE;
  }
}
