/**
 * wasi:http/outgoing-handler. In: a request of a guest and the grants of its network. Out: a future response.
 * Invariant: a request goes to an address that the grants permit for its authority, regardless of its fields and its
 * target, and redirections are not followed.
 */
import { errorCode } from "@waft/engine/internal/errors";
import { type ClientRequest, type IncomingMessage, request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP } from "node:net";
import { clearTimeout, setTimeout } from "node:timers";
import { ComponentError } from "../abi/traps.ts";
import { type Holding, type HostShare, SHARES } from "../async/host_quota.ts";
import { type NetworkGrants, parseHostPort } from "../wasi/network_grants.ts";
import type { Preview1 } from "../wasi/preview1.ts";
import type { TraceContext } from "./trace.ts";
import { Condition } from "../wasi/readiness.ts";
import type { SocketQuota } from "../wasi/socket_address.ts";
import { Pollable } from "../wasi/streams.ts";
import { type BodySink, type HttpError, HttpIoError, messageShare, type MessageTarget } from "./body.ts";
import { IncomingResponse, methodName, type OutgoingRequest, type RequestOptions } from "./messages.ts";

/** Timeouts without request-options, in milliseconds; wasmtime has the same. */
const TIMEOUT_MS = 600_000;

/** Codes of wasi:http for errors of the host. */
const CODES: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection-refused",
  ECONNRESET: "connection-terminated",
  EPIPE: "connection-terminated",
  EHOSTUNREACH: "destination-unavailable",
  ENETUNREACH: "destination-IP-unroutable",
  ETIMEDOUT: "connection-timeout",
  HPE_INVALID_CONSTANT: "HTTP-protocol-error",
  HPE_HEADER_OVERFLOW: "HTTP-response-header-section-size",
};

/** Codes of wasi:http for those of wasi:sockets with which the resolver fails. */
const RESOLVER_CODES: Readonly<Record<string, HttpError>> = {
  "access-denied": { tag: "HTTP-request-denied" },
  "invalid-argument": { tag: "HTTP-request-URI-invalid" },
  "name-unresolvable": { tag: "DNS-error", val: { rcode: "NXDOMAIN", infoCode: undefined } },
  "temporary-resolver-failure": { tag: "DNS-timeout" },
};

function httpErrorOf(error: unknown): HttpError {
  if (error instanceof ComponentError) return RESOLVER_CODES[String(error.payload)] ?? { tag: "DNS-timeout" };
  const code = errorCode(error) ?? "";
  const tag = CODES[code];
  if (tag !== undefined) return { tag, val: undefined };
  if (/CERT|SELF_SIGNED|UNABLE_TO_/.test(code)) return { tag: "TLS-certificate-error" };
  if (code.startsWith("HPE_")) return { tag: "HTTP-protocol-error" };
  return { tag: "internal-error", val: undefined };
}

/** The destination of a request. */
interface Destination {
  readonly isSecure: boolean;
  readonly authority: string;
  readonly host: string;
  readonly port: number;
}

function refuse(tag: string): never {
  throw new ComponentError({ tag, val: undefined });
}

function destinationOf(request: OutgoingRequest): Destination {
  const scheme = request.scheme() ?? { tag: "HTTPS" };
  const authority = request.authority();
  if (scheme.tag === "other") return refuse("HTTP-protocol-error");
  if (authority === undefined) return refuse("HTTP-request-URI-invalid");
  const isSecure = scheme.tag === "HTTPS";
  try {
    // URLs have several notations of an IPv4 address: 127.1, 0x7f000001.
    const { hostname } = new URL(`http://${authority}/`);
    const { port } = parseHostPort(authority.replace(/^(\[.*\]|[^:]*)/, "host"));
    const { host } = parseHostPort(hostname);
    return { isSecure, authority, host, port: port ?? (isSecure ? 443 : 80) };
  } catch {
    return refuse("HTTP-request-URI-invalid");
  }
}

