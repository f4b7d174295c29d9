/**
 * Streams and futures on the JavaScript side. In: channels that a component passes to JavaScript, and streams,
 * iterables and promises that JavaScript passes to a component. Out: ReadableStreams and promises, and channels. A
 * stream of bytes has chunks (Uint8Array); any other stream has elements.
 *
 * Invariant: a chunk is taken from a source only when the component asks for elements; a stream that JavaScript does
 * not read blocks its writer.
 */
import type { CallLimits } from "./call_limits.ts";
import type { HostEnd, Store } from "./component_instance.ts";
import { Channel, type ChannelType, COPY } from "./channel.ts";
import { HostBuffer } from "./host_buffer.ts";
import { Outcome, register } from "./host_streams.ts";

/** The number of elements that one read of a stream takes at most. */
const CHUNK = 65_536;

/** The value of JavaScript for a channel whose readable end a component passes on. */
export function hostForm(channel: Channel, store: Store): ReadableStream<unknown> | Promise<unknown> {
  return channel.type.kind === "stream" ? readableStream(channel, store) : promiseOf(channel, store);
}

function promiseOf(channel: Channel, store: Store): Promise<unknown> {
  const promise = new Promise((resolve, reject) => {
    const end: HostEnd = { isStream: false, fail: reject };
    const buffer = new HostBuffer(1);
    store.hostEnds.add(end);
    channel.copy(end, buffer, true, (reclaim) => reclaim(), (result) => {
      store.hostEnds.delete(end);
      if (result === COPY.COMPLETED) resolve(buffer.parts[0]?.[0]);
      else reject(new Error("The future was dropped without a value"));
    });
  });
  store.pumpSoon();
  // A promise that the program does not use must not end the process.
  promise.catch(() => {});
  return promise;
}

function readableStream(channel: Channel, store: Store): ReadableStream<unknown> {
  const bytes = channel.type.element?.kind === "u8";
  let end: HostEnd | undefined;
  const finish = () => {
    if (end !== undefined) store.hostEnds.delete(end);
    end = undefined;
  };
  const stream = new ReadableStream<unknown>({
    start(controller) {
      end = {
        isStream: true,
        fail: (reason) => {
          finish();
          controller.error(reason);
        },
      };
      store.hostEnds.add(end);
    },
    async pull(controller) {
      for (let taken = 0; taken === 0 && end !== undefined;) {
        taken = await readOnce(channel, end, store, (part) => enqueue(controller, part, bytes), () => {
          if (end === undefined) return;
          finish();
          controller.close();
        });
      }
    },
    cancel() {
      finish();
      channel.drop();
      store.pumpSoon();
    },
  }, { highWaterMark: 0 });
  register(stream, { channel, store, detach: finish });
  return stream;
}

function enqueue(controller: ReadableStreamDefaultController<unknown>, part: ArrayLike<unknown>, bytes: boolean): void {
  if (bytes) controller.enqueue(part);
  else for (let k = 0; k < part.length; k++) controller.enqueue(part[k]);
}

/**
 * Waits for elements of a channel. Returns their number. They are passed on as soon as they are written, because the
 * code that wrote them goes on before a promise is settled.
 */
function readOnce(
  channel: Channel,
  end: object,
  store: Store,
  take: (part: ArrayLike<unknown>) => void,
  onEnd: () => void,
): Promise<number> {
  return new Promise((resolve) => {
    const buffer = new HostBuffer(CHUNK);
    const done = (result: number) => {
      buffer.parts.forEach(take);
      if (result === COPY.DROPPED) onEnd();
      resolve(buffer.progress);
    };
    channel.copy(end, buffer, true, (reclaim) => {
      reclaim();
      done(COPY.COMPLETED);
    }, done);
    store.pumpSoon();
  });
}

/** A value of JavaScript that is passed to a component as a stream or future. */
export interface Source {
  /** The channel whose readable end the component gets. */
  readonly channel: Channel;
  /** Begins to pass elements on: the value belongs to the component. */
  start(): void;
  /** Leaves the value to JavaScript, as it was; called in place of `start`. */
  release(): void;
}

/** The source for a value of JavaScript. Throws TypeError if the value is not a stream or future. */
export function sourceOf(value: unknown, type: ChannelType, store: Store): Source {
  const none = () => {};
  const { limits } = store;
  if (value instanceof Channel) return { channel: value, start: none, release: none };
  const channel = new Channel(type);
  if (type.kind === "future") {
    const start = value instanceof Outcome
      ? () => value.attach(channel, store)
      : () => store.during(writeFuture(value, channel));
    return { channel, start, release: none };
  }
  const { chunks, release = none } = chunksOf(value, type);
  return { channel, start: () => store.during(writeStream(chunks, channel)), release };

  async function writeFuture(given: unknown, to: Channel): Promise<void> {
    await writeOnce(to, [await given], store, limits);
  }

  async function writeStream(chunks: Chunks, to: Channel): Promise<void> {
    let ended: unknown;
    let isEnded = false;
    const end = () => {
      if (isEnded) return;
      isEnded = true;
      ended = chunks.return?.();
    };
    // A source that is waited for is cancelled at once, too.
    to.onDrop = end;
    try {
      while (await awaitReader(to, store)) {
        const next = await store.runFor(limits, () => chunks.next());
        if (next.done === true || await writeOnce(to, next.value, store, limits) === COPY.DROPPED) return;
        const turn = store.turns.next();
        if (turn !== undefined) await turn;
      }
    } finally {
      to.onDrop = undefined;
      to.drop();
      end();
      await ended;
    }
  }
}

