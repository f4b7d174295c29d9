/**
 * The handles of one instance on the side of the program. In: objects, streams and futures of the program, and the
 * numbers by which the runner names them. Out: numbers, and stand-ins for what the runner has. Invariant: the runner
 * may be hostile. It reaches only objects that this instance has been given, as resources of the type that they were
 * given as, until the component drops them or passes them on.
 */
import { inWords } from "@waft/engine/internal/base/arguments";
import type { Connection } from "@waft/engine/internal/runner/connection";
import { KIND, ProtocolError } from "@waft/engine/internal/runner/protocol";
import { PayloadReader, type PayloadWriter } from "@waft/engine/internal/runner/values";
import type { ChannelType, HandleType, ResourceId, ResourceType, ValType } from "../model/types.ts";
import { NOTICE, OPERATION, PART } from "./operations.ts";
import { readPart, writePart } from "./parts.ts";
import { type Handle, type HandleTable, SIDE, ValueCodec } from "./values.ts";

/** A resource of a component in a runner. */
export class RunnerResource {
  readonly #drop: () => Promise<void>;

  /** @internal */
  constructor(drop: () => Promise<void>) {
    this.#drop = drop;
  }

  /**
   * Disposes of the resource, unless it has been passed on as owned: the component's destructor runs. It is disposed of
   * some time after the program has lost it, too.
   */
  async drop(): Promise<void> {
    await this.#drop();
  }

  /** The same as {@linkcode drop}. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#drop();
  }
}

/** The number of a component's resource while the program has it. */
interface Held {
  readonly id: number;
  readonly resource: ResourceId;
  readonly owner: ProgramHandles;
  /** A reset of the instance ends its resources. */
  readonly era: number;
}

const HELD = new WeakMap<RunnerResource, Held>();

/** Disposes of resources that the program lost. */
const LOST = new FinalizationRegistry<Held>(({ owner, id, era }) => owner.dropLost(id, era));

/** An object of the program that the component has a handle of. */
interface Lent {
  readonly object: object;
  readonly resource: ResourceId;
}

/** A stream or future of the program that the component reads. */
interface Source {
  readonly type: ChannelType<ValType>;
  next(): Promise<{ done?: boolean | undefined; value?: unknown }>;
  stop(): void;
}

export class ProgramHandles implements HandleTable {
  readonly codec: ValueCodec;
  readonly #connection: Connection;
  readonly #instance: number;
  readonly #hostResources: ReadonlySet<ResourceId>;
  readonly #lent = new Map<number, Lent>();
  readonly #sources = new Map<number, Source>();
  /** Numbers of objects that are lent for the call that is being written. */
  #borrows: number[] = [];
  #next = 1;
  #era = 0;

  constructor(connection: Connection, instance: number, hostResources: ReadonlySet<ResourceId>) {
    this.#connection = connection;
    this.#instance = instance;
    this.#hostResources = hostResources;
    this.codec = new ValueCodec(this, true);
  }