/** The bytes of the body. Throws the error case of a request with an invalid length. */
function takeSink(request: OutgoingRequest): BodySink {
  try {
    return request.takeSink(false);
  } catch {
    throw new ComponentError({ tag: "HTTP-request-body-size", val: undefined });
  }
}

/**
 * The field that frames a body without announced length. Without it, Node sends the bodies of some methods unframed,
 * and servers read them as the next request.
 */
function framing(request: OutgoingRequest, sink: BodySink): Record<string, string> {
  const isFramed = sink.isEmpty || request.fields.contentLength !== undefined;
  return isFramed ? {} : { "transfer-encoding": "chunked" };
}

/** A timeout of nanoseconds in milliseconds. */
function milliseconds(duration: bigint | undefined): number {
  return duration === undefined
    ? TIMEOUT_MS
    : Number(duration / 1_000_000n < TIMEOUT_MS ? duration / 1_000_000n : TIMEOUT_MS);
}

/** The request's connection, which takes its body. */
class RequestTarget implements MessageTarget {
  readonly #request: ClientRequest;

  constructor(request: ClientRequest) {
    this.#request = request;
  }

  write(bytes: Uint8Array, taken: () => void): void {
    this.#request.write(bytes, taken);
  }

  end(trailers: readonly string[]): void {
    if (trailers.length > 0) {
      this.#request.addTrailers(pairs(trailers));
    }
    this.#request.end();
  }

  abort(): void {
    this.#request.destroy();
  }
}

/** Alternating names and values, as pairs. */
function pairs(raw: readonly string[]): [string, string][] {
  return Array.from({ length: raw.length / 2 }, (_, k) => [raw[2 * k], raw[2 * k + 1]]);
}

/** Values by name; a name may have several. */
export function grouped(raw: readonly string[]): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  const names = new Map<string, string>();
  for (let k = 0; k + 1 < raw.length; k += 2) {
    const [name, value] = [raw[k], raw[k + 1]];
    const key = name.toLowerCase();
    const known = names.get(key) ?? name;
    names.set(key, known);
    const values = groups.get(known);
    if (values === undefined) groups.set(known, [value]);
    else values.push(value);
  }
  return groups;
}

/** The part of the network that the requests of a guest reach, and the limit of requests in progress. */
export interface RequestNetwork {
  readonly grants: NetworkGrants;
  readonly quota: SocketQuota;
  /** The trace context of the requests that are being handled. */
  readonly traces?: TraceContext;
}

type Result = { tag: "ok"; val: IncomingResponse } | { tag: "err"; val: HttpError };

/** wasi:http/types future-incoming-response. */
export class FutureIncomingResponse implements Holding {
  /** That of the response, until it is taken. */
  readonly #share = messageShare();
  readonly #preview1: Preview1;
  readonly #condition = new Condition(() => this.#result !== undefined);
  #result: Result | undefined;
  #request: ClientRequest | undefined;
  readonly #quota: SocketQuota;
  readonly #sink: BodySink;
  #taken = false;
  #dropped = false;
  /** The end of the transmission: undefined once all has been sent, or the error with which it ended before. */
  #transmission: { readonly error: HttpError | undefined } | undefined;
  #onTransmission: (error: HttpError | undefined) => void = () => {};

