/**
 * Answers on their way to clients. In: the status, the fields, the body and the trailers of a component's response.
 * Out: calls of the host's response. Invariants: a short body leaves together with its head and announces its length; a
 * response without a body sends none, even if the component writes one.
 */
import type { Socket } from "node:net";
import { clearImmediate, clearTimeout, setImmediate, setTimeout } from "node:timers";
import type { MessageTarget } from "./body.ts";
import { grouped } from "./client.ts";
import type { OutgoingResponse } from "./messages.ts";

/** The response of the host to one request: that of node:http, or a stream of HTTP/2. */
export interface HostResponse {
  readonly req: { readonly method?: string; readonly httpVersion: string };
  readonly socket: Socket | null;
  statusCode: number;
  statusMessage: string;
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  /** Whether the whole answer has been passed to the connection. */
  readonly writableFinished: boolean;
  on(event: "close" | "drain" | "finish", listener: () => void): unknown;
  once(event: "close" | "drain" | "finish", listener: () => void): unknown;
  emit(event: "close"): unknown;
  setHeader(name: string, value: string | number | readonly string[]): unknown;
  hasHeader(name: string): boolean;
  removeHeader(name: string): void;
  getHeaderNames(): string[];
  flushHeaders(): void;
  /** Returns false if the caller should wait for `drain` before it writes more. */
  write(bytes: Uint8Array): boolean;
  addTrailers(fields: Readonly<Record<string, string>>): void;
  end(body?: string | Uint8Array): unknown;
  /** Ends the answer such that the client sees that it is incomplete. */
  destroy(error?: Error): unknown;
}

/** The maximum number of bytes of an answer that are held back, to be sent together with its head. */
const HELD_BYTES = 1 << 14;
/** The time in which a client must receive the rest of an answer after the component has returned. */
const SENDING_TIMEOUT_MS = 60_000;

/** True for answers that have no body, even if the component writes one. */
export function hasNoBody(method: string | undefined, status: number): boolean {
  return method === "HEAD" || status === 204 || status === 304;
}

/** The connection to a client, which takes an answer. */
export class ResponseTarget implements MessageTarget {
  readonly #response: HostResponse;
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
  constructor(response: HostResponse, answer: OutgoingResponse, count: (bytes: number) => void) {
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
   * HTTP/1.1 has trailers only after chunks, and hosts refuse a head that announces others. A server must not send a
   * length with status 204 (RFC 9110, section 8.6).
   */
  #sendHead(hasTrailers: boolean): void {
    if (this.#hasHead) return;
    this.#hasHead = true;
    clearImmediate(this.#release);
    const status = this.#response.statusCode = this.#answer.statusCode();
    const isLeftOut = (name: string) => name === "trailer" ? !hasTrailers : name === "content-length" && status === 204;
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
    const { httpVersion } = this.#response.req;
    this.#sendHead(httpVersion === "1.1" ? !isFramed : httpVersion === "2.0" && !this.#discards);
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
export function answerPlainly(response: HostResponse, status: number, text: string): number {
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

/**
 * Waits until a response has been sent, or its connection has ended. A client that does not receive it is disconnected.
 */
export function finished(response: HostResponse): Promise<void> {
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
