/**
 * Bodies of wasi:http messages. In: bytes and trailers of a guest, or a message that arrives. Out: the resources
 * outgoing-body, incoming-body and future-trailers. Invariant: a body has exactly the length that its message
 * announced, or its receiver sees that it is incomplete.
 */
import type { IncomingMessage } from "node:http";
import { ComponentError } from "../abi/traps.ts";
import { type Holding, HostShare, SHARES } from "../async/host_quota.ts";
import {
  BUFFER_BYTES,
  type ByteSink,
  bytesOfPart,
  ByteSource,
  EventInputStream,
  EventOutputStream,
} from "../wasi/event_streams.ts";
import type { Preview1 } from "../wasi/preview1.ts";
import { Condition, Signal } from "../wasi/readiness.ts";
import { IoError, Pollable } from "../wasi/streams.ts";
import { Fields } from "./fields.ts";

/** An error-code of wasi:http. */
export interface HttpError {
  readonly tag: string;
  readonly val?: unknown;
}

/** The wasi:io error of a stream of a body, for http-error-code. */
export class HttpIoError extends IoError {
  readonly httpError: HttpError;

  constructor(httpError: HttpError) {
    super(httpError.tag);
    this.httpError = httpError;
  }
}

/** The message that a body belongs to. */
export type MessageKind = "request" | "response";

/** The errors of messages whose sender stops early. */
const INCOMPLETE: Readonly<Record<MessageKind, HttpError>> = {
  request: { tag: "connection-terminated" },
  response: { tag: "HTTP-response-incomplete" },
};

/** Fields that say how a message is framed or routed: those in trailers are left out (RFC 9110, section 6.5.1). */
const NOT_IN_TRAILERS: ReadonlySet<string> = new Set(["content-length", "trailer", "te", "expect", "authorization"]);

/** Alternating names and values, without the fields that trailers cannot have. */
function trailersOf(fields: Fields | undefined): string[] {
  const raw = fields?.toRaw() ?? [];
  return raw.filter((_, k) => !NOT_IN_TRAILERS.has(raw[k - k % 2].toLowerCase()));
}

/** The receiver of a message: a connection to a client or a server. */
export interface MessageTarget {
  /** Accepts bytes, and calls `taken` once the receiver is ready for more. */
  write(bytes: Uint8Array, taken: () => void): void;
  /** Ends the body. `trailers` alternates names and values. */
  end(trailers: readonly string[]): void;
  /** Aborts the message, so that the receiver sees that it is incomplete. */
  abort(): void;
}

/** Collects the bytes of a body, before and after its message has a receiver. */
export class BodySink implements ByteSink {
  readonly #kind: MessageKind;
  readonly #length: number | undefined;
  readonly #change = new Signal();
  readonly #share: HostShare;
  readonly [SHARES]: readonly HostShare[];
  readonly #early: { bytes: Uint8Array; taken: () => void }[] = [];
  #target: MessageTarget | undefined;
  #trailers: readonly string[] | undefined;
  #written = 0;
  #aborted = false;
  failure: "closed" | IoError | undefined;

  /** `length` is that of the `content-length` field; `share` counts the bytes that wait for the receiver. */
  constructor(kind: MessageKind, length: number | undefined, share: HostShare = new HostShare()) {
    this.#share = share;
    this[SHARES] = [share];
    this.#kind = kind;
    this.#length = length;
  }

  watch(wake: () => void): () => void {
    return this.#change.watch(wake);
  }

