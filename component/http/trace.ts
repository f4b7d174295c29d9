/**
 * Trace context of W3C: passes the fields `traceparent` and `tracestate` of a request on to the component, and to the
 * requests that the component makes while it handles it. In: requests that arrive, and the choice of those that are
 * traced. Out: fields for the component and for requests that leave, and the span of each request. Invariants: a
 * malformed `traceparent` is dropped together with its `tracestate`; requests that are handled at the same time keep
 * their own fields.
 */
import type { IncomingMessage } from "node:http";
import { nodeModule } from "@waft/engine/internal/host/process";

/** The fields, by name. */
type TraceFields = Readonly<Record<string, string>>;

/** The part of a trace that one request is. Identifiers are hexadecimal: 32 digits of the trace, 16 of a span. */
export interface RequestSpan {
  readonly trace: string;
  readonly span: string;
  /** The span of the client; undefined if the trace begins here. */
  readonly parent?: string;
  readonly state?: string;
  /** Whether the span is to be reported. */
  readonly isSampled: boolean;
}

/** Decides whether a request is traced. `parent`: the decision of the client; undefined if the trace begins here. */
export type Sampler = (trace: string, parent: boolean | undefined) => boolean;

/** The trace context of one request. */
export interface RequestTrace {
  /** Undefined if the server has no spans of its own. */
  readonly span?: RequestSpan;
  /** The fields for requests of the component. */
  readonly fields: TraceFields;
}

/** Version, trace, parent and flags; identifiers of zeros alone are invalid. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-[!-~]{1,256})?$/;
const TRACESTATE = /^[ -~\t]{1,8192}$/;
/** The flag by which a client says that it reports its span. */
const SAMPLED = 1;
const TRACE_BYTES = 16;
const SPAN_BYTES = 8;

const NONE: RequestTrace = { fields: {} };

/** The trace contexts of the requests of a server. */
export class TraceContext {
  readonly #storage = new (nodeModule("node:async_hooks").AsyncLocalStorage)<TraceFields>();
  readonly #sampler: Sampler | undefined;

  /** With a sampler, each request is a span of its own, a child of the client's. */
  constructor(sampler?: Sampler) {
    this.#sampler = sampler;
  }

  /** The trace context of a request that has arrived. */
  begin({ headers: { traceparent, tracestate } }: IncomingMessage): RequestTrace {
    const found = typeof traceparent === "string" ? TRACEPARENT.exec(traceparent) : null;
    const state = found !== null && typeof tracestate === "string" && TRACESTATE.test(tracestate)
      ? tracestate
      : undefined;
    const stateField: TraceFields = state === undefined ? {} : { tracestate: state };
    if (this.#sampler === undefined) {
      return found === null ? NONE : { fields: { traceparent: found[0], ...stateField } };
    }
    const [, trace = randomHex(TRACE_BYTES), parent, flags] = found ?? [];
    const span: RequestSpan = {
      trace,
      span: randomHex(SPAN_BYTES),
      ...(parent === undefined ? {} : { parent }),
      ...(state === undefined ? {} : { state }),
      isSampled: this.#sampler(trace, flags === undefined ? undefined : (parseInt(flags, 16) & SAMPLED) !== 0),
    };
    return { span, fields: { traceparent: traceparentOf(span), ...stateField } };
  }

  /** Calls `action`, which handles a request with these fields. */
  run<T>({ fields }: RequestTrace, action: () => T): T {
    return fields === NONE.fields ? action() : this.#storage.run(fields, action);
  }

  /** The fields for a request that the running call makes. A `traceparent` of the component replaces both. */
  fieldsBeside(hasField: (name: string) => boolean): TraceFields {
    return hasField("traceparent") || hasField("tracestate") ? NONE.fields : this.#storage.getStore() ?? NONE.fields;
  }
}

/** The field by which requests name their span. */
function traceparentOf({ trace, span, isSampled }: RequestSpan): string {
  return `00-${trace}-${span}-0${isSampled ? SAMPLED : 0}`;
}

/** Random digits of an identifier, which is not zero. */
function randomHex(length: number): string {
  const bytes = crypto.getRandomValues(new Uint8Array(length));
  if (bytes.every((byte) => byte === 0)) bytes[0] = 1;
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
