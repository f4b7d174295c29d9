/**
 * wasi:io of WASI 0.2: pollables, streams, errors. In: descriptors of preview 1. Out: the classes of the interfaces, in
 * jco's form. Invariant: a read that must not block asks first whether the descriptor is ready; where waits leave the
 * thread to the event loop, so do those for pipes and terminals, as promises.
 */
import { clearTimeout, setTimeout } from "node:timers";
import { ComponentError } from "../abi/traps.ts";
import { CHUNK_BYTES, type Preview1, READY_BYTES, type Subscription } from "./preview1.ts";
import { type Readiness, Signal, whenThere } from "./readiness.ts";

/** A descriptor that several streams and a resource share: it is closed when the last of them is dropped. */
export class SharedDescriptor {
  readonly fd: number;
  readonly #preview1: Preview1;
  readonly #keep: boolean;
  #users = 0;

  /** `keep` leaves the descriptor open. */
  constructor(preview1: Preview1, fd: number, keep = false) {
    this.#preview1 = preview1;
    this.fd = fd;
    this.#keep = keep;
  }

  use(): this {
    this.#users++;
    return this;
  }

  release(): void {
    if (--this.#users === 0 && !this.#keep) this.#preview1.closeDescriptor(this.fd);
  }
}

/** wasi:io/error. */
export class IoError {
  readonly #code: string;

  constructor(code: string) {
    this.#code = code;
  }

  /** The code of wasi:filesystem, for filesystem-error-code. */
  get code(): string {
    return this.#code;
  }

  toDebugString(): string {
    return this.#code;
  }
}

/** An event that a pollable waits for, of the system or of the event loop. */
type Event = Subscription | Readiness;

/** The greatest delay of a timer, and the polling interval of a descriptor, in milliseconds. */
const MAX_TIMER_MS = 0x7fff_ffff;
const DESCRIPTOR_MS = 5;

/** A long list may name one pollable many times: the limits of the call are checked after so many. */
const POLLABLES_PER_CHECK = 1024;

/** wasi:io/poll. */
export class Pollable {
  readonly #preview1: Preview1;
  readonly #awaited: Event | undefined;
  readonly #dropped = new Signal();
  #isDropped = false;

  /** Without `awaited` it is always ready. */
  constructor(preview1: Preview1, awaited: Event | undefined) {
    this.#preview1 = preview1;
    this.#awaited = awaited;
  }

  ready(): boolean {
    const awaited = this.#awaited;
    if (awaited === undefined) return true;
    if (awaited.kind === "event") return awaited.isReady;
    if (awaited.kind === "clock") return this.#preview1.time(1) >= awaited.until;
    return this.#preview1.isReady(awaited.fd, awaited.kind === "write");
  }

