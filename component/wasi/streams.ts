/**
 * wasi:io of WASI 0.2: pollables, streams, errors. In: descriptors of preview 1. Out: the classes of the interfaces, in
 * jco's form. Invariant: a read that must not block asks first whether the descriptor is ready.
 */
import { ComponentError } from "../abi/traps.ts";
import { CHUNK_BYTES, type Preview1, type Subscription } from "./preview1.ts";

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

/** wasi:io/poll. */
export class Pollable {
  readonly #preview1: Preview1;
  readonly #subscription: Subscription | undefined;

  /** Without a subscription it is always ready. */
  constructor(preview1: Preview1, subscription: Subscription | undefined) {
    this.#preview1 = preview1;
    this.#subscription = subscription;
  }

  ready(): boolean {
    const subscription = this.#subscription;
    if (subscription === undefined) return true;
    if (subscription.kind === "clock") return this.#preview1.time(1) >= subscription.until;
    return this.#preview1.isReady(subscription.fd, subscription.kind === "write");
  }

  block(): void {
    if (!this.ready()) this.#preview1.poll([this.#subscription!]);
  }

  /** Waits until at least one of `list` is ready; returns the indices of those that are. */
  static poll(preview1: Preview1, list: readonly Pollable[]): Uint32Array {
    if (list.length === 0) throw new ComponentError("poll of an empty list");
    for (;;) {
      const ready = list.flatMap((pollable, k) => pollable.ready() ? [k] : []);
      if (ready.length > 0) return Uint32Array.from(ready);
      preview1.poll(list.map((pollable) => pollable.#subscription!));
    }
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

function closed(): never {
  throw new ComponentError({ tag: "closed" });
}

function lengthOf(length: bigint): number {
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

  blockingRead(length: bigint): Uint8Array {
    return streaming(() => this.#read(length));
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

  blockingSkip(length: bigint): bigint {
    return BigInt(this.blockingRead(length).length);
  }

  subscribe(): Pollable {
    const { fd } = this.#descriptor;
    return new Pollable(this.#preview1, this.#offset === undefined ? { kind: "read", fd } : undefined);
  }

  [Symbol.dispose](): void {
    this.#descriptor.release();
  }
}

/** Where an output stream writes: the descriptor's own position, an offset, or the end. */
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

  write(contents: Uint8Array): void {
    streaming(() => {
      const { fd } = this.#descriptor;
      const position = this.#position === "end" ? this.#preview1.status(fd).size : this.#position;
      this.#preview1.write(fd, contents, position);
      if (typeof this.#position === "bigint") this.#position += BigInt(contents.length);
    });
  }

  blockingWriteAndFlush(contents: Uint8Array): void {
    this.write(contents);
  }

  flush(): void {}

  blockingFlush(): void {}

  subscribe(): Pollable {
    const { fd } = this.#descriptor;
    return new Pollable(this.#preview1, this.#position === undefined ? { kind: "write", fd } : undefined);
  }

  /** Throws RangeError for more bytes than `checkWrite` permits. */
  writeZeroes(length: bigint): void {
    if (length > BigInt(CHUNK_BYTES)) throw new RangeError(`At most ${CHUNK_BYTES} bytes can be written at once`);
    this.write(new Uint8Array(Number(length)));
  }

  blockingWriteZeroesAndFlush(length: bigint): void {
    this.writeZeroes(length);
  }

  splice(source: InputStream, length: bigint): bigint {
    return this.#copy(source.read(length));
  }

  blockingSplice(source: InputStream, length: bigint): bigint {
    return this.#copy(source.blockingRead(length));
  }

  #copy(bytes: Uint8Array): bigint {
    this.write(bytes);
    return BigInt(bytes.length);
  }

  [Symbol.dispose](): void {
    this.#descriptor.release();
  }
}
