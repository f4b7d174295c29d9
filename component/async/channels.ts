/**
 * The ends of streams and futures in the tables of instances (Canonical ABI: canon {stream,future}.*). In: indices of
 * ends and ranges of memory. Out: the results of the built-ins. Invariant: a copy in progress keeps its end from being
 * dropped or passed on.
 */
import type { ElementCodec } from "../abi/generated.ts";
import { layoutOf } from "../abi/layout.ts";
import type { HandleCodec } from "../abi/runtime.ts";
import { trap } from "../abi/traps.ts";
import type { ValType } from "../model/types.ts";
import type { ComponentInstance } from "./component_instance.ts";
import { EVENT, Waitable } from "./entries.ts";
import { type Buffer, Channel, type ChannelType, COPY } from "./channel.ts";
import { hostForm, type Source, sourceOf } from "./host_channels.ts";

/** The greatest number of elements of a buffer. */
const MAX_LENGTH = 2 ** 28 - 1;

/** The result of a built-in while a copy is in progress. */
const BLOCKED = -1;

/** Makes the codec of elements in one of the two forms. */
type CodecOf = (foreign: boolean) => ElementCodec;

/** A buffer in the memory of an instance. */
class GuestBuffer implements Buffer {
  readonly length: number;
  progress = 0;
  readonly inHost = false;
  readonly #codec: CodecOf | undefined;
  readonly #size: number;
  #pointer: number;

  constructor(codec: CodecOf | undefined, size: number, pointer: number, length: number) {
    this.#codec = codec;
    this.#size = size;
    this.#pointer = pointer;
    this.length = length;
  }

  read(count: number, forHost: boolean): ArrayLike<unknown> {
    const elements = this.#codec?.(!forHost).load(this.#pointer, count) ?? { length: count };
    this.#advance(count);
    return elements;
  }

  write(elements: ArrayLike<unknown>, fromHost: boolean): void {
    this.#codec?.(!fromHost).store(elements, this.#pointer);
    this.#advance(elements.length);
  }

  #advance(count: number): void {
    this.#pointer += count * this.#size;
    this.progress += count;
  }
}

const COPY_STATE = { IDLE: 1, COPYING: 2, CANCELLING: 3, DONE: 4 } as const;

/** The bytes of the host that an end counts: those of its channel, and of the objects of a source in JavaScript. */
const END_BYTES = 512;

/** One end of a channel in the table of an instance. */
class ChannelEnd extends Waitable {
  readonly hostBytes: number = END_BYTES;
  readonly channel: Channel;
  readonly readable: boolean;
  state: number = COPY_STATE.IDLE;
  /** The buffer of the copy in progress. */
  buffer: Buffer | undefined = undefined;

  constructor(channel: Channel, readable: boolean) {
    super();
    this.channel = channel;
    this.readable = readable;
  }

  get copying(): boolean {
    return this.state === COPY_STATE.COPYING || this.state === COPY_STATE.CANCELLING;
  }

  override drop(): void {
    const { type } = this.channel;
    if (!this.readable && type.kind === "future" && this.state !== COPY_STATE.DONE) {
      trap("cannot drop the writable end of a future before it has been written");
    }
    if (this.copying) trap(`cannot drop a busy ${type.kind}`);
    this.channel.drop();
    super.drop();
  }

  override abandon(): void {
    this.channel.drop();
  }
}

/** Whether two channel types are equal; nodes of one component are shared. */
function sameType(a: ChannelType, b: ChannelType): boolean {
  return a === b || (a.kind === b.kind && sameValue(a.element, b.element));
}

/** Whether two value types are equal; resource types are compared by identity. */
export function sameValue(a: ValType | undefined, b: ValType | undefined): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined || a.kind !== b.kind) return false;
  return stable(a) === stable(b);
}

const RESOURCE_NUMBERS = new WeakMap<object, number>();
let resourceNumbers = 0;

/** A text that two value types share if they are structurally equal. */
function stable(type: ValType): string {
  return JSON.stringify(type, (key, value: unknown) => {
    if (key !== "id" || typeof value !== "object" || value === null) return value;
    let number = RESOURCE_NUMBERS.get(value);
    if (number === undefined) RESOURCE_NUMBERS.set(value, number = ++resourceNumbers);
    return number;
  });
}

/** The end at `index`, which must be of `type` and readable or writable. */
function endAt(instance: ComponentInstance, type: ChannelType, index: number, readable: boolean): ChannelEnd {
  const end = instance.handles.get(index);
  if (!(end instanceof ChannelEnd) || end.readable !== readable || end.channel.type.kind !== type.kind) {
    trap(`handle index is not that of a ${readable ? "readable" : "writable"} end of a ${type.kind}`);
  }
  if (!sameType(end.channel.type, type)) trap(`the ${type.kind} has another type`);
  return end;
}

/** stream.new and future.new. */
export function newChannel(instance: ComponentInstance, type: ChannelType): bigint {
  instance.requireLeave();
  const channel = new Channel(type);
  const readable = instance.handles.add(new ChannelEnd(channel, true));
  const writable = instance.handles.add(new ChannelEnd(channel, false));
  return BigInt(readable) | (BigInt(writable) << 32n);
}