type Chunks = AsyncIterator<ArrayLike<unknown>> | Iterator<ArrayLike<unknown>>;

/** Writes all elements, or as many as the reader takes. */
async function writeOnce(
  channel: Channel,
  elements: ArrayLike<unknown>,
  store: Store,
  limits: CallLimits | undefined,
): Promise<number> {
  const buffer = new HostBuffer(elements.length, elements);
  let result: number = COPY.COMPLETED;
  while (result === COPY.COMPLETED && buffer.progress < buffer.length) {
    result = await offer(channel, buffer, store, limits);
  }
  return result;
}

/** Waits until the reader asks for elements. Returns false if it never will. */
async function awaitReader(channel: Channel, store: Store): Promise<boolean> {
  return await offer(channel, new HostBuffer(0, []), store) !== COPY.DROPPED;
}

/** Offers a buffer to the reader. While the promise is pending, only the reader can continue. */
function offer(channel: Channel, buffer: HostBuffer, store: Store, limits?: CallLimits): Promise<number> {
  let resolve: (result: number) => void;
  const promise = new Promise<number>((accept) => resolve = accept);
  // Counted here, not after the promise: the component goes on as soon as its read is complete.
  const done = (result: number) => {
    store.hostCalls++;
    resolve(result);
  };
  store.hostCalls--;
  const copy = () =>
    channel.copy(buffer, buffer, false, (reclaim) => {
      if (buffer.progress < buffer.length) return;
      reclaim();
      done(COPY.COMPLETED);
    }, done);
  store.runFor(limits, copy);
  store.pumpSoon();
  return promise;
}

/** The chunks of a source: a typed array or an array as a whole, a stream or an iterable part by part. */
function chunksOf(value: unknown, type: ChannelType): { readonly chunks: Chunks; readonly release?: () => void } {
  const { element } = type;
  if (Array.isArray(value) || ArrayBuffer.isView(value)) {
    return { chunks: [value as unknown as ArrayLike<unknown>].values() };
  }
  const isBytes = element?.kind === "u8";
  const toChunk = (item: unknown): ArrayLike<unknown> => isBytes ? bytesOf(item) : [item];
  if (value instanceof ReadableStream) {
    const reader: ReadableStreamDefaultReader<unknown> = value.getReader();
    return { chunks: readerChunks(reader, toChunk), release: () => reader.releaseLock() };
  }
  if (typeof value === "object" && value !== null) {
    if (Symbol.asyncIterator in value) {
      return { chunks: mapped((value as AsyncIterable<unknown>)[Symbol.asyncIterator](), toChunk) };
    }
    if (Symbol.iterator in value) return { chunks: mapped((value as Iterable<unknown>)[Symbol.iterator](), toChunk) };
  }
  throw new TypeError(`Expected a ReadableStream or an iterable, not ${value === null ? "null" : typeof value}`);
}

function bytesOf(item: unknown): ArrayLike<unknown> {
  if (item instanceof Uint8Array) return item;
  if (ArrayBuffer.isView(item)) return new Uint8Array(item.buffer, item.byteOffset, item.byteLength);
  if (item instanceof ArrayBuffer) return new Uint8Array(item);
  if (typeof item === "number") return [item];
  throw new TypeError("A chunk of a stream of bytes must be a Uint8Array");
}

function mapped(
  items: AsyncIterator<unknown> | Iterator<unknown>,
  toChunk: (item: unknown) => ArrayLike<unknown>,
): Chunks {
  return {
    async next() {
      const { done, value } = await items.next();
      return done === true ? { done, value: undefined } : { done: false, value: toChunk(value) };
    },
    async return() {
      await items.return?.();
      return { done: true, value: undefined };
    },
  };
}

function readerChunks(
  reader: ReadableStreamDefaultReader<unknown>,
  toChunk: (item: unknown) => ArrayLike<unknown>,
): Chunks {
  return mapped({
    async next() {
      const { done, value } = await reader.read();
      return done === true ? { done, value: undefined } : { done: false, value };
    },
    async return() {
      await reader.cancel();
      return { done: true, value: undefined };
    },
  }, toChunk);
}
