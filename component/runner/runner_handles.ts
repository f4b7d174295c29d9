/**
 * The handles of one instance in the runner's process. In: objects of the component's resources, and numbers of objects
 * of the program. Out: numbers, and stand-ins for the program's objects. Invariant: a stand-in that the component drops
 * is reported to the program, once.
 */
import type { ExtensionServices } from "@waft/engine/internal/runner/service_types";
import type { PayloadReader, PayloadWriter } from "@waft/engine/internal/runner/values";
import type { ChannelType, HandleType, ResourceType, ValType } from "../model/types.ts";
import { NOTICE, PART } from "./operations.ts";
import { readPart, writePart } from "./parts.ts";
import { type Handle, type HandleTable, SIDE, ValueCodec } from "./values.ts";

/** An object of the program. */
class ProgramObject {
  readonly id: number;
  readonly #dropped: () => void;

  constructor(id: number, dropped: () => void) {
    this.id = id;
    this.#dropped = dropped;
  }

  [Symbol.dispose](): void {
    this.#dropped();
  }
}

/** A stream or future of the component that the program reads. */
interface Sent {
  readonly type: ChannelType<ValType>;
  readonly next: () => Promise<{ done?: boolean | undefined; value?: unknown }>;
  readonly cancel: () => Promise<void>;
}

/** A stream or future of the program, while a part of it is awaited. */
interface Received {
  readonly type: ChannelType<ValType>;
  resolve: (part: { readonly value: unknown } | undefined) => void;
  reject: (reason: Error) => void;
}

export class RunnerHandles implements HandleTable {
  readonly codec: ValueCodec;
  readonly #notify: (kind: number, id: number) => void;
  /** Resources of the component that the program has. */
  readonly #objects = new Map<number, object>();
  readonly #sent = new Map<number, Sent>();
  readonly #received = new Map<number, Received>();
  /** Resources that the request has passed as owned. */
  #moved: object[] = [];
  #next = 1;

  constructor(services: ExtensionServices, instance: number) {
    this.#notify = (kind, id) => services.notify(instance, (writer) => void writer.u8(kind).u32(id));
    this.codec = new ValueCodec(this, false);
  }

  nameOf(_type: HandleType<ResourceType>, value: unknown): Handle {
    if (value instanceof ProgramObject) return { side: SIDE.PROGRAM, id: value.id };
    const id = this.#nextNumber();
    this.#objects.set(id, value as object);
    return { side: SIDE.RUNNER, id };
  }

  objectOf({ kind }: HandleType<ResourceType>, { side, id }: Handle): object {
    if (side === SIDE.PROGRAM) return new ProgramObject(id, () => this.#notify(NOTICE.DROPPED, id));
    const object = this.#objects.get(id);
    if (object === undefined) throw new TypeError("The resource has been passed on or dropped");
    if (kind === "own") {
      this.#objects.delete(id);
      this.#moved.push(object);
    }
    return object;
  }

  /** Runs `read`, and returns the resources that it has read as owned. */
  moving<T>(read: () => T): { readonly value: T; readonly moved: readonly object[] } {
    const before = this.#moved;
    const moved: object[] = this.#moved = [];
    try {
      return { value: read(), moved };
    } finally {
      this.#moved = before;
    }
  }

  /** Disposes of a resource of the component. */
  drop(id: number): void {
    const object = this.#objects.get(id);
    this.#objects.delete(id);
    if (object !== undefined) dispose(object);
  }

  send(type: ChannelType<ValType>, value: unknown): number {
    const id = this.#nextNumber();
    if (type.kind === "future") {
      this.#sent.set(id, {
        type,
        next: async () => ({ value: await (value as Promise<unknown>) }),
        cancel: async () => {},
      });
    } else {
      const reader = (value as ReadableStream<unknown>).getReader();
      this.#sent.set(id, { type, next: () => reader.read(), cancel: () => reader.cancel() });
    }
    return id;
  }

  /** The next part of a stream or future that the program reads, as a function that writes it. */
  async pull(id: number): Promise<(writer: PayloadWriter) => void> {
    const sent = this.#sent.get(id);
    if (sent === undefined) throw new Error("The stream has ended");
    const { done, value } = await sent.next().catch((error: unknown) => {
      this.#sent.delete(id);
      throw error;
    });
    if (done === true || sent.type.kind === "future") this.#sent.delete(id);
    if (done === true) return (writer) => void writer.u8(PART.END);
    return (writer) => writePart(this.codec, writer.u8(PART.VALUE), sent.type, value);
  }

  async cancel(id: number): Promise<void> {
    const sent = this.#sent.get(id);
    this.#sent.delete(id);
    await sent?.cancel();
  }

  receive(type: ChannelType<ValType>, id: number): unknown {
    const next = () =>
      new Promise<{ readonly value: unknown } | undefined>((resolve, reject) => {
        this.#received.set(id, { type, resolve, reject });
        this.#notify(NOTICE.WANTED, id);
      });
    if (type.kind === "future") return next().then((part) => part?.value);
    return new ReadableStream<unknown>({
      pull: async (controller) => {
        const part = await next();
        if (part === undefined) controller.close();
        else controller.enqueue(part.value);
      },
      cancel: () => {
        this.#received.delete(id);
        this.#notify(NOTICE.UNWANTED, id);
      },
    }, { highWaterMark: 0 });
  }

  /** Takes a part of a stream or future of the program. */
  supply(id: number, reader: PayloadReader): void {
    const received = this.#received.get(id);
    if (received === undefined) return; // the component has stopped reading meanwhile
    this.#received.delete(id);
    const state = reader.u8();
    if (state === PART.ERROR) received.reject(new Error(reader.text()));
    else if (state === PART.END) received.resolve(undefined);
    else received.resolve({ value: readPart(this.codec, reader, received.type) });
  }

  /** Ends all handles, after a reset of the instance. */
  end(): void {
    this.#objects.clear();
    this.#sent.clear();
    for (const { reject } of this.#received.values()) reject(new Error("The instance has been reset or closed"));
    this.#received.clear();
  }

  #nextNumber(): number {
    while (this.#objects.has(this.#next) || this.#sent.has(this.#next)) this.#next = this.#next % 0xffff_ffff + 1;
    const id = this.#next;
    this.#next = this.#next % 0xffff_ffff + 1;
    return id;
  }
}

/** Disposes of a resource, unless it is gone already. */
export function dispose(object: object): void {
  (object as { [Symbol.dispose]?: () => void })[Symbol.dispose]?.();
}