  /** Sends `request`. Throws connection-limit-reached if the guest has too many requests in progress. */
  constructor(
    preview1: Preview1,
    { grants, quota, traces }: RequestNetwork,
    request: OutgoingRequest,
    options: RequestOptions | undefined,
  ) {
    this.#preview1 = preview1;
    this.#quota = quota;
    const to = destinationOf(request);
    this.#sink = takeSink(request);
    if (!quota.tryTake()) {
      this.#sink.discard();
      refuse("connection-limit-reached");
    }
    // Before anything waits: the call of the component that sends the request is running.
    const trace = traces?.fieldsBeside((name) => request.fields.has(name)) ?? {};
    grants.resolve(to.host, to.port).then((addresses) => {
      if (this.#dropped) throw new ComponentError("access-denied");
      this.#send(to, addresses[0], request, options, trace);
    }).catch((error: unknown) => {
      this.#fail(error);
      if (this.#request === undefined) quota.release();
      else this.#request.destroy();
    });
  }

  /** The response, and the bytes of the request's body that have not been sent. */
  get [SHARES](): readonly HostShare[] {
    return [this.#share, ...this.#sink[SHARES]];
  }

  /** Calls `then` once the request has been sent, or with the error with which that failed. */
  whenTransmitted(then: (error: HttpError | undefined) => void): void {
    this.#onTransmission = then;
    if (this.#transmission !== undefined) then(this.#transmission.error);
  }

  #transmitted(error: HttpError | undefined): void {
    if (this.#transmission !== undefined) return;
    this.#transmission = { error };
    this.#onTransmission(error);
  }

  #fail(error: unknown): void {
    const val = httpErrorOf(error);
    this.#transmitted(val);
    this.#sink.fail(new HttpIoError(val));
    this.#sink.discard();
    this.#settle({ tag: "err", val });
  }

  #send(
    to: Destination,
    address: string,
    request: OutgoingRequest,
    options: RequestOptions | undefined,
    trace: Readonly<Record<string, string>>,
  ): void {
    const sink = this.#sink;
    const sent = this.#request = (to.isSecure ? httpsRequest : httpRequest)({
      host: address,
      port: to.port,
      method: methodName(request.method()),
      path: request.pathWithQuery() || "/",
      agent: false,
      setHost: false,
      headers: {
        ...trace,
        ...Object.fromEntries(grouped(request.fields.toRaw())),
        host: to.authority,
        ...framing(request, sink),
      },
      ...(to.isSecure && isIP(to.host) === 0 ? { servername: to.host } : {}),
    });
    // Every field of the answer: a host leaves out those beyond its own maximum.
    sent.maxHeadersCount = 0;
    const timeout = (duration: bigint | undefined, tag: string) =>
      setTimeout(() => {
        this.#transmitted({ tag, val: undefined });
        this.#settle({ tag: "err", val: { tag, val: undefined } });
        sent.destroy();
      }, milliseconds(duration));
    const connecting = timeout(options?.connectTimeout(), "connection-timeout");
    const answering = timeout(options?.firstByteTimeout(), "HTTP-response-timeout");
    const stop = () => {
      clearTimeout(connecting);
      clearTimeout(answering);
    };
    sent.on("socket", (socket) => socket.on("connect", () => clearTimeout(connecting)));
    sent.on("finish", () => {
      // Bytes may be in the host's buffers as long as there is no connection.
      if (sent.socket?.connecting !== true) this.#transmitted(undefined);
    });
    sent.on("response", (message: IncomingMessage) => {
      stop();
      if (sent.writableFinished) this.#transmitted(undefined);
      const betweenBytes = options?.betweenBytesTimeout();
      message.setTimeout(milliseconds(betweenBytes), () => message.destroy());
      this.#settle({ tag: "ok", val: new IncomingResponse(this.#preview1, message) });
      if (this.#dropped) message.destroy();
    });
    sent.on("error", (error) => {
      stop();
      this.#fail(error);
    });
    sent.on("close", () => {
      stop();
      this.#quota.release();
      sink.fail("closed");
      this.#transmitted({ tag: "connection-terminated", val: undefined });
      this.#settle({ tag: "err", val: { tag: "connection-terminated", val: undefined } });
    });
    sink.attach(new RequestTarget(sent));
  }

  #settle(result: Result): void {
    this.#result ??= result;
    this.#condition.notify();
  }

  subscribe(): Pollable {
    return new Pollable(this.#preview1, this.#condition);
  }

  get(): unknown {
    if (this.#taken) return { tag: "err", val: undefined };
    if (this.#result === undefined) return undefined;
    this.#taken = true;
    return { tag: "ok", val: this.#result };
  }

  [Symbol.dispose](): void {
    this.#dropped = true;
    if (!this.#taken) this.#request?.destroy();
  }
}
