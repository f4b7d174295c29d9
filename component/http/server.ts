/**
 * A server whose requests a component answers (wasi:http/incoming-handler of 0.2, wasi:http/handler of 0.3). In: a pool
 * of instances, limits and an address. Out: answers to clients, and a report per request. Invariant: every request has
 * an instance of its own, in the state after instantiation; the number of instances and of requests that wait for one
 * is bounded; a client learns no details of a failure.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer, Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { clearImmediate, clearTimeout, setImmediate, setTimeout } from "node:timers";
import type { Context, InstancePool } from "@waft/engine";
import { functionShape, signature } from "../abi/type_name.ts";
import { type ComponentInstance, functionType } from "../component.ts";
import type { Preview1 } from "../wasi/preview1.ts";
import { shapesOf } from "../wasi/shapes.ts";
import { ComponentError } from "../abi/traps.ts";
import type { HttpError, MessageTarget } from "./body.ts";
import { grouped } from "./client.ts";
import {
  type Answer,
  FIRST_FINAL_STATUS,
  IncomingRequest,
  isSound,
  type OutgoingResponse,
  ResponseOutparam,
} from "./messages.ts";
import type { TraceContext } from "./trace.ts";
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

/** Limits of a server. */
export interface ServerLimits {
  /** The maximum number of requests that are handled at once. */
  readonly concurrent: number;
  /** The maximum number of requests in the queue; further ones get status 503. */
  readonly waiting: number;
  /** The maximum number of answered requests whose clients are still sending or receiving the rest. */
  readonly ending?: number;
  /** The maximum number of connections; further ones are closed. */
  readonly connections?: number;
}

/** The end of a request, for a log. */
export interface RequestReport {
  readonly method: string;
  readonly path: string;
  /** The status of the answer; 0 if the connection ended without one. */
  readonly status: number;
  readonly milliseconds: number;
  /** The address of the client; empty if the connection has ended. */
  readonly client: string;
  /** The version of HTTP, as `1.1`. */
  readonly version: string;
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
  readonly pool: InstancePool<ComponentInstance>;
  readonly preview1: Preview1;
  readonly limits: ServerLimits;
  /** The limits of one request. */
  readonly context: () => Context;
  readonly onRequest: (report: RequestReport) => void;
}

/** The maximum number of bytes of an answer that are held back, to be sent together with its head. */
const HELD_BYTES = 1 << 14;
const HEADERS_TIMEOUT_MS = 30_000;
const HANDSHAKE_TIMEOUT_MS = 30_000;
/** The time in which a client must receive the rest of an answer after the component has returned. */
const SENDING_TIMEOUT_MS = 60_000;
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

/** True for answers that have no body, even if the component writes one. */
function hasNoBody(method: string | undefined, status: number): boolean {
  return method === "HEAD" || status === 204 || status === 304;
}

/** The connection to a client, which takes an answer. */
class ResponseTarget implements MessageTarget {
  readonly #response: ServerResponse;
  readonly #answer: OutgoingResponse;
  readonly #discards: boolean;
  /** Called with the number of bytes of each part of the body that is passed to the host. */
  readonly #count: (bytes: number) => void;
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  #waiting: (() => void)[] = [];
  #release: ReturnType<typeof setImmediate> | undefined;
  #hasHead = false;

