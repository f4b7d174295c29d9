/**
 * HTTP/2 for the server of components: connections that have agreed on it by ALPN, or whose client begins with its
 * preface. In: sockets. Out: requests and responses in the form of node:http. Invariants: at most MAX_STREAMS requests
 * of a connection are open; a connection that has no open request for IDLE_TIMEOUT_MS is closed, regardless of its
 * other frames; one whose client resets many more requests than it lets the server answer is closed (CVE-2023-44487); a
 * response that ends early is reset, so its client sees that it is incomplete. The host bounds the rest: memory,
 * fields, pings, settings, and frames that are not valid.
 */
import { Buffer } from "node:buffer";
import { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import {
  constants,
  createServer,
  type Http2Server,
  Http2ServerRequest,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import { clearTimeout, setTimeout } from "node:timers";
import { CONNECTION_FIELDS } from "./messages.ts";
import type { HostResponse } from "./response.ts";

/** The requests of one connection that may be open at once. */
const MAX_STREAMS = 100;
/** Requests that the client of a connection may reset beyond those that have been answered. */
const MAX_RESETS = 100;
/** The time in which a connection without an open request must begin one. */
const IDLE_TIMEOUT_MS = 60_000;
/** The time in which a client must end a request that has been answered. */
const DISCARDING_TIMEOUT_MS = 5_000;
/** The maximum size of the fields of a request, with 32 bytes for each (RFC 9113, section 6.5.2). */
const MAX_HEADER_LIST = 1 << 16;
/** The maximum number of bytes of a field section of a response, as HPACK encodes it. */
const MAX_SENT_HEADERS = 1 << 18;
const MAX_FIELDS = 1000;

/** The preface of a connection begins with these bytes, which no request of HTTP/1.1 begins with. */
const PREFACE = "PRI * HTTP/2.0\r\n";

/** Whether a connection that begins with these bytes is one of HTTP/2; undefined if more bytes must arrive. */
function beginsHttp2(bytes: Uint8Array): boolean | undefined {
  const length = Math.min(bytes.length, PREFACE.length);
  for (let k = 0; k < length; k++) if (bytes[k] !== PREFACE.charCodeAt(k)) return false;
  return length === PREFACE.length ? true : undefined;
}

/**
 * Calls `choose` once the first bytes of a connection say whether it is one of HTTP/2, which leaves them to be read. A
 * connection on which they do not arrive within `limitMs` is closed.
 */
export function whenChosen(socket: Socket, limitMs: number, choose: (isHttp2: boolean) => void): void {
  const timer = setTimeout(() => socket.destroy(), limitMs);
  let first = Buffer.alloc(0);
  const read = () => {
    const bytes = socket.read() as Uint8Array | null;
    if (bytes === null) return;
    first = Buffer.concat([first, bytes]);
    const isHttp2 = beginsHttp2(first);
    if (isHttp2 === undefined) return;
    clearTimeout(timer);
    socket.off("readable", read);
    socket.off("error", ignore);
    socket.unshift(first);
    choose(isHttp2);
  };
  const ignore = () => {};
  socket.on("error", ignore);
  socket.once("close", () => clearTimeout(timer));
  socket.on("readable", read);
}

/** Whether this host can add HTTP/2 to a server of node:http. Bun's `node:http2` takes no connections of others. */
export function hasHttp2(): boolean {
  return !("Bun" in globalThis);
}

/** Called for each request, with the connection that it arrived on. */
type RequestListener = (request: IncomingMessage, response: HostResponse, socket: Socket) => void;

/** The connections of HTTP/2 of a server. */
export class Http2Connections {
  readonly #server: Http2Server;
  readonly #onRequest: RequestListener;
  readonly #sessions = new Set<ServerHttp2Session>();
  /** The connection whose session begins in the running call. */
  #beginning: Socket | undefined;
  #isStopping = false;

  constructor(onRequest: RequestListener) {
    this.#onRequest = onRequest;
    this.#server = createServer({
      settings: { maxConcurrentStreams: MAX_STREAMS, maxHeaderListSize: MAX_HEADER_LIST, enablePush: false },
      maxHeaderListPairs: MAX_FIELDS,
      maxSendHeaderBlockLength: MAX_SENT_HEADERS,
    });
    this.#server.on("session", (session: ServerHttp2Session) => this.#begin(session));
    // The session has ended; its requests learn it from their streams.
    this.#server.on("sessionError", () => {});
  }

  /** Takes a connection that speaks HTTP/2. */
  take(socket: Socket): void {
    if (this.#isStopping) return void socket.destroy();
    this.#beginning = socket;
    this.#server.emit("connection", socket);
    this.#beginning = undefined;
  }

  /** Accepts no more requests; connections are closed when those in progress have been answered. */
  stop(): void {
    this.#isStopping = true;
    for (const session of this.#sessions) session.close();
  }

  #begin(session: ServerHttp2Session): void {
    const socket = this.#beginning;
    if (socket === undefined) return session.destroy();
    let open = 0;
    let answered = 0;
    let resets = 0;
    let idle: ReturnType<typeof setTimeout> | undefined;
    const wait = () => idle = setTimeout(() => session.destroy(), IDLE_TIMEOUT_MS);
    this.#sessions.add(session);
    session.once("close", () => {
      this.#sessions.delete(session);
      clearTimeout(idle);
    });
    session.on("error", () => {});
    wait();
    session.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, raw: string[]) => {
      clearTimeout(idle);
      stream.on("error", () => {});
      // Not every host enforces the number that it has announced.
      if (open >= MAX_STREAMS) return stream.close(constants.NGHTTP2_REFUSED_STREAM);
      open++;
      const request = requestOf(stream, headers, raw);
      const response = new Http2Response(stream, request);
      stream.once("close", () => {
        open--;
        if (response.writableFinished) answered++;
        else if (!response.isReset) resets++;
        if (resets > answered + MAX_RESETS) return session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
        if (open === 0 && !session.closed && !session.destroyed) wait();
      });
      if (stream.destroyed) return;
      if (headers["expect"] === "100-continue") stream.additionalHeaders({ ":status": 100 });
      this.#onRequest(request, response, socket);
    });
  }
}

