/**
 * Streams and futures of host functions that are written in terms of this runtime. In: the ReadableStream of a stream
 * that a component passed to the host. Out: its elements, as soon as they are written, and futures for the outcome of
 * such streams. Invariant: an outcome that only the component's own streams decide does not count as a call of the host
 * in progress, so a component that waits for it forever is found to be deadlocked, and an idle one can be reset.
 */
import { ComponentError } from "../abi/traps.ts";
import type { CallLimits } from "./call_limits.ts";
import type { HostEnd, Store } from "./component_instance.ts";
import { type Channel, COPY } from "./channel.ts";
import { HostBuffer } from "./host_buffer.ts";

/** The number of elements that one read of a stream takes at most. */
const CHUNK = 65_536;

/** The value of a `future` that the host passes to a component: settled by the host, once. */
export class Outcome<T = unknown> {
  readonly #promise: Promise<T>;
  #resolve: (value: T) => void = () => {};
  #settled: { readonly value: T } | undefined;
  #write: ((value: T) => void) | undefined;

  constructor() {
    this.#promise = new Promise((resolve) => this.#resolve = resolve);
  }

  /** Settles the future; only the first value counts. */
  settle(value: T): void {
    if (this.#settled !== undefined) return;
    this.#settled = { value };
    this.#write?.(value);
    this.#resolve(value);
  }

  /** The value, for the host. */
  settled(): Promise<T> {
    return this.#promise;
  }

  /** Lets `channel`, whose readable end the component gets, have the value. */
  attach(channel: Channel, store: Store): void {
    const { limits } = store;
    this.#write = (value) => {
      const copy = () => channel.copy(this, new HostBuffer(1, [value]), false, (reclaim) => reclaim(), () => {});
      store.runFor(limits, copy);
      store.pumpSoon();
    };
    if (this.#settled !== undefined) this.#write(this.#settled.value);
  }
}

/** The channel behind a ReadableStream that nothing has read yet. */
interface Unread {
  readonly channel: Channel;
  readonly store: Store;
  /** Forgets the end that the ReadableStream would read. */
  detach(): void;
}

const UNREAD = new WeakMap<ReadableStream<unknown>, Unread>();

/** Makes the channel behind `stream` known to {@linkcode consume}. */
export function register(stream: ReadableStream<unknown>, unread: Unread): void {
  UNREAD.set(stream, unread);
}

/** Takes elements; a promise keeps the writer waiting. Throws to end the stream. */
export type Take = (part: Uint8Array) => void | Promise<void>;

/** Called at the end of a stream; a promise is work of the host that goes on. */
type Done = (error?: unknown) => void | Promise<void>;

/**
 * Passes all bytes of `stream` to `take`, each part before the write that made it is complete. `done` is called once:
 * at the end of the stream, or with the error that `take` threw or that ended the component.
 */
export function consume(stream: ReadableStream<Uint8Array>, take: Take, done: Done): void {
  const unread = stream.locked ? undefined : UNREAD.get(stream);
  if (unread === undefined) {
    readAll(stream, take).then(() => done(), done);
    return;
  }
  UNREAD.delete(stream);
  unread.detach();
  new Consumer(unread.channel, unread.store, take, done).read();
}

async function readAll(stream: ReadableStream<Uint8Array>, take: Take): Promise<void> {
  const reader = stream.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) await take(next.value);
  } catch (error) {
    await reader.cancel(error);
    throw error;
  }
}

/** Ends `stream` without reading it. */
export function discard(stream: ReadableStream<Uint8Array>): void {
  stream.cancel().catch(() => {});
}

/** The reader of a channel. */
class Consumer implements HostEnd {
  readonly isStream = false;
  readonly #channel: Channel;
  readonly #store: Store;
  readonly #take: Take;
  readonly #done: Done;
  /** The limits of the call that passed the stream on. */
  readonly #limits: CallLimits | undefined;
  #ended = false;
  #reading = false;
  #again = false;

  constructor(channel: Channel, store: Store, take: Take, done: Done) {
    this.#channel = channel;
    this.#store = store;
    this.#take = take;
    this.#done = done;
    this.#limits = store.limits;
    store.hostEnds.add(this);
  }

  fail(reason: unknown): void {
    if (!this.#ended) this.#end(reason);
  }

  #end(error?: unknown): void {
    this.#ended = true;
    this.#store.hostEnds.delete(this);
    const closing = this.#done(error);
    if (closing instanceof Promise) this.#store.during(closing);
  }

  /** Waits for elements, and takes those that are there; does not nest when they come at once. */
  read(): void {
    this.#again = true;
    if (this.#reading) return;
    this.#reading = true;
    while (this.#again && !this.#ended) {
      this.#again = false;
      this.#copy();
    }
    this.#reading = false;
    this.#store.pumpSoon();
  }

  #copy(): void {
    const buffer = new HostBuffer(CHUNK);
    this.#channel.copy(this, buffer, true, (reclaim) => {
      reclaim();
      this.#arrived(buffer, COPY.COMPLETED);
    }, (result) => this.#arrived(buffer, result));
  }

  #arrived({ parts }: HostBuffer, result: number): void {
    if (this.#ended) return;
    try {
      const takeAll = () => parts.map((part) => this.#take(part as Uint8Array));
      const waiting = this.#store.runFor(this.#limits, takeAll).filter((taken) => taken instanceof Promise);
      if (waiting.length > 0) return this.#wait(Promise.all(waiting), result);
    } catch (error) {
      return this.#break(error);
    }
    this.#continue(result);
  }

  #continue(result: number): void {
    if (result === COPY.DROPPED) this.#end();
    else this.read();
  }

  #break(error: unknown): void {
    // Other errors are failures of the host, which end the component.
    if (!(error instanceof ComponentError)) this.#store.trapped ??= { error };
    this.#end(error);
    this.#channel.drop();
    this.#store.pumpSoon();
  }

  /** Waits for a slow receiver. */
  #wait(taken: Promise<unknown>, result: number): void {
    this.#store.during(taken.then(() => {
      if (!this.#ended) this.#continue(result);
    }, (error: unknown) => {
      if (!this.#ended) this.#break(error);
    }));
  }
}
