/**
 * The listener: node:http outside, Request and Response inside.
 *
 * In: connections. Out: calls of a handler. Slow heads, oversized heads and malformed requests end the connection.
 * Closing stops accepting connections, waits for running requests, then cuts the rest. Text with an ETag is compressed
 * for clients that accept gzip, under an ETag of its own.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { Compressor, forHandler } from "./compress.ts";

/** Header fields by their names in lower case. */
export type Fields = { [name: string]: string };

/**
 * Answers a request; `address` is the peer's. The fields that the answerer puts into `fields` are sent in addition to
 * those of the response and replace fields of the same name. They are a plain object, because every change of an object
 * `Headers` validates and scans it.
 */
export type Answerer = (request: Request, address: string, fields: Fields) => Promise<Response>;

/** A running listener. */
export interface Listener {
  readonly url: string;
  readonly port: number;
  /** Stops within `graceMs`. */
  close(graceMs?: number): Promise<void>;
}

const HEADERS_TIMEOUT_MS = 15_000;
const MAX_URL = 8000;
const MAX_FIELDS = 500;
/** The maximum number of requests of one connection that are not answered to the end; not every host has one. */
const MAX_AHEAD = 1 << 9;
/** Larger bodies of known length are sent piece by piece. */
const MAX_WHOLE_BYTES = 4 << 20;

/** The time that a client has to take an answer, in milliseconds, and the bytes that prolong it by as much. */
const SENDING_MS = 30_000;
const SENDING_BYTES = 1 << 19;

/** A connection: its requests in progress, and the timer that runs while there are none. */
interface Connection {
  running: number;
  readonly timer: ReturnType<typeof setTimeout>;
}

/**
 * The connections of a listener, with their requests in progress. Deno's node:http ignores headersTimeout, so each
 * connection has a timer here, which runs between two requests and while a head arrives.
 */
class Connections {
  readonly #headersTimeoutMs: number;
  readonly #connections = new WeakMap<Socket, Connection>();
  #running = 0;
  #becomeIdle: (() => void) | undefined;

  constructor(headersTimeoutMs: number) {
    this.#headersTimeoutMs = headersTimeoutMs;
  }