/** The request of a stream, in the form of HTTP/1.1: `cookie` is one field (RFC 9113, section 8.2.3). */
function requestOf(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, raw: readonly string[]): IncomingMessage {
  const cookies = raw.filter((_, k) => k % 2 === 1 && raw[k - 1] === "cookie");
  const others = raw.filter((_, k) => raw[k - k % 2] !== "cookie");
  const fields = cookies.length > 1 ? [...others, "cookie", cookies.join("; ")] : [...raw];
  const request = new Http2ServerRequest(stream, headers, {}, fields);
  request.on("error", () => {});
  // It has all that the server and the component use of a message of node:http.
  return request as unknown as IncomingMessage;
}

/** A response of HTTP/2. */
class Http2Response extends EventEmitter implements HostResponse {
  readonly req: HostResponse["req"];
  readonly socket = null;
  statusCode = 200;
  /** HTTP/2 has none. */
  statusMessage = "";
  /** Whether this side has ended the answer early. */
  isReset = false;
  readonly #stream: ServerHttp2Stream;
  readonly #fields = new Map<string, string | number | readonly string[]>();
  #trailers: Readonly<Record<string, string>> | undefined;
  #hasEnded = false;

  constructor(stream: ServerHttp2Stream, request: IncomingMessage) {
    super();
    this.req = request;
    this.#stream = stream;
    let rest: ReturnType<typeof setTimeout> | undefined;
    stream.on("drain", () => this.emit("drain"));
    stream.on("finish", () => {
      if (!this.writableFinished) return;
      this.emit("finish");
      // A reset could overtake trailers, so the rest of the request is read for a while.
      request.removeAllListeners("readable");
      request.resume();
      rest = setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), DISCARDING_TIMEOUT_MS);
    });
    stream.on("close", () => {
      clearTimeout(rest);
      this.emit("close");
    });
    stream.on("wantTrailers", () => this.#sendTrailers());
  }

  get headersSent(): boolean {
    return this.#stream.headersSent;
  }

  get destroyed(): boolean {
    return this.#stream.destroyed || this.#stream.closed;
  }

  /** The host also finishes streams that are reset. */
  get writableFinished(): boolean {
    return this.#hasEnded && !this.isReset && this.#stream.writableFinished && !this.#stream.aborted &&
      this.#stream.rstCode === constants.NGHTTP2_NO_ERROR;
  }

  setHeader(name: string, value: string | number | readonly string[]): void {
    this.#fields.set(name.toLowerCase(), value);
  }

  hasHeader(name: string): boolean {
    return this.#fields.has(name.toLowerCase());
  }

  removeHeader(name: string): void {
    this.#fields.delete(name.toLowerCase());
  }

  getHeaderNames(): string[] {
    return [...this.#fields.keys()];
  }

  flushHeaders(): void {
    this.#respond(false);
  }

  #respond(isWhole: boolean): void {
    if (this.headersSent || this.destroyed) return;
    const fields: OutgoingHttpHeaders = { ":status": this.statusCode };
    for (const [name, value] of this.#fields) {
      if (!CONNECTION_FIELDS.has(name)) fields[name] = typeof value === "object" ? [...value] : value;
    }
    const options = isWhole ? { endStream: true } : { waitForTrailers: true };
    this.#stream.respond(fields, options);
  }

  write(bytes: Uint8Array): boolean {
    this.#respond(false);
    return this.destroyed || this.#stream.write(bytes);
  }

  addTrailers(fields: Readonly<Record<string, string>>): void {
    this.#trailers = { ...this.#trailers, ...fields };
  }

  #sendTrailers(): void {
    try {
      this.#stream.sendTrailers(this.#trailers ?? {});
    } catch {
      this.destroy();
    }
  }

  end(body?: string | Uint8Array): void {
    if (this.destroyed) return;
    this.#hasEnded = true;
    const isEmpty = body === undefined || body.length === 0;
    this.#respond(isEmpty && !this.headersSent && this.#trailers === undefined);
    if (isEmpty) this.#stream.end();
    else this.#stream.end(body);
  }

  destroy(): void {
    this.isReset = true;
    this.#stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  }
}