  /** Sends the head in the next turn of the event loop, unless the body comes first. */
  constructor(response: ServerResponse, answer: OutgoingResponse, count: (bytes: number) => void) {
    this.#response = response;
    this.#count = count;
    this.#answer = answer;
    this.#discards = hasNoBody(response.req.method, answer.statusCode());
    this.#release = setImmediate(() => this.#sendFirst());
    response.on("drain", () => this.#drained());
    response.on("close", () => this.#drained());
  }

  #drained(): void {
    for (const taken of this.#waiting.splice(0)) taken();
  }

  /**
   * Without chunks there are no trailers, and hosts refuse a head that announces some. A server must not send a length
   * with status 204 (RFC 9110, section 8.6).
   */
  #sendHead(isChunked: boolean): void {
    if (this.#hasHead) return;
    this.#hasHead = true;
    clearImmediate(this.#release);
    const status = this.#response.statusCode = this.#answer.statusCode();
    const isLeftOut = (name: string) => name === "trailer" ? !isChunked : name === "content-length" && status === 204;
    for (const [name, values] of grouped(this.#answer.fields.toRaw())) {
      if (isLeftOut(name.toLowerCase())) continue;
      this.#response.setHeader(name, values.length === 1 ? values[0] : values);
    }
  }

  /** Sends the head outside of any call: a head that the host refuses ends the connection, not the process. */
  #sendFirst(): void {
    try {
      this.#sendHeld();
    } catch (error) {
      // Bun sends a head for a response that is destroyed without one.
      this.#response.socket?.destroy();
      this.#response.destroy(error instanceof Error ? error : undefined);
    }
  }

  #sendHeld(): void {
    if (this.#hasHead || this.#response.destroyed) return;
    const isFramed = this.#discards || this.#answer.fields.contentLength !== undefined;
    this.#sendHead(!isFramed && this.#response.req.httpVersion === "1.1");
    if (this.#heldBytes === 0) this.#response.flushHeaders();
    else this.#response.write(this.#takeHeld());
  }

  #takeHeld(): Uint8Array {
    const bytes = new Uint8Array(this.#heldBytes);
    let at = 0;
    for (const part of this.#held) {
      bytes.set(part, at);
      at += part.length;
    }
    this.#count(at);
    this.#held = [];
    this.#heldBytes = 0;
    return bytes;
  }

  write(bytes: Uint8Array, taken: () => void): void {
    if (this.#discards || this.#response.destroyed) return taken();
    if (!this.#hasHead && this.#heldBytes + bytes.length <= HELD_BYTES) {
      this.#held.push(bytes);
      this.#heldBytes += bytes.length;
      return taken();
    }
    this.#sendHeld();
    this.#count(bytes.length);
    if (this.#response.write(bytes)) taken();
    else this.#waiting.push(taken);
  }

  end(trailers: readonly string[]): void {
    const response = this.#response;
    if (response.destroyed) return;
    if (trailers.length > 0 && !this.#discards) {
      this.#sendHeld();
      for (const [name, values] of grouped(trailers)) response.addTrailers({ [name]: values.join(", ") });
    }
    if (this.#hasHead) return void response.end();
    this.#sendHead(false);
    const body = this.#takeHeld();
    if (!this.#discards && !response.hasHeader("content-length")) response.setHeader("content-length", body.length);
    response.end(body);
  }

  abort(): void {
    clearImmediate(this.#release);
    this.#response.destroy();
  }
}

/** Answers on behalf of the server. Returns the length of the body; 0 if there is an answer already. */
function answerPlainly(response: ServerResponse, status: number, text: string): number {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return 0;
  }
  for (const name of response.getHeaderNames()) if (name !== "connection") response.removeHeader(name);
  response.statusCode = status;
  response.statusMessage = "";
  response.setHeader("content-type", "text/plain; charset=utf-8");
  response.setHeader("content-length", text.length + 1);
  if (status === 503) response.setHeader("retry-after", "1");
  response.end(`${text}\n`);
  return text.length + 1;
}

/** A server of a component. */
export class ComponentServer {
  readonly #options: ServerOptions;
  readonly #server: Server;
  readonly #scheme: "HTTP" | "HTTPS";
  readonly #waiting: (() => void)[] = [];
  /** The open connections, with the number of their requests in progress. */
  readonly #connections = new Map<Socket, number>();
  /** Connections whose TLS handshake is not complete. */
  readonly #handshakes = new Set<Socket>();
  /** Connections that have sent an ambiguous request; their further bytes are not interpreted. */
  readonly #distrusted = new WeakSet<Socket>();
  /** Calls of the component in progress, and answers that have not been sent. */
  #active = 0;
  #open = 0;
  /** The addresses of clients, which sockets forget when they are closed. */
  readonly #clients = new WeakMap<Socket, string>();
  readonly #bodyBytes = new WeakMap<ServerResponse, number>();
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
    const { keys } = options;
    const limits = {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: CHECKING_INTERVAL_MS,
    };
    this.#scheme = keys === undefined ? "HTTP" : "HTTPS";
    this.#server = keys === undefined
      ? createServer(limits)
      : createTlsServer({ ...limits, ...keys, handshakeTimeout: HANDSHAKE_TIMEOUT_MS, ALPNProtocols: ["http/1.1"] });
    // Hosts leave out the fields beyond their own maximum: a hidden `host` or `transfer-encoding` escaped all checks.
    this.#server.maxHeadersCount = 0;
    this.#server.on("request", (request, response) => this.#accept(request, response));
    this.#server.on("connection", (socket: Socket) => this.#connect(socket));
    if (keys === undefined) return;
    this.#server.on("secureConnection", (socket: Socket) => this.#admit(socket));
  }

  /** Takes a new connection, unless too many are open. */
  #connect(socket: Socket): void {
    const { connections = MAX_CONNECTIONS } = this.#options.limits;
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
    return this.#open + this.#waiting.length;
  }

  /** The load of this moment. */
  get load(): ServerLoad {
    return {
      handling: this.#active,
      queued: this.#waiting.length,
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

  #accept(request: IncomingMessage, response: ServerResponse): void {
    const { concurrent, waiting, ending = MAX_ENDING } = this.#options.limits;
    const begun = performance.now();
    const start = () => void this.#handle(request, response, begun);
    const refuse = (status: number, text: string) => {
      if (status === 503) this.#refusedRequests++;
      this.#countBytes(response, answerPlainly(response, status, text));
      this.#report(request, response, begun);
      void discardRest(request);
    };
    endWithSocket(response, request.socket);
    if (this.#isAhead(request.socket, response)) return void request.socket.destroy();
    if (this.#distrusted.has(request.socket)) return void response.destroy();
    const distrust = (status: number, text: string) => {
      this.#distrusted.add(request.socket);
      response.setHeader("connection", "close");
      refuse(status, text);
    };
    if (request.rawHeaders.length > 2 * MAX_REQUEST_FIELDS) return distrust(431, "Request Header Fields Too Large");
    if (!isSound(request, this.#scheme)) return distrust(400, "Bad Request");
    if (this.#isStopping) response.setHeader("connection", "close");
    if (this.#open - this.#active >= ending) return refuse(503, "Service Unavailable");
    if (this.#active < concurrent) return start();
    if (this.#waiting.length < waiting) return void this.#waiting.push(start);
    refuse(503, "Service Unavailable");
  }

  /** Counts a request of a connection; true if it has sent too many ahead, whose answers would fill the memory. */
  #isAhead(socket: Socket, response: ServerResponse): boolean {
    const count = (more: number) => {
      const inProgress = this.#connections.get(socket);
      if (inProgress !== undefined) this.#connections.set(socket, inProgress + more);
      return (inProgress ?? 0) + more;
    };
    response.once("finish", () => count(-1));
    return count(1) > MAX_AHEAD || socket.destroyed;
  }

  #countBytes(response: ServerResponse, bytes: number): void {
    this.#bodyBytes.set(response, (this.#bodyBytes.get(response) ?? 0) + bytes);
  }

  #report(request: IncomingMessage, response: ServerResponse, begun: number, error?: unknown): void {
    const { method = "", url = "", httpVersion: version } = request;
    this.#options.onRequest({
      method,
      path: url,
      status: response.headersSent ? response.statusCode : 0,
      milliseconds: performance.now() - begun,
      client: this.#clients.get(request.socket) ?? "",
      version,
      bytes: this.#bodyBytes.get(response) ?? 0,
      ...(error === undefined ? {} : { error }),
    });
  }

  async #handle(request: IncomingMessage, response: ServerResponse, begun: number): Promise<void> {
    this.#active++;
    this.#open++;
    let failure: { readonly error: unknown } | undefined;
    try {
      const answer = () => this.#answer(request, response);
      const { traces } = this.#options;
      if (!response.destroyed) await (traces === undefined ? answer() : traces.run(request, answer));
    } catch (error) {
      failure = { error };
      this.#countBytes(response, answerPlainly(response, 500, "Internal Server Error"));
    }
    this.#active--;
    this.#waiting.shift()?.();
    await finished(response);
    await discardRest(request);
    this.#open--;
    this.#report(request, response, begun, failure?.error);
    if (this.active === 0) this.#stopping?.();
  }

  /** Calls the component. Resolves when it has returned; its answer may still be in transit. */
  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pool, context } = this.#options;
    const instance = pool.take();
    const gone = new AbortController();
    response.on("close", () => {
      if (!response.writableFinished) gone.abort(new Error("the client has closed the connection"));
    });
    const limits = { ...context(), signal: gone.signal };
    try {
      if (instance.has(HANDLE_ASYNC)) await this.#handleAsync(instance, request, response, limits);
      else await this.#handleOutparam(instance, request, response, limits);
    } finally {
      giveBack(pool, instance);
    }
  }

  #send(response: ServerResponse, answer: OutgoingResponse): void {
    const sink = answer.takeSink(hasNoBody(response.req.method, answer.statusCode()));
    response.on("close", () => sink.fail("closed"));
    sink.attach(new ResponseTarget(response, answer, (bytes) => this.#countBytes(response, bytes)));
  }

  /** WASI 0.2: the component passes its answer to an object, and returns when the body is written. */
  async #handleOutparam(
    instance: ComponentInstance,
    request: IncomingMessage,
    response: ServerResponse,
    limits: Context,
  ): Promise<void> {
    let answered = false;
    let refusal: unknown;
    const answer = (given: Answer) => {
      answered = true;
      if (given.tag === "err") refusal = refused(given.val);
      else if (given.val.statusCode() < FIRST_FINAL_STATUS) refusal = interim(given.val);
      else this.#send(response, given.val);
    };
    const incoming = new IncomingRequest(this.#options.preview1, request, this.#scheme);
    await instance.callAsync(limits, HANDLE, incoming, new ResponseOutparam(answer));
    if (refusal !== undefined) throw refusal;
    if (!answered) throw new Error("the component returned without an answer");
  }

  /** WASI 0.3: the component returns its answer, and then writes the body. */
  async #handleAsync(
    instance: ComponentInstance,
    request: IncomingMessage,
    response: ServerResponse,
    limits: Context,
  ): Promise<void> {
    const { preview1 } = this.#options;
    const begun = Date.now();
    const incoming = AsyncRequest.arrived(new IncomingRequest(preview1, request, this.#scheme));
    const answer = await instance.callAsync<AsyncResponse>(limits, HANDLE_ASYNC, incoming).catch((error: unknown) => {
      throw error instanceof ComponentError ? refused(error.payload as HttpError) : error;
    });
    const { outgoing, sent } = answer.send(preview1, (status) => hasNoBody(request.method, status));
    if (outgoing.statusCode() < FIRST_FINAL_STATUS) {
      sent.catch(() => {});
      outgoing[Symbol.dispose]();
      throw interim(outgoing);
    }
    const stop = cutAtDeadline(response, limits, begun);
    try {
      this.#send(response, outgoing);
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
function cutAtDeadline(response: ServerResponse, { deadline }: Context, begun: number): () => void {
  if (deadline === undefined) return () => {};
  const left = (typeof deadline === "number" ? begun + deadline : deadline.getTime()) - Date.now();
  const timer = setTimeout(() => response.destroy(), Math.max(0, left));
  return () => clearTimeout(timer);
}

/**
 * Ends a response with its connection. The host ends only the response in progress, not those of pipelined requests.
 */
function endWithSocket(response: ServerResponse, socket: Socket): void {
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

/** Returns an instance to its pool; one that cannot be reset has been closed. */
function giveBack(pool: InstancePool<ComponentInstance>, instance: ComponentInstance): void {
  try {
    pool.put(instance);
  } catch {
    // The pool has closed it and makes another.
  }
}

/**
 * Waits until a response has been sent, or its connection has ended. A client that does not receive it is disconnected.
 */
function finished(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (response.writableFinished || response.destroyed) return resolve();
    const timer = setTimeout(() => response.destroy(), SENDING_TIMEOUT_MS);
    const end = () => {
      clearTimeout(timer);
      resolve();
    };
    response.once("finish", end);
    response.once("close", end);
  });
}
