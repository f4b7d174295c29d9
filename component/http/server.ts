/**
 * A server whose requests components answer (wasi:http/incoming-handler of 0.2, wasi:http/handler of 0.3). In: handlers
 * by route, limits and an address. Out: answers to clients, and a report per request. Invariants: the handlers bound
 * the number of instances and of requests that wait for one; a client learns no details of a failure.
 */
import { createServer, type IncomingMessage, type Server } from "node:http";
import { createServer as createTlsServer, Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { clearTimeout, setImmediate, setTimeout } from "node:timers";
import type { Context } from "@waft/engine";
import { functionShape, signature } from "../abi/type_name.ts";
import { type ComponentInstance, functionType } from "../component.ts";
import type { Preview1 } from "../wasi/preview1.ts";
import { shapesOf } from "../wasi/shapes.ts";
import { ComponentError } from "../abi/traps.ts";
import type { HttpError } from "./body.ts";
import {
  type Answer,
  destinationOf,
  FIRST_FINAL_STATUS,
  IncomingRequest,
  isSound,
  type OutgoingResponse,
  ResponseOutparam,
} from "./messages.ts";
import type { Http2Connections } from "./http2.ts";
import type { RequestHandler } from "./request_handler.ts";
import { answerPlainly, finished, hasNoBody, type HostResponse, ResponseTarget } from "./response.ts";
import type { RouteTable } from "./routes.ts";
import type { RequestSpan, RequestTrace, TraceContext } from "./trace.ts";
import { AsyncRequest, type AsyncResponse } from "./v0_3/messages.ts";

/** The function that handles a request, in WASI 0.2 and in 0.3. */
const HANDLE = "wasi:http/incoming-handler@0.2.0#handle";
const HANDLE_ASYNC = "wasi:http/handler@0.3.0#handle";

/** The functions and the interfaces of WASI that have them. */
const HANDLERS = [[HANDLE, "wasi:http/incoming-handler@0.2"], [HANDLE_ASYNC, "wasi:http/handler@0.3.0"]] as const;

/**
 * The reason why a component cannot answer requests; undefined if it can. A handler of another type would get the
 * host's objects as records, with properties that are not for guests.
 */
export function handlerProblem(instance: ComponentInstance): string | undefined {
  const found = HANDLERS.filter(([name]) => instance.has(name));
  if (found.length === 0) return "the component does not export wasi:http/incoming-handler or wasi:http/handler";
  for (const [name, interfaceName] of found) {
    const type = functionType(instance, name);
    const shapes = shapesOf(interfaceName)("handle");
    if (type === undefined || shapes.includes(functionShape(type))) continue;
    return `the component exports ${name} as ${signature(type)}; the interface has ${shapes.join(" or ")}`;
  }
  return undefined;
}

/** Whether instances of the component may handle several requests: WASI 0.3 says so, WASI 0.2 does not. */
export function isReusable(instance: ComponentInstance): boolean {
  return instance.has(HANDLE_ASYNC);
}

/** Limits of a server. */
export interface ServerLimits {
  /** The maximum number of answered requests whose clients are still sending or receiving the rest. */
  readonly ending?: number;
  /** The maximum number of connections; further ones are closed. */
  readonly connections?: number;
}

/** The end of a request, for a log. */
export interface RequestReport {
  /** The component that answered, where a server has several; undefined for answers of the server itself. */
  readonly component?: string;
  readonly method: string;
  readonly path: string;
  /** The status of the answer; 0 if the connection ended without one. */
  readonly status: number;
  readonly milliseconds: number;
  /** The address of the client; empty if the connection has ended. */
  readonly client: string;
  /** The version of HTTP, as `1.1`. */
  readonly version: string;
  /** The part of a trace that the request is, for a server with spans. */
  readonly span?: RequestSpan;
  /** Bytes of the answer's body, without the framing of chunks. */
  readonly bytes: number;
  /** The reason for which the component failed. */
  readonly error?: unknown;
}

/** The load of a server at one moment, and what it has refused since its start. */
export interface ServerLoad {
  /** Requests that instances handle. */
  readonly handling: number;
  /** Requests in the queue. */
  readonly queued: number;
  readonly connections: number;
  readonly acceptedConnections: number;
  /** Requests that got status 503 because a limit was reached. */
  readonly refusedRequests: number;
  /** Connections that were closed because too many were open. */
  readonly refusedConnections: number;
}

/** The certificate of a server, with those that lead to its root, and its private key, as PEM. */
export interface ServerKeys {
  readonly cert: string;
  readonly key: string;
}

interface ServerOptions {
  /** Passes the trace context of requests to the imports of the pool's instances. */
  readonly traces?: TraceContext;
  /** Answers HTTPS in place of HTTP. */
  readonly keys?: ServerKeys;
  /**
   * The module http2.ts, for a server that answers HTTP/2, too: with keys, clients choose it by ALPN; without, their
   * connections begin with its preface (prior knowledge).
   */
  readonly http2?: typeof import("./http2.ts");
  readonly routes: RouteTable<RequestHandler>;
  readonly limits?: ServerLimits;
  readonly onRequest: (report: RequestReport) => void;
}

/** A request, and the way back to its client. */
interface Arrival {
  readonly request: IncomingMessage;
  readonly response: HostResponse;
  /** The address of the client, which its socket forgets when it is closed. */
  readonly client: string;
  readonly begun: number;
  readonly trace: RequestTrace | undefined;
  /** Bytes of the answer's body that have been passed to the host. */
  bytes: number;
}

const HEADERS_TIMEOUT_MS = 30_000;
const HANDSHAKE_TIMEOUT_MS = 30_000;
/** The time in which a client must end a request that has been answered. */
const DISCARDING_TIMEOUT_MS = 5_000;
/** The interval of the search for connections whose header section is late. */
const CHECKING_INTERVAL_MS = 5_000;
const MAX_HEADER_BYTES = 1 << 15;
/** The maximum number of fields of a request. */
const MAX_REQUEST_FIELDS = 1000;
const MAX_CONNECTIONS = 1 << 14;
const MAX_ENDING = 1 << 12;
/** The maximum number of requests of one connection that are not answered to the end; not every host has one. */
const MAX_AHEAD = 1 << 9;

/** A server of a component. */
export class ComponentServer {
  readonly #options: ServerOptions;
  readonly #server: Server;
  readonly #scheme: "HTTP" | "HTTPS";
  /** The open connections, with the number of their requests in progress. */
  readonly #connections = new Map<Socket, number>();
  /** Connections whose TLS handshake is not complete. */
  readonly #handshakes = new Set<Socket>();
  /** Connections that have sent an ambiguous request; their further bytes are not interpreted. */
  readonly #distrusted = new WeakSet<Socket>();
  /** Answers HTTP/2; undefined for a server that answers HTTP/1.1 alone. */
  readonly #http2: Http2Connections | undefined;
  readonly #http1: ((socket: Socket) => void) | undefined;
  /** Calls of components in progress, requests in queues, and answers that have not been sent. */
  #active = 0;
  #queued = 0;
  #open = 0;
  /** The addresses of clients, which sockets forget when they are closed. */
  readonly #clients = new WeakMap<Socket, string>();
  #acceptedConnections = 0;
  #refusedConnections = 0;
  #refusedRequests = 0;
  #stopping: (() => void) | undefined;
  #isStopping = false;
  #stopped: Promise<void> | undefined;
  /** Ends the waiting of `drain`. */
  #drained: (() => void) | undefined;

  constructor(options: ServerOptions) {
    this.#options = options;
    const { keys, http2 } = options;
    const limits = {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: CHECKING_INTERVAL_MS,
    };
    this.#scheme = keys === undefined ? "HTTP" : "HTTPS";
    this.#server = keys === undefined ? createServer(limits) : createTlsServer({
      ...limits,
      ...keys,
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      ALPNProtocols: [...http2 === undefined ? [] : ["h2"], "http/1.1"],
    });
    // Hosts leave out the fields beyond their own maximum: a hidden `host` or `transfer-encoding` escaped all checks.
    this.#server.maxHeadersCount = 0;
    this.#server.on("request", (request, response) => this.#accept(request, response, request.socket));
    this.#http2 = http2 && new http2.Http2Connections((...arrival) => this.#accept(...arrival));
    if (this.#http2 !== undefined) {
      this.#http1 = this.#ownListeners(keys === undefined ? "connection" : "secureConnection");
    }
    this.#server.on("connection", (socket: Socket) => this.#connect(socket));
    if (keys === undefined) return;
    this.#server.on("secureConnection", (socket: Socket) => this.#admit(socket));
  }

  /** Takes the host's listeners for connections away; the returned function passes it a connection of HTTP/1.1. */
  #ownListeners(event: "connection" | "secureConnection"): (socket: Socket) => void {
    const listeners = this.#server.listeners(event);
    this.#server.removeAllListeners(event);
    return (socket) => {
      for (const listener of listeners) listener.call(this.#server, socket);
    };
  }

  /** Passes a connection to the version of HTTP that its client has chosen. */
  #choose(socket: Socket, http1: (socket: Socket) => void): void {
    const choose = (isHttp2: boolean) => isHttp2 ? this.#http2?.take(socket) : http1(socket);
    if (this.#scheme === "HTTPS") choose((socket as TLSSocket).alpnProtocol === "h2");
    else this.#options.http2?.whenChosen(socket, HEADERS_TIMEOUT_MS, choose);
  }

  /** Takes a new connection, unless too many are open. */
  #connect(socket: Socket): void {
    const { connections = MAX_CONNECTIONS } = this.#options.limits ?? {};
    if (this.#connections.size + this.#handshakes.size >= connections) {
      this.#refusedConnections++;
      socket.destroy();
    } else if (this.#scheme === "HTTP") this.#admit(socket);
    else {
      this.#handshakes.add(socket);
      socket.on("close", () => this.#handshakes.delete(socket));
    }
  }

  /** Takes a connection over which requests arrive. */
  #admit(socket: Socket): void {
    this.#acceptedConnections++;
    if (socket.remoteAddress !== undefined) this.#clients.set(socket, socket.remoteAddress);
    this.#connections.set(socket, 0);
    // Each pipelined request listens for the end of its connection.
    socket.setMaxListeners(0);
    socket.on("close", () => {
      this.#connections.delete(socket);
      if (this.#connections.size === 0) this.#drained?.();
    });
    if (this.#http1 !== undefined) this.#choose(socket, this.#http1);
  }

  /**
   * Replaces the certificate for connections that begin after this call. Throws an Error for keys that are not valid,
   * and where the host cannot replace them.
   */
  setKeys(keys: ServerKeys): void {
    if (!(this.#server instanceof TlsServer)) throw new Error("the server answers HTTP");
    if (typeof this.#server.setSecureContext !== "function") {
      throw new Error("this JavaScript runtime cannot replace the certificate of a server");
    }
    this.#server.setSecureContext(keys);
  }

  /**
   * Listens on an address, or on an inherited descriptor. Returns the address, or the path of a socket in the file
   * system; rejects if it is not available.
   */
  listen(place: { readonly host: string; readonly port: number } | { readonly fd: number }): Promise<
    AddressInfo | string
  > {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ ...place }, () => {
        this.#server.off("error", reject);
        resolve(this.#server.address() ?? "");
      });
    });
  }

  /** The number of requests in progress. */
  get active(): number {
    return this.#open + this.#queued;
  }

  /** The load of this moment. */
  get load(): ServerLoad {
    return {
      handling: this.#active,
      queued: this.#queued,
      connections: this.#connections.size,
      acceptedConnections: this.#acceptedConnections,
      refusedRequests: this.#refusedRequests,
      refusedConnections: this.#refusedConnections,
    };
  }

  /**
   * Stops accepting connections, and waits until clients have closed those that are open, for at most `idleMs`; then
   * stops as `stop` does. Each further answer announces the end of its connection, so no request is lost that a client
   * sends on an idle connection in that time.
   */
  async drain(idleMs: number): Promise<void> {
    this.#isStopping = true;
    this.#http2?.stop();
    // The host's `close` would end idle connections, on which a request may be arriving.
    const closeIdle = this.#server.closeIdleConnections;
    this.#server.closeIdleConnections = () => {};
    this.#server.close();
    this.#server.closeIdleConnections = closeIdle;
    if (this.#connections.size > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, idleMs);
        this.#drained = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    await this.stop();
  }

  /** Stops accepting connections, and waits until the requests in progress have ended. */
  stop(): Promise<void> {
    return this.#stopped ??= this.#stop();
  }

  async #stop(): Promise<void> {
    this.#isStopping = true;
    this.#http2?.stop();
    this.#drained?.();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const idle = new Promise<void>((resolve) => {
      if (this.active === 0) resolve();
      else this.#stopping = resolve;
    });
    this.#server.closeIdleConnections?.();
    await idle;
    this.#server.closeIdleConnections?.();
    await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, 100).unref())]);
    for (const socket of [...this.#connections.keys(), ...this.#handshakes]) socket.destroy();
  }

  #accept(request: IncomingMessage, response: HostResponse, socket: Socket): void {
    const { ending = MAX_ENDING } = this.#options.limits ?? {};
    const begun = performance.now();
    const trace = this.#options.traces?.begin(request);
    const arrival: Arrival = { request, response, client: this.#clients.get(socket) ?? "", begun, trace, bytes: 0 };
    // Streams of HTTP/2 bound themselves, and delimit their requests.
    const isHttp1 = request.httpVersion !== "2.0";
    const refuse = (status: number, text: string) => {
      if (status === 503) this.#refusedRequests++;
      arrival.bytes += answerPlainly(response, status, text);
      this.#report(arrival, spanOf(trace));
      if (isHttp1) void discardRest(request);
    };
    if (isHttp1) {
      endWithSocket(response, socket);
      if (this.#isAhead(socket, response)) return void socket.destroy();
      if (this.#distrusted.has(socket)) return void response.destroy();
    }
    const distrust = (status: number, text: string) => {
      if (isHttp1) {
        this.#distrusted.add(socket);
        response.setHeader("connection", "close");
      }
      refuse(status, text);
    };
    if (request.rawHeaders.length > 2 * MAX_REQUEST_FIELDS) return distrust(431, "Request Header Fields Too Large");
    if (!isSound(request, this.#scheme)) return distrust(400, "Bad Request");
    if (this.#isStopping && isHttp1) response.setHeader("connection", "close");
    if (this.#open - this.#active >= ending) return refuse(503, "Service Unavailable");
    const { host, path } = destinationOf(request);
    const handler = this.#options.routes.find(host, path);
    if (handler === undefined) return refuse(404, "Not Found");
    this.#queued++;
    const start = () => {
      this.#queued--;
      void this.#handle(handler, arrival);
    };
    if (handler.admit(start)) return;
    this.#queued--;
    refuse(503, "Service Unavailable");
  }

  /** Counts a request of a connection; true if it has sent too many ahead, whose answers would fill the memory. */
  #isAhead(socket: Socket, response: HostResponse): boolean {
    const count = (more: number) => {
      const inProgress = this.#connections.get(socket);
      if (inProgress !== undefined) this.#connections.set(socket, inProgress + more);
      return (inProgress ?? 0) + more;
    };
    response.once("finish", () => count(-1));
    return count(1) > MAX_AHEAD || socket.destroyed;
  }

  #report(
    { request, response, client, begun, bytes }: Arrival,
    { component, span, error }: Pick<RequestReport, "component" | "span" | "error">,
  ): void {
    const { method = "", url = "", httpVersion: version } = request;
    this.#options.onRequest({
      ...(component === undefined ? {} : { component }),
      method,
      path: url,
      status: response.headersSent ? response.statusCode : 0,
      milliseconds: performance.now() - begun,
      client,
      version,
      bytes,
      ...(span === undefined ? {} : { span }),
      ...(error === undefined ? {} : { error }),
    });
  }

  async #handle(handler: RequestHandler, arrival: Arrival): Promise<void> {
    const { request, response, trace } = arrival;
    const end = handler.begin();
    this.#active++;
    this.#open++;
    let failure: { readonly error: unknown } | undefined;
    try {
      const answer = () => this.#answer(handler, arrival);
      const { traces } = this.#options;
      if (!response.destroyed) {
        await (traces === undefined || trace === undefined ? answer() : traces.run(trace, answer));
      }
    } catch (error) {
      failure = { error };
      arrival.bytes += answerPlainly(response, 500, "Internal Server Error");
    }
    this.#active--;
    end();
    await finished(response);
    if (request.httpVersion !== "2.0") await discardRest(request);
    this.#open--;
    this.#report(arrival, {
      ...(handler.name === undefined ? {} : { component: handler.name }),
      ...spanOf(trace),
      ...(failure === undefined ? {} : failure),
    });
    if (this.active === 0) this.#stopping?.();
  }

  /** Calls the component. Resolves when it has returned; its answer may still be in transit. */
  async #answer(handler: RequestHandler, arrival: Arrival): Promise<void> {
    const { request, response, trace } = arrival;
    const { preview1, context } = handler;
    const instance = handler.take();
    const gone = new AbortController();
    response.on("close", () => {
      if (!response.writableFinished) gone.abort(new Error("the client has closed the connection"));
    });
    const limits = { ...context(), signal: gone.signal };
    const incoming = new IncomingRequest(preview1, request, {
      scheme: this.#scheme,
      ...(trace?.span === undefined ? {} : { traceparent: trace.fields["traceparent"] }),
    });
    let hasAnswered = false;
    try {
      if (instance.has(HANDLE_ASYNC)) await this.#handleAsync(instance, preview1, incoming, arrival, limits);
      else await this.#handleOutparam(instance, incoming, arrival, limits);
      hasAnswered = true;
    } finally {
      handler.put(instance, hasAnswered);
    }
  }

  #send(arrival: Arrival, answer: OutgoingResponse): void {
    const { response } = arrival;
    const sink = answer.takeSink(hasNoBody(response.req.method, answer.statusCode()));
    response.on("close", () => sink.fail("closed"));
    sink.attach(new ResponseTarget(response, answer, (bytes) => arrival.bytes += bytes));
  }

  /** WASI 0.2: the component passes its answer to an object, and returns when the body is written. */
  async #handleOutparam(
    instance: ComponentInstance,
    incoming: IncomingRequest,
    arrival: Arrival,
    limits: Context,
  ): Promise<void> {
    let answered = false;
    let refusal: unknown;
    const answer = (given: Answer) => {
      answered = true;
      if (given.tag === "err") refusal = refused(given.val);
      else if (given.val.statusCode() < FIRST_FINAL_STATUS) refusal = interim(given.val);
      else this.#send(arrival, given.val);
    };
    await instance.callAsync(limits, HANDLE, incoming, new ResponseOutparam(answer));
    if (refusal !== undefined) throw refusal;
    if (!answered) throw new Error("the component returned without an answer");
  }

  /** WASI 0.3: the component returns its answer, and then writes the body. */
  async #handleAsync(
    instance: ComponentInstance,
    preview1: Preview1,
    incoming: IncomingRequest,
    arrival: Arrival,
    limits: Context,
  ): Promise<void> {
    const { response } = arrival;
    const begun = Date.now();
    const request = AsyncRequest.arrived(incoming);
    const answer = await instance.callAsync<AsyncResponse>(limits, HANDLE_ASYNC, request).catch((error: unknown) => {
      throw error instanceof ComponentError ? refused(error.payload as HttpError) : error;
    });
    const { outgoing, sent } = answer.send(preview1, (status) => hasNoBody(incoming.message.method, status));
    if (outgoing.statusCode() < FIRST_FINAL_STATUS) {
      sent.catch(() => {});
      outgoing[Symbol.dispose]();
      throw interim(outgoing);
    }
    const stop = cutAtDeadline(response, limits, begun);
    try {
      this.#send(arrival, outgoing);
      await sent;
    } catch (error) {
      response.destroy();
      throw error instanceof ComponentError ? refused(error.payload as HttpError) : error;
    } finally {
      stop();
      // The task of the component ends once it knows that its body has been sent.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

function spanOf(trace: RequestTrace | undefined): { readonly span?: RequestSpan } {
  return trace?.span === undefined ? {} : { span: trace.span };
}

/** The failure of a component that answers with the status of an interim response, after which clients wait on. */
function interim(answer: OutgoingResponse): Error {
  return new Error(`the component answered with status ${answer.statusCode()}, which no final response has`);
}

function refused({ tag }: HttpError): Error {
  return new Error(`the component answered with the error ${tag}`);
}

/**
 * Closes a connection at the deadline of its call, which began at `begun`. Returns a function that cancels the
 * deadline.
 */
function cutAtDeadline(response: HostResponse, { deadline }: Context, begun: number): () => void {
  if (deadline === undefined) return () => {};
  const left = (typeof deadline === "number" ? begun + deadline : deadline.getTime()) - Date.now();
  const timer = setTimeout(() => response.destroy(), Math.max(0, left));
  return () => clearTimeout(timer);
}

/**
 * Ends a response with its connection. The host ends only the response in progress, not those of pipelined requests.
 */
function endWithSocket(response: HostResponse, socket: Socket): void {
  const end = () => {
    if (response.writableFinished) return;
    response.destroy();
    response.emit("close");
  };
  const forget = () => socket.off("close", end);
  socket.once("close", end);
  response.once("close", forget);
  response.once("finish", forget);
}

/** Reads the rest of a request for a limited time, so that the connection can be used again. */
function discardRest(request: IncomingMessage): Promise<void> {
  if (request.complete || request.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(() => request.destroy(), DISCARDING_TIMEOUT_MS);
    const end = () => {
      clearTimeout(timer);
      request.socket.off("close", end);
      resolve();
    };
    request.once("end", end);
    request.once("close", end);
    // Not every host closes an answered message together with its connection.
    request.socket.once("close", end);
    request.removeAllListeners("readable");
    request.resume();
  });
}