  /** Takes a new connection. */
  add(socket: Socket): void {
    // Each pipelined request listens for the end of its connection.
    socket.setMaxListeners(0);
    this.#expectRequest(socket);
    socket.once("close", () => clearTimeout(this.#connections.get(socket)?.timer));
  }

  #expectRequest(socket: Socket): Connection {
    const timer = setTimeout(() => socket.destroy(), this.#headersTimeoutMs);
    const connection = { running: 0, timer };
    this.#connections.set(socket, connection);
    return connection;
  }

  /**
   * Counts a request; false if the connection has ended. Ends one that has sent too many ahead, whose answers would
   * fill the memory.
   */
  beginRequest(socket: Socket): boolean {
    const connection = this.#connections.get(socket) ?? this.#expectRequest(socket);
    if (connection.running >= MAX_AHEAD) socket.destroy();
    if (socket.destroyed) return false;
    clearTimeout(connection.timer);
    this.#running++;
    connection.running++;
    return true;
  }

  endRequest(socket: Socket): void {
    this.#running--;
    const connection = this.#connections.get(socket);
    if (connection !== undefined && --connection.running === 0 && !socket.destroyed) this.#expectRequest(socket);
    if (this.#running === 0) this.#becomeIdle?.();
  }

  isAnswering(socket: Socket): boolean {
    return (this.#connections.get(socket)?.running ?? 0) > 0;
  }

  /** Resolves when no request is in progress, at the latest after `limitMs`. */
  async idle(limitMs: number): Promise<void> {
    if (this.#running === 0) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    await Promise.race([
      new Promise<void>((resolve) => this.#becomeIdle = resolve),
      new Promise<void>((resolve) => timer = setTimeout(resolve, limitMs)),
    ]);
    clearTimeout(timer);
  }
}

/** Starts to listen. */
export async function listen(
  answer: Answerer,
  at: { readonly host: string; readonly port: number; readonly headersTimeoutMs?: number; readonly sendingMs?: number },
): Promise<Listener> {
  let closing = false;
  const connections = new Connections(at.headersTimeoutMs ?? HEADERS_TIMEOUT_MS);
  const compressor = new Compressor();
  const server: Server = createServer({
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: 0,
    keepAliveTimeout: 10_000,
    maxHeaderSize: 16 << 10,
  }, (incoming, outgoing) => {
    const { socket } = incoming;
    if (!connections.beginRequest(socket)) return void outgoing.destroy();
    void respond(answer, incoming, outgoing, compressor, () => closing, at.sendingMs ?? SENDING_MS)
      .finally(() => connections.endRequest(socket));
  });
  // Hosts leave out the fields beyond their own maximum: a client could hide those that a proxy adds.
  server.maxHeadersCount = 0;
  server.on("connection", (socket: Socket) => connections.add(socket));
  server.on("clientError", (_error, socket) => {
    // An error in the middle of an answer cannot be reported, and the client may read no more.
    if (connections.isAnswering(socket as Socket) || !socket.writable) socket.destroy();
    else socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(at.port, at.host, resolve);
  });
  const { port, family, address } = server.address() as AddressInfo;
  const host = family === "IPv6" ? `[${address}]` : address;
  return {
    url: `http://${host}:${port}`,
    port,
    async close(graceMs = 10_000) {
      closing = true;
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      await connections.idle(graceMs);
      server.closeAllConnections();
      await closed;
    },
  };
}

async function respond(
  answer: Answerer,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  compressor: Compressor,
  closing: () => boolean,
  sendingMs: number,
): Promise<void> {
  try {
    const request = requestOf(incoming);
    const fields: Fields = {};
    const response = request === undefined
      ? new Response("Bad request\n", { status: 400, headers: { "content-type": "text/plain" } })
      : await answer(request, incoming.socket.remoteAddress ?? "", fields);
    const headers: Fields = {};
    for (const [name, value] of response.headers) headers[name] = value;
    Object.assign(headers, fields);
    // The unread rest of a body would be parsed as the next request.
    if (closing() || (!incoming.complete && incoming.method !== "GET")) headers.connection = "close";
    // The answer to a HEAD without a body has the length of what a GET would send.
    const bodyless = response.status === 304 || response.status === 204 ||
      incoming.method === "HEAD" && response.body === null;
    if (Number(headers["content-length"] ?? 0) > MAX_WHOLE_BYTES && response.body !== null) {
      outgoing.writeHead(response.status, headers);
      return await sendStream(response.body, outgoing, sendingMs);
    }
    const plain = bodyless ? undefined : new Uint8Array(await response.arrayBuffer());
    const body = compressor.compress(incoming.headers, response.status, headers, plain);
    if (body !== undefined) headers["content-length"] = String(body.length);
    outgoing.writeHead(response.status, headers);
    const taken = untilTaken(outgoing, sendingMs * (1 + (body?.length ?? 0) / SENDING_BYTES));
    outgoing.end(incoming.method === "HEAD" ? undefined : body);
    await taken;
  } catch {
    // The peer is gone, or the answer cannot be sent.
    outgoing.destroy();
  }
}

/**
 * Resolves when an answer has been sent, or its connection has ended; ends the connection after `timeoutMs`. The host
 * reports the end of the connection only to the answer that is being sent, not to those of pipelined requests.
 */
function untilTaken(outgoing: ServerResponse, timeoutMs: number): Promise<void> {
  const { socket } = outgoing.req;
  return new Promise((resolve) => {
    const timer = setTimeout(() => socket.destroy(), timeoutMs);
    const end = (): void => {
      clearTimeout(timer);
      socket.off("close", end);
      resolve();
    };
    outgoing.once("finish", end);
    outgoing.once("close", end);
    outgoing.once("error", end);
    socket.once("close", end);
    if (socket.destroyed) end();
  });
}

/** Sends a body with backpressure; the source is cancelled when the peer is gone or reads nothing for `stallMs`. */
async function sendStream(body: ReadableStream<Uint8Array>, outgoing: ServerResponse, stallMs: number): Promise<void> {
  const { socket } = outgoing.req;
  const reader = body.getReader();
  let gone = false;
  let resume: (() => void) | undefined;
  const end = (): void => {
    gone = true;
    resume?.();
  };
  outgoing.on("drain", () => resume?.());
  outgoing.once("close", end);
  outgoing.once("error", () => {});
  socket.once("close", end);
  if (socket.destroyed) end();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || gone) break;
      if (outgoing.write(value)) continue;
      const timer = setTimeout(() => socket.destroy(), stallMs);
      await new Promise<void>((resolve) => gone ? resolve() : resume = resolve);
      clearTimeout(timer);
    }
    const taken = untilTaken(outgoing, stallMs);
    outgoing.end();
    await taken;
  } finally {
    socket.off("close", end);
    if (gone) await reader.cancel().catch(() => {});
  }
}

/** The Request; undefined when it is malformed. */
function requestOf(incoming: IncomingMessage): Request | undefined {
  const { url, method } = incoming;
  if (url === undefined || url.length > MAX_URL || !url.startsWith("/") || method === undefined) return undefined;
  if (incoming.rawHeaders.length > 2 * MAX_FIELDS) return undefined;
  const headers = new Headers();
  for (let i = 0; i < incoming.rawHeaders.length; i += 2) {
    try {
      headers.append(incoming.rawHeaders[i], incoming.rawHeaders[i + 1]);
    } catch {
      return undefined;
    }
  }
  forHandler(headers);
  // The Host field is untrusted: addresses in answers come from the settings.
  const target = `http://registry.invalid${url.startsWith("//") ? `/.${url}` : url}`;
  if (!URL.canParse(target)) return undefined;
  const hasBody = method !== "GET" && method !== "HEAD";
  try {
    return new Request(target, {
      method,
      headers,
      ...(hasBody ? { body: bodyOf(incoming), duplex: "half" } : {}),
    } as RequestInit);
  } catch {
    return undefined;
  }
}

/**
 * The body of a request. Not Readable.toWeb: it throws outside of any handler when data arrives after the reader is
 * gone, which would let any client end the process.
 */
function bodyOf(incoming: IncomingMessage): ReadableStream<Uint8Array> {
  let done = false;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      const fail = (): void => {
        if (done) return;
        done = true;
        controller.error(new Error("The connection was lost"));
      };
      incoming.on("data", (chunk: Uint8Array) => {
        if (done) return;
        controller.enqueue(new Uint8Array(chunk));
        if ((controller.desiredSize ?? 0) <= 0) incoming.pause();
      });
      incoming.on("end", () => {
        if (done) return;
        done = true;
        controller.close();
      });
      incoming.on("error", fail);
      incoming.on("close", fail);
      incoming.pause();
    },
    pull() {
      incoming.resume();
    },
    cancel() {
      done = true;
      incoming.pause();
    },
  });
}
