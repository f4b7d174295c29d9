/**
 * Streams of wasi:io over streams of Node's API. In: a Readable, or a sink that takes bytes. Out: objects with the
 * methods of input-stream and output-stream, whose blocking methods return promises. Invariant: at most BUFFER_BYTES
 * bytes of a guest wait for a slow receiver, and a source is read no faster than the guest takes its bytes.
 */
import type { Readable, Writable } from "node:stream";
import { ComponentError } from "../abi/traps.ts";
import { type Holding, HostShare, SHARES } from "../async/host_quota.ts";
import type { Preview1 } from "./preview1.ts";
import { Condition, type Readiness, whenReady, whenThere } from "./readiness.ts";
import { type ByteInput, closed, IoError, lengthOf, Pollable } from "./streams.ts";

/** The maximum number of bytes that a guest has written and the receiver has not accepted. */
export const BUFFER_BYTES = 1 << 16;

/** The bytes of the host that a part counts that waits for its receiver, besides its own. */
const PART_BYTES = 256;

/** The number of bytes that a part takes of the room of a sink. */
export function bytesOfPart(part: Uint8Array): number {
  return PART_BYTES + part.length;
}

/** The bytes of the host that a source counts: what may have arrived and not been taken. */
const SOURCE_BYTES = 1 << 14;

/** The maximum number of bytes of one blocking-write-and-flush (wasi:io). */
const MAX_BLOCKING_WRITE = 4096;

const NO_BYTES = new Uint8Array(0);

function failed(error: IoError): never {
  throw new ComponentError({ tag: "last-operation-failed", val: error });
}

