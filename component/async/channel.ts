/**
 * Streams and futures (Canonical ABI: Buffer State, Stream State, Future State). A channel joins a readable and a
 * writable end; an end copies between a buffer of its own and that of the other end. Invariant: a buffer is used only
 * until its copy ends.
 */
import { trap } from "../abi/traps.ts";
import type { ValType } from "../model/types.ts";

export const COPY = { COMPLETED: 0, DROPPED: 1, CANCELLED: 2 } as const;

export type ChannelType = Extract<ValType, { kind: "stream" | "future" }>;

/** A place for elements: in the memory of an instance, or in JavaScript. */
export interface Buffer {
  readonly length: number;
  progress: number;
  /**
   * Whether its elements are values of JavaScript, and not in the form that components pass to each other.
   */
  readonly inHost: boolean;
  /** Takes the next `count` elements, for a buffer that is in JavaScript or not. */
  read(count: number, forHost: boolean): ArrayLike<unknown>;
  /** Stores elements after those stored before; they come from a buffer that is in JavaScript or not. */
  write(elements: ArrayLike<unknown>, fromHost: boolean): void;
}

/** Copies `count` elements. */
function transfer(from: Buffer, to: Buffer, count: number): void {
  to.write(from.read(count, to.inHost), from.inHost);
}

function remaining(buffer: Buffer): number {
  return buffer.length - buffer.progress;
}

type OnCopy = (reclaim: () => void) => void;
type OnDone = (result: number) => void;

interface Pending {
  readonly instance: object;
  readonly buffer: Buffer;
  readonly onCopy: OnCopy;
  readonly onDone: OnDone;
}

/** The part of a stream or future that both ends share. */
export class Channel {
  readonly type: ChannelType;
  dropped = false;
  /** Called when an end is dropped while no copy is in progress. */
  onDrop: (() => void) | undefined = undefined;
  #pending: Pending | undefined;

  constructor(type: ChannelType) {
    this.type = type;
  }

  /** Whether the copy that `buffer` waits for can still transfer elements. */
  isCopying(buffer: Buffer | undefined): boolean {
    return this.#pending !== undefined && this.#pending.buffer === buffer && remaining(this.#pending.buffer) > 0;
  }

  cancel(): void {
    this.#notify(COPY.CANCELLED);
  }

  drop(): void {
    if (this.dropped) return;
    this.dropped = true;
    if (this.#pending !== undefined) this.#notify(COPY.DROPPED);
    else this.onDrop?.();
  }

  #notify(result: number): void {
    const pending = this.#pending!;
    this.#pending = undefined;
    pending.onDone(result);
  }

  /** Begins a copy from or to `buffer`; `reads` tells which end asks. */
  copy(instance: object, buffer: Buffer, reads: boolean, onCopy: OnCopy, onDone: OnDone): void {
    if (this.dropped) return onDone(COPY.DROPPED);
    const pending = this.#pending;
    const next = { instance, buffer, onCopy, onDone };
    if (pending === undefined) {
      this.#pending = next;
      return;
    }
    if (instance === pending.instance && !isPlain(this.type.element)) {
      trap("cannot read from and write to a stream or future in the same instance, unless of numbers");
    }
    if (this.type.kind === "future") this.#copyFuture(pending, buffer, reads, onDone);
    else this.#copyStream(pending, next, reads);
  }

  #copyFuture(pending: Pending, buffer: Buffer, reads: boolean, onDone: OnDone): void {
    if (reads) transfer(pending.buffer, buffer, 1);
    else transfer(buffer, pending.buffer, 1);
    this.#notify(COPY.COMPLETED);
    onDone(COPY.COMPLETED);
  }

  #copyStream(pending: Pending, next: Pending, reads: boolean): void {
    const { buffer } = next;
    if (remaining(pending.buffer) > 0) {
      const count = Math.min(remaining(buffer), remaining(pending.buffer));
      if (remaining(buffer) > 0) {
        if (reads) transfer(pending.buffer, buffer, count);
        else transfer(buffer, pending.buffer, count);
        pending.onCopy(() => {
          this.#pending = undefined;
        });
      }
      next.onDone(COPY.COMPLETED);
    } else if (!reads && buffer.length === 0 && pending.buffer.length === 0) next.onDone(COPY.COMPLETED);
    else {
      this.#notify(COPY.COMPLETED);
      this.#pending = next;
    }
  }
}

const NUMBERS = new Set(["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f32", "f64"]);

function isPlain(element: ValType | undefined): boolean {
  return element === undefined || NUMBERS.has(element.kind);
}