  get room(): number {
    return Math.max(0, BUFFER_BYTES - this.#share.bytes);
  }

  get isIdle(): boolean {
    return this.#share.bytes === 0 || this.#target === undefined;
  }

  /** Whether the body has ended without any bytes. */
  get isEmpty(): boolean {
    return this.#trailers !== undefined && this.#written === 0;
  }

  /** Connects the receiver, which gets the bytes that were written before. */
  attach(target: MessageTarget): void {
    this.#target = target;
    for (const { bytes, taken } of this.#early.splice(0)) target.write(bytes, taken);
    if (this.#aborted) target.abort();
    else if (this.#trailers !== undefined) target.end(this.#trailers);
  }

  write(bytes: Uint8Array): void {
    this.#written += bytes.length;
    if (this.#length !== undefined && this.#written > this.#length) {
      const error = this.#sizeError();
      this.fail(new HttpIoError(error));
      this.abort();
      throw new ComponentError({ tag: "last-operation-failed", val: this.failure });
    }
    const counted = bytesOfPart(bytes);
    this.#share.add(counted);
    const taken = () => {
      this.#share.add(-counted);
      this.#change.notify();
    };
    if (this.#target === undefined) this.#early.push({ bytes, taken });
    else this.#target.write(bytes, taken);
  }

  #sizeError(): HttpError {
    return { tag: `HTTP-${this.#kind}-body-size`, val: BigInt(this.#written) };
  }

  /** Ends the body. Throws the error case of a body that is shorter than announced. */
  finish(trailers: readonly string[]): void {
    if (this.failure instanceof HttpIoError) throw new ComponentError(this.failure.httpError);
    if (this.#length !== undefined && this.#written < this.#length) {
      this.abort();
      throw new ComponentError(this.#sizeError());
    }
    this.#trailers = trailers;
    this.fail("closed");
    this.#target?.end(trailers);
  }

  /** Aborts the body. */
  abort(): void {
    if (this.#aborted || this.#trailers !== undefined) return;
    this.#aborted = true;
    this.discard();
    this.fail("closed");
    this.#target?.abort();
  }

  /** The receiver accepts no further bytes. */
  fail(failure: "closed" | IoError): void {
    this.failure ??= failure;
    this.#change.notify();
  }

  /** The message has been dropped, or was refused: its bytes have no receiver. */
  discard(): void {
    if (this.#target !== undefined) return;
    for (const { taken } of this.#early.splice(0)) taken();
    this.fail("closed");
  }
}

/** wasi:http/types outgoing-body. */
export class OutgoingBody implements Holding {
  readonly #preview1: Preview1;
  readonly #sink: BodySink;
  #hasStream = false;

  constructor(preview1: Preview1, sink: BodySink) {
    this.#preview1 = preview1;
    this.#sink = sink;
  }

  get [SHARES](): readonly HostShare[] {
    return this.#sink[SHARES];
  }

  write(): EventOutputStream {
    if (this.#hasStream) throw new ComponentError(undefined);
    this.#hasStream = true;
    return new EventOutputStream(this.#preview1, this.#sink);
  }

  static finish(body: OutgoingBody, trailers: Fields | undefined): void {
    body.#sink.finish(trailersOf(trailers));
  }

  [Symbol.dispose](): void {
    this.#sink.abort();
  }
}

/** The bytes of the host that a message counts that arrives: its head, and what has arrived of its body. */
const MESSAGE_BYTES = 1 << 15;

/** The share of a message that arrives, which all objects of it hold. */
export function messageShare(): HostShare {
  return new HostShare(MESSAGE_BYTES);
}

/** An incoming message and the part of it that has been read. */
class Arrival {
  readonly message: IncomingMessage;
  readonly source: ByteSource;
  readonly preview1: Preview1;
  readonly #kind: MessageKind;

  constructor(preview1: Preview1, message: IncomingMessage, kind: MessageKind, share: HostShare) {
    this.preview1 = preview1;
    this.message = message;
    this.#kind = kind;
    this.source = new ByteSource(message, () => new HttpIoError(INCOMPLETE[kind]), share);
  }

  /** Ends the connection of a response that is no longer read; that of a request still carries the answer. */
  leave(): void {
    if (this.#kind === "response" && !this.source.ended) this.message.destroy();
  }
}

/** wasi:http/types incoming-body. */
export class IncomingBody implements Holding {
  readonly #arrival: Arrival;
  #hasStream = false;

  constructor(preview1: Preview1, message: IncomingMessage, kind: MessageKind, share: HostShare) {
    this.#arrival = new Arrival(preview1, message, kind, share);
  }

  get [SHARES](): readonly HostShare[] {
    return this.#arrival.source[SHARES];
  }

  stream(): EventInputStream {
    if (this.#hasStream) throw new ComponentError(undefined);
    this.#hasStream = true;
    return new EventInputStream(this.#arrival.preview1, this.#arrival.source);
  }

  static finish(body: IncomingBody): FutureTrailers {
    return new FutureTrailers(body.#arrival);
  }

  [Symbol.dispose](): void {
    this.#arrival.leave();
  }
}

/** wasi:http/types future-trailers. Reads the rest of the body, which has no other reader left. */
export class FutureTrailers implements Holding {
  readonly #arrival: Arrival;
  readonly #ended: Condition;
  #taken = false;

  constructor(arrival: Arrival) {
    this.#arrival = arrival;
    const { source } = arrival;
    this.#ended = new Condition(() => source.ended || source.error !== undefined);
    const skip = () => {
      while (!this.#ended.isReady && source.readiness.isReady) source.take(BUFFER_BYTES);
      if (this.#ended.isReady) {
        stop();
        this.#ended.notify();
      }
    };
    const stop = source.readiness.watch(skip);
    skip();
  }

  get [SHARES](): readonly HostShare[] {
    return this.#arrival.source[SHARES];
  }

  subscribe(): Pollable {
    return new Pollable(this.#arrival.preview1, this.#ended);
  }

  get(): unknown {
    if (this.#taken) return { tag: "err", val: undefined };
    if (!this.#ended.isReady) return undefined;
    this.#taken = true;
    const { message, source } = this.#arrival;
    const { error } = source;
    if (error instanceof HttpIoError) return { tag: "ok", val: { tag: "err", val: error.httpError } };
    const raw = message.rawTrailers ?? [];
    return { tag: "ok", val: { tag: "ok", val: raw.length === 0 ? undefined : Fields.arrived(raw) } };
  }

  [Symbol.dispose](): void {
    this.#arrival.leave();
  }
}