/** The bytes that a Readable delivers. */
export class ByteSource implements Holding {
  readonly [SHARES]: readonly HostShare[];
  readonly readiness: Condition = new Condition(() => this.#readable.readableLength > 0 || this.#ended || this.#failed);
  readonly #readable: Readable;
  readonly #failure: () => IoError;
  #ended = false;
  #closed = false;
  #error: IoError | undefined;

  /** `failure` makes the error for a source that was aborted. `share` counts the message that it belongs to. */
  constructor(readable: Readable, failure: () => IoError, share: HostShare = new HostShare(SOURCE_BYTES)) {
    this[SHARES] = [share];
    this.#readable = readable;
    this.#failure = failure;
    readable.on("readable", () => {
      // The end of a stream is announced by a read that finds nothing.
      if (readable.readableLength === 0) readable.read();
      this.readiness.notify();
    });
    readable.on("end", () => {
      this.#ended = true;
      this.readiness.notify();
    });
    readable.on("error", () => this.#fail());
    readable.on("close", () => this.#fail());
  }

  get #failed(): boolean {
    return this.#error !== undefined;
  }

  #fail(): void {
    if (!this.#ended) this.#error ??= this.#failure();
    this.readiness.notify();
  }

  /** Whether all bytes have been taken. */
  get ended(): boolean {
    return this.#ended;
  }

  get error(): IoError | undefined {
    return this.#error;
  }

  /** Takes at most `most` bytes; none if none have arrived. Throws the error of a stream at its end. */
  take(most: number): Uint8Array {
    const readableLength = this.#closed ? 0 : this.#readable.readableLength;
    if (most > 0 && readableLength > 0) return this.#read(Math.min(most, readableLength));
    if (this.#error !== undefined) return failed(this.#error);
    return this.#ended ? closed() : NO_BYTES;
  }

  #read(length: number): Uint8Array {
    const readable = this.#readable;
    const bytes = readable.read(length) as Uint8Array;
    // The end may have arrived before these bytes were read, and is announced by a read that finds nothing.
    if (readable.readableLength === 0) readable.read(0);
    return bytes;
  }

  /** Ends the source for the guest; bytes that arrive later are discarded. */
  close(): void {
    this.#ended = this.#closed = true;
    this.#readable.removeAllListeners("readable");
    this.#readable.resume();
    this.readiness.notify();
  }
}

/** An input-stream of a ByteSource. */
export class EventInputStream implements ByteInput, Holding {
  /** Its source may outlive all that it came from. */
  get [SHARES](): readonly HostShare[] {
    return this.#source[SHARES];
  }

  readonly #preview1: Preview1;
  readonly #source: ByteSource;

  constructor(preview1: Preview1, source: ByteSource) {
    this.#preview1 = preview1;
    this.#source = source;
  }

  read(length: bigint): Uint8Array {
    return this.#source.take(lengthOf(length));
  }

  blockingRead(length: bigint): Uint8Array | Promise<Uint8Array> {
    if (length === 0n) return NO_BYTES;
    return whenReady(this.#source.readiness, () => this.read(length));
  }

  skip(length: bigint): bigint {
    return BigInt(this.read(length).length);
  }

  blockingSkip(length: bigint): bigint | Promise<bigint> {
    return whenThere(this.blockingRead(length), (bytes) => BigInt(bytes.length));
  }

  subscribe(): Pollable {
    return new Pollable(this.#preview1, this.#source.readiness);
  }
}

/** The receiver of an output stream's bytes. */
export interface ByteSink extends Holding {
  /** Ready when the number of bytes that it takes, or its error, has changed. */
  watch(wake: () => void): () => void;
  /** The number of bytes that it takes now. */
  readonly room: number;
  /** Whether nothing waits for the receiver. */
  readonly isIdle: boolean;
  /** The reason for which it accepts no further bytes: closed, or an error. */
  readonly failure: "closed" | IoError | undefined;
  /** Takes bytes, of which it keeps no reference to the guest's memory. */
  write(bytes: Uint8Array): void;
}

/** A sink over a Writable. */
export class WritableSink implements ByteSink {
  readonly #share = new HostShare();
  readonly [SHARES]: readonly HostShare[] = [this.#share];
  readonly #writable: Writable;
  readonly #change = new Condition(() => true);
  #failure: "closed" | IoError | undefined;

  constructor(writable: Writable) {
    this.#writable = writable;
    writable.on("error", (error) => this.#fail(new IoError(error.message)));
    writable.on("close", () => this.#fail("closed"));
  }

  #fail(failure: "closed" | IoError): void {
    this.#failure ??= failure;
    this.#change.notify();
  }

  watch(wake: () => void): () => void {
    return this.#change.watch(wake);
  }

  get room(): number {
    return Math.max(0, BUFFER_BYTES - this.#share.bytes);
  }

  get isIdle(): boolean {
    return this.#share.bytes === 0;
  }

  get failure(): "closed" | IoError | undefined {
    return this.#failure;
  }

  write(bytes: Uint8Array): void {
    const taken = bytesOfPart(bytes);
    this.#share.add(taken);
    this.#writable.write(bytes, () => {
      this.#share.add(-taken);
      this.#change.notify();
    });
  }

  /** Ends the writable side. */
  end(): void {
    this.#failure ??= "closed";
    this.#writable.end();
    this.#change.notify();
  }
}

/**
 * Ready when a sink meets a condition, or accepts no further bytes. A class, because V8 gives an object literal with a
 * getter a hidden class of its own, which keeps all that the getter refers to until the next major collection (D144).
 */
class SinkReadiness implements Readiness {
  readonly kind = "event";
  readonly #sink: ByteSink;
  readonly #test: () => boolean;

  constructor(sink: ByteSink, test: () => boolean) {
    this.#sink = sink;
    this.#test = test;
  }

  get isReady(): boolean {
    return this.#sink.failure !== undefined || this.#test();
  }

  watch(wake: () => void): () => void {
    return this.#sink.watch(wake);
  }
}

/** An output-stream of a ByteSink. */
export class EventOutputStream implements Holding {
  get [SHARES](): readonly HostShare[] {
    return this.#sink[SHARES];
  }

  readonly #preview1: Preview1;
  readonly #sink: ByteSink;
  #flushing = false;

  constructor(preview1: Preview1, sink: ByteSink) {
    this.#preview1 = preview1;
    this.#sink = sink;
  }

  /** Ready when check-write returns a number above 0 or an error. */
  get #writable(): Readiness {
    return new SinkReadiness(this.#sink, () => this.#room > 0);
  }

  get #room(): number {
    if (this.#flushing && this.#sink.isIdle) this.#flushing = false;
    return this.#flushing ? 0 : this.#sink.room;
  }

  #requireOpen(): void {
    const { failure } = this.#sink;
    if (failure === "closed") closed();
    if (failure !== undefined) failed(failure);
  }

  checkWrite(): bigint {
    this.#requireOpen();
    return BigInt(this.#room);
  }

  /** Throws RangeError for more bytes than `checkWrite` permits. */
  write(contents: Uint8Array): void {
    this.#requireOpen();
    if (contents.length > this.#room) throw new RangeError("More bytes were written than check-write permits");
    if (contents.length > 0) this.#sink.write(contents.slice());
  }

  flush(): void {
    this.#requireOpen();
    this.#flushing = true;
  }

  blockingFlush(): void | Promise<void> {
    this.flush();
    const { failure, isIdle } = this.#sink;
    if (failure !== undefined || isIdle) return this.#requireOpen();
    return whenReady(new SinkReadiness(this.#sink, () => this.#sink.isIdle), () => this.#requireOpen());
  }

  blockingWriteAndFlush(contents: Uint8Array): void | Promise<void> {
    if (contents.length > MAX_BLOCKING_WRITE) {
      throw new RangeError(`At most ${MAX_BLOCKING_WRITE} bytes can be written and flushed at once`);
    }
    const hasRoom = () => this.#room >= contents.length;
    const written = this.#sink.failure !== undefined || hasRoom()
      ? this.write(contents)
      : whenReady(new SinkReadiness(this.#sink, hasRoom), () => this.write(contents));
    return whenThere(written, () => this.blockingFlush());
  }

  subscribe(): Pollable {
    return new Pollable(this.#preview1, this.#writable);
  }

  writeZeroes(length: bigint): void {
    if (length > BigInt(BUFFER_BYTES)) throw new RangeError("More bytes were written than check-write permits");
    this.write(new Uint8Array(Number(length)));
  }

  blockingWriteZeroesAndFlush(length: bigint): void | Promise<void> {
    if (length > BigInt(MAX_BLOCKING_WRITE)) {
      throw new RangeError(`At most ${MAX_BLOCKING_WRITE} bytes can be written and flushed at once`);
    }
    return this.blockingWriteAndFlush(new Uint8Array(Number(length)));
  }

  splice(source: ByteInput, length: bigint): bigint {
    const room = this.checkWrite();
    return this.#copy(source.read(length < room ? length : room));
  }

  blockingSplice(source: ByteInput, length: bigint): bigint | Promise<bigint> {
    return whenThere(
      whenReady(this.#writable, () => this.checkWrite()),
      (room) => whenThere(source.blockingRead(length < room ? length : room), (bytes) => this.#copy(bytes)),
    );
  }

  #copy(bytes: Uint8Array): bigint {
    this.write(bytes);
    return BigInt(bytes.length);
  }
}