  block(): void | Promise<void> {
    return whenThere(Pollable.poll(this.#preview1, [this]), () => {});
  }

  /**
   * Waits until at least one of `list` is ready; returns the indices of those that are. Blocks the thread if nothing
   * in `list` needs the event loop, and unless the guest's calls may wait there.
   */
  static poll(preview1: Preview1, list: readonly Pollable[]): Uint32Array | Promise<Uint32Array> {
    if (list.length === 0) throw new ComponentError("poll of an empty list");
    const inEventLoop = preview1.waitsInEventLoop || list.some((pollable) => pollable.#awaited?.kind === "event");
    preview1.chargeSubscriptions(list.length);
    const isReady = (pollable: Pollable, k: number) => {
      if (k % POLLABLES_PER_CHECK === 0) preview1.chargeSubscriptions(0);
      return pollable.ready();
    };
    for (;;) {
      const ready = list.flatMap((pollable, k) => isReady(pollable, k) ? [k] : []);
      if (ready.length > 0) return Uint32Array.from(ready);
      if (inEventLoop) return Pollable.#change(list).then(() => Pollable.poll(preview1, list));
      preview1.poll(list.map((pollable) => pollable.#awaited as Subscription));
    }
  }

  /** Waits until one of `list` may have become ready. Rejects once one has been dropped, as a reset does. */
  static #change(list: readonly Pollable[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const stops: (() => void)[] = [];
      const wake = () => {
        for (const stop of stops) stop();
        if (list.some((pollable) => pollable.#isDropped)) reject(new Error("The pollable has been dropped"));
        else resolve();
      };
      for (const pollable of list) stops.push(pollable.#dropped.watch(wake), pollable.#watch(wake));
    });
  }

  #watch(wake: () => void): () => void {
    const awaited = this.#awaited;
    if (awaited === undefined) return () => {};
    if (awaited.kind === "event") return awaited.watch(wake);
    const delay = awaited.kind === "clock"
      ? Math.min(Math.ceil(Number(awaited.until - this.#preview1.time(1)) / 1e6), MAX_TIMER_MS)
      : DESCRIPTOR_MS;
    const timer = setTimeout(wake, delay);
    return () => clearTimeout(timer);
  }

  [Symbol.dispose](): void {
    this.#isDropped = true;
    this.#dropped.notify();
  }
}

/** Runs `action`; an error becomes that of a stream. */
function streaming<T>(action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (!(error instanceof ComponentError) || typeof error.payload !== "string") throw error;
    if (error.payload === "pipe") throw new ComponentError({ tag: "closed" });
    throw new ComponentError({ tag: "last-operation-failed", val: new IoError(error.payload) });
  }
}

export function closed(): never {
  throw new ComponentError({ tag: "closed" });
}

export function lengthOf(length: bigint): number {
  return Number(length < BigInt(CHUNK_BYTES) ? length : BigInt(CHUNK_BYTES));
}

/** wasi:io/streams input-stream. */
export class InputStream {
  readonly #preview1: Preview1;
  readonly #descriptor: SharedDescriptor;
  #offset: bigint | undefined;

  /** `offset` is the position in a file; without it the stream reads at the descriptor's own. */
  constructor(preview1: Preview1, descriptor: SharedDescriptor, offset?: bigint) {
    this.#preview1 = preview1;
    this.#descriptor = descriptor.use();
    this.#offset = offset;
  }

  read(length: bigint): Uint8Array {
    return streaming(() => {
      if (this.#offset === undefined && !this.#preview1.isReady(this.#descriptor.fd, false)) return new Uint8Array(0);
      return this.#read(length);
    });
  }

  blockingRead(length: bigint): Uint8Array | Promise<Uint8Array> {
    const read = () => streaming(() => this.#read(length));
    const blocks = this.#preview1.waitsInEventLoop && this.#offset === undefined && length > 0n;
    return blocks ? whenThere(this.subscribe().block(), read) : read();
  }

  #read(length: bigint): Uint8Array {
    if (length === 0n) return new Uint8Array(0);
    const bytes = this.#preview1.read(this.#descriptor.fd, lengthOf(length), this.#offset);
    if (bytes.length === 0) return closed();
    if (this.#offset !== undefined) this.#offset += BigInt(bytes.length);
    return bytes;
  }

  skip(length: bigint): bigint {
    return BigInt(this.read(length).length);
  }

  blockingSkip(length: bigint): bigint | Promise<bigint> {
    return whenThere(this.blockingRead(length), (bytes) => BigInt(bytes.length));
  }

  subscribe(): Pollable {
    const { fd } = this.#descriptor;
    return new Pollable(this.#preview1, this.#offset === undefined ? { kind: "read", fd } : undefined);
  }

  [Symbol.dispose](): void {
    this.#descriptor.release();
  }
}

/** An input stream of any kind. */
export interface ByteInput {
  read(length: bigint): Uint8Array;
  blockingRead(length: bigint): Uint8Array | Promise<Uint8Array>;
}

/** The position that an output stream writes at: the descriptor's own, an offset, or the end. */
type WritePosition = undefined | bigint | "end";

/** wasi:io/streams output-stream. */
export class OutputStream {
  readonly #preview1: Preview1;
  readonly #descriptor: SharedDescriptor;
  #position: WritePosition;

  constructor(preview1: Preview1, descriptor: SharedDescriptor, position?: WritePosition) {
    this.#preview1 = preview1;
    this.#descriptor = descriptor.use();
    this.#position = position;
  }

  checkWrite(): bigint {
    if (this.#position === undefined && !this.#preview1.isReady(this.#descriptor.fd, true)) return 0n;
    return BigInt(CHUNK_BYTES);
  }

  /** Also waits if the receiver takes less than `checkWrite` said, because others write to it. */
  write(contents: Uint8Array): void | Promise<void> {
    if (this.#preview1.waitsInEventLoop && this.#position === undefined) return this.#writeWhenReady(contents, 0);
    this.#write(contents);
  }

  /** Writes what follows the first `done` bytes of `contents`, each piece when the descriptor takes it. */
  #writeWhenReady(contents: Uint8Array, done: number): void | Promise<void> {
    while (done < contents.length) {
      const waiting = this.subscribe().block();
      if (waiting !== undefined) return waiting.then(() => this.#writeWhenReady(contents, done));
      this.#write(contents.subarray(done, done += READY_BYTES));
    }
  }

  #write(contents: Uint8Array): void {
    streaming(() => {
      const { fd } = this.#descriptor;
      const position = this.#position === "end" ? this.#preview1.status(fd).size : this.#position;
      this.#preview1.write(fd, contents, position);
      if (typeof this.#position === "bigint") this.#position += BigInt(contents.length);
    });
  }

  blockingWriteAndFlush(contents: Uint8Array): void | Promise<void> {
    return this.write(contents);
  }

  flush(): void {}

  blockingFlush(): void {}

  subscribe(): Pollable {
    const { fd } = this.#descriptor;
    return new Pollable(this.#preview1, this.#position === undefined ? { kind: "write", fd } : undefined);
  }

  /** Throws RangeError for more bytes than `checkWrite` permits. */
  writeZeroes(length: bigint): void | Promise<void> {
    if (length > BigInt(CHUNK_BYTES)) throw new RangeError(`At most ${CHUNK_BYTES} bytes can be written at once`);
    return this.write(new Uint8Array(Number(length)));
  }

  blockingWriteZeroesAndFlush(length: bigint): void | Promise<void> {
    return this.writeZeroes(length);
  }

  splice(source: ByteInput, length: bigint): bigint | Promise<bigint> {
    return this.#copy(source.read(length));
  }

  blockingSplice(source: ByteInput, length: bigint): bigint | Promise<bigint> {
    return whenThere(source.blockingRead(length), (bytes) => this.#copy(bytes));
  }

  #copy(bytes: Uint8Array): bigint | Promise<bigint> {
    return whenThere(this.write(bytes), () => BigInt(bytes.length));
  }

  [Symbol.dispose](): void {
    this.#descriptor.release();
  }
}