  /** Writes the arguments of a call; returns a function that takes back the objects that were lent for it. */
  lending(write: () => void): () => void {
    const before = this.#borrows;
    const borrows: number[] = this.#borrows = [];
    try {
      write();
    } catch (error) {
      borrows.forEach((id) => this.#lent.delete(id));
      throw error;
    } finally {
      this.#borrows = before;
    }
    return () => borrows.forEach((id) => this.#lent.delete(id));
  }

  nameOf({ kind, resource }: HandleType<ResourceType>, value: unknown): Handle {
    if (this.#hostResources.has(resource.id)) {
      if (typeof value !== "object" || value === null) throw new TypeError("Expected a resource, which is an object");
      const id = this.#nextNumber(this.#lent);
      this.#lent.set(id, { object: value, resource: resource.id });
      if (kind === "borrow") this.#borrows.push(id);
      return { side: SIDE.PROGRAM, id };
    }
    const held = value instanceof RunnerResource ? HELD.get(value) : undefined;
    if (held === undefined || held.owner !== this || held.resource !== resource.id || held.era !== this.#era) {
      throw new TypeError("Expected a resource of this instance; it may have been passed on, dropped or reset");
    }
    if (kind === "own") this.#forget(value as RunnerResource);
    return { side: SIDE.RUNNER, id: held.id };
  }

  objectOf({ kind, resource }: HandleType<ResourceType>, { side, id }: Handle): object {
    const isHost = this.#hostResources.has(resource.id);
    if (side !== (isHost ? SIDE.PROGRAM : SIDE.RUNNER)) throw new ProtocolError("a handle of the other side");
    if (isHost) {
      const lent = this.#lent.get(id);
      if (lent === undefined || lent.resource !== resource.id) {
        throw new ProtocolError(`a handle ${id} that its component does not have`);
      }
      if (kind === "own") this.#lent.delete(id);
      return lent.object;
    }
    const held: Held = { id, resource: resource.id, owner: this, era: this.#era };
    const made = new RunnerResource(async () => {
      if (!HELD.has(made)) return;
      this.#forget(made);
      if (held.era === this.#era) await this.#request(OPERATION.DROP, (writer) => void writer.u32(id));
    });
    HELD.set(made, held);
    LOST.register(made, held, made);
    return made;
  }

  #forget(resource: RunnerResource): void {
    HELD.delete(resource);
    LOST.unregister(resource);
  }

  /** Disposes of a resource whose object was collected. */
  dropLost(id: number, era: number): void {
    if (era !== this.#era || this.#connection.failure !== undefined) return;
    this.#request(OPERATION.DROP, (writer) => void writer.u32(id)).catch(() => {}); // the resource ends with the runner
  }

  send(type: ChannelType<ValType>, value: unknown): number {
    const id = this.#nextNumber(this.#sources);
    this.#sources.set(id, type.kind === "future" ? futureSource(type, value) : streamSource(type, value));
    return id;
  }

  receive(type: ChannelType<ValType>, id: number): unknown {
    const next = async (): Promise<{ readonly value: unknown } | undefined> => {
      const answer = await this.#request(OPERATION.PULL, (writer) => void writer.u32(id));
      return this.#connection.reading(() => {
        const reader = new PayloadReader(answer);
        const hasValue = reader.u8() === PART.VALUE;
        return hasValue ? { value: readPart(this.codec, reader, type) } : undefined;
      });
    };
    if (type.kind === "future") {
      const promise = next().then((part) => part?.value);
      promise.catch(() => {}); // a future that the program does not use must not end the process
      return promise;
    }
    return new ReadableStream<unknown>({
      pull: async (controller) => {
        const part = await next();
        if (part === undefined) controller.close();
        else controller.enqueue(part.value);
      },
      cancel: async () => void await this.#request(OPERATION.CANCEL, (writer) => void writer.u32(id)),
    }, { highWaterMark: 0 });
  }

  /** Takes a notice of the runner. Throws ProtocolError for one about something that the component does not have. */
  notice(payload: Uint8Array): void {
    const reader = new PayloadReader(payload);
    const kind = reader.u8();
    const id = reader.u32();
    reader.end();
    if (kind === NOTICE.DROPPED) {
      const lent = this.#lent.get(id);
      if (lent === undefined) throw new ProtocolError(`the end of a handle ${id} that its component does not have`);
      this.#lent.delete(id);
      (lent.object as { [Symbol.dispose]?: () => void })[Symbol.dispose]?.();
      return;
    }
    const source = this.#sources.get(id);
    if (source === undefined) throw new ProtocolError(`a notice about stream ${id}, which its component does not have`);
    if (kind === NOTICE.UNWANTED) {
      this.#sources.delete(id);
      source.stop();
    } else if (kind === NOTICE.WANTED) void this.#supply(id, source);
    else throw new ProtocolError(`a notice of the unknown kind ${kind}`);
  }

  /** Sends the next part of a source. */
  async #supply(id: number, source: Source): Promise<void> {
    let write: (writer: PayloadWriter) => void;
    try {
      const { done, value } = await source.next();
      if (done === true) this.#sources.delete(id);
      write = (writer) => {
        writer.u8(done === true ? PART.END : PART.VALUE);
        if (done !== true) writePart(this.codec, writer, source.type, value);
      };
      await this.#request(OPERATION.SUPPLY, (writer) => write(writer.u32(id)));
    } catch (error) {
      this.#sources.delete(id);
      const message = error instanceof Error ? error.message : String(error);
      // A closed runner or instance needs no part any more.
      await this.#request(OPERATION.SUPPLY, (writer) => void writer.u32(id).u8(PART.ERROR).text(message))
        .catch(() => {});
    }
  }

  /** Ends all handles: the instance has been reset or closed. Objects that the component still had are disposed of. */
  end(): void {
    this.#era++;
    const lent = [...this.#lent.values()];
    this.#lent.clear();
    for (const source of this.#sources.values()) source.stop();
    this.#sources.clear();
    for (const { object } of lent) (object as { [Symbol.dispose]?: () => void })[Symbol.dispose]?.();
  }

  #request(operation: number, write: (writer: PayloadWriter) => void): Promise<Uint8Array> {
    return this.#connection.request(KIND.EXTENDED, operation, (writer) => write(writer.u32(this.#instance)));
  }

  #nextNumber(taken: ReadonlyMap<number, unknown>): number {
    while (taken.has(this.#next)) this.#next = this.#next % 0xffff_ffff + 1;
    const id = this.#next;
    this.#next = this.#next % 0xffff_ffff + 1;
    return id;
  }
}

function futureSource(type: ChannelType<ValType>, value: unknown): Source {
  return { type, next: async () => ({ value: await value }), stop: () => {} };
}

function streamSource(type: ChannelType<ValType>, value: unknown): Source {
  if (value instanceof ReadableStream) {
    const reader = (value as ReadableStream<unknown>).getReader();
    return { type, next: () => reader.read(), stop: () => void reader.cancel().catch(() => {}) };
  }
  const whole = value instanceof Uint8Array ? [value] : value; // one part, not a part for each byte
  const given = whole as Partial<AsyncIterable<unknown> & Iterable<unknown>> | null | undefined;
  const iterator = given?.[Symbol.asyncIterator]?.() ?? given?.[Symbol.iterator]?.();
  if (iterator === undefined || typeof value === "string") {
    throw new TypeError(`Expected a ReadableStream or an iterable, not ${inWords(value)}`);
  }
  return {
    type,
    next: async () => await iterator.next(),
    stop: () => void Promise.resolve(iterator.return?.()).catch(() => {}),
  };
}