/** The options of a built-in that copies elements, and their layout. */
interface CopyOptions {
  readonly isAsync: boolean;
  readonly codec: CodecOf | undefined;
  /** The size of an element, and its alignment. */
  readonly size: number;
  readonly align: number;
  /** The length of the memory in bytes. */
  memoryBytes(): number;
}

function eventCode(type: ChannelType, readable: boolean): number {
  if (type.kind === "stream") return readable ? EVENT.STREAM_READ : EVENT.STREAM_WRITE;
  return readable ? EVENT.FUTURE_READ : EVENT.FUTURE_WRITE;
}

/** {stream,future}.{read,write}: returns the result, BLOCKED, or a suspension. */
export function copyElements(
  instance: ComponentInstance,
  type: ChannelType,
  readable: boolean,
  options: CopyOptions,
  index: number,
  pointer: number,
  length: number,
): number {
  instance.requireLeave();
  const end = endAt(instance, type, index, readable);
  if (end.state !== COPY_STATE.IDLE) trap(`cannot use a busy or finished ${type.kind}`);
  if (end.set !== undefined && !options.isAsync) trap("waitable in a waitable set cannot be used synchronously");
  if (length > MAX_LENGTH) trap("buffer is too long");
  if (type.element !== undefined && length > 0) {
    if (pointer % options.align !== 0) trap("buffer is not aligned");
    if (pointer + length * options.size > options.memoryBytes()) trap("buffer is out of bounds of the memory");
  }
  const buffer = new GuestBuffer(options.codec, options.size, pointer, length);
  const code = eventCode(type, readable);
  const finished = (result: number): boolean =>
    result === COPY.DROPPED || (type.kind === "future" && result === COPY.COMPLETED);
  const report = (result: number, reclaim?: () => void) =>
    end.setPending(() => {
      reclaim?.();
      end.state = finished(result) ? COPY_STATE.DONE : COPY_STATE.IDLE;
      return [code, index, type.kind === "future" ? result : result | (buffer.progress << 4)];
    });
  end.state = COPY_STATE.COPYING;
  end.buffer = buffer;
  end.channel.copy(
    instance,
    buffer,
    readable,
    (reclaim) => report(COPY.COMPLETED, reclaim),
    (result) => report(result),
  );
  return awaitCopy(instance, end, options.isAsync);
}

function awaitCopy(instance: ComponentInstance, end: ChannelEnd, isAsync: boolean): number {
  const take = () => end.takePending()[2];
  if (end.hasPending) return take();
  return isAsync ? BLOCKED : end.waitForPending(instance.store.thread, take);
}

/** {stream,future}.cancel-{read,write}. */
export function cancelCopy(
  instance: ComponentInstance,
  type: ChannelType,
  readable: boolean,
  isAsync: boolean,
  index: number,
): number {
  instance.requireLeave();
  const end = endAt(instance, type, index, readable);
  if (end.state !== COPY_STATE.COPYING || end.hasSyncWaiter) trap(`no ${readable ? "read" : "write"} is in progress`);
  if (end.set !== undefined && !isAsync) trap("waitable in a waitable set cannot be used synchronously");
  end.state = COPY_STATE.CANCELLING;
  // A copy of some elements is reported as cancelled, together with their number: the suite's scripts require it.
  if (!end.hasPending || end.channel.isCopying(end.buffer)) end.channel.cancel();
  return awaitCopy(instance, end, isAsync);
}

/** {stream,future}.drop-{readable,writable}. */
export function dropEnd(instance: ComponentInstance, type: ChannelType, readable: boolean, index: number): void {
  instance.requireLeave();
  const end = endAt(instance, type, index, readable);
  end.drop();
  instance.handles.remove(index);
}

/** Lifts readable ends to channels and lowers channels to readable ends. */
export function channelCodec(
  type: ChannelType,
  instance: ComponentInstance,
  foreign: boolean,
): HandleCodec {
  const lift = (index: number): Channel => {
    const end = endAt(instance, type, index, true);
    if (end.state !== COPY_STATE.IDLE) trap(`cannot lift a busy or finished ${type.kind}`);
    if (end.set !== undefined) trap(`cannot transfer a ${type.kind} that is in a waitable set`);
    instance.handles.remove(index);
    return end.channel;
  };
  const lower = (channel: unknown): number => {
    return instance.handles.add(new ChannelEnd(channel as Channel, true));
  };
  if (foreign) return { lift, lower };
  const { store } = instance;
  return {
    lift: (index) => hostForm(lift(index), store),
    lower: (value) => {
      const source = sourceOf(value, type, store);
      const index = lower(source.channel);
      const passing = store.passing.at(-1);
      if (passing === undefined) source.start();
      else passing.push({ undo: () => giveBack(instance, index, source), complete: source.start });
      return index;
    },
  };
}

/** Takes the end at `index` from an instance that has not seen it, and leaves its source to JavaScript, unread. */
function giveBack(instance: ComponentInstance, index: number, source: Source): void {
  instance.handles.remove(index);
  source.release();
}

/** The codec of elements and their layout, for a memory. */
export function copyLayout(type: ChannelType, pointer: "i32" | "i64"): { size: number; align: number } {
  return type.element === undefined ? { size: 0, align: 1 } : layoutOf(type.element, pointer);
}
