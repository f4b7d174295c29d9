/**
 * Global instances (specification, 4.2.9): a 16-byte cell outside the JavaScript heap, in the VM context of the
 * instance that defines the global, or in a separate block if the host created it.
 */
import type { Sharer } from "../../gc/references.ts";
import { topHeap } from "../../wasm/subtype.ts";
import { type GlobalType, HEAP, heapOf, isRef } from "../../wasm/types.ts";
import type { NativeRegion } from "../memory/native_region.ts";

export class Global {
  /** The type, closed (wasm/subtype.ts). */
  readonly type: GlobalType;
  readonly region: NativeRegion;
  readonly offset: number;
  /** The owner of the cell; the global keeps it alive. */
  readonly owner: unknown;
  /** Observes the values that JavaScript reads, for recordings. */
  watcher: { read(value: unknown): void } | undefined;

  constructor(type: GlobalType, region: NativeRegion, offset: number, owner: unknown) {
    this.type = type;
    this.region = region;
    this.offset = offset;
    this.owner = owner;
  }

  /** Marks the reference in the cell, if there is one. */
  markReferences(mark: (word: number, holder: Sharer) => void): void {
    if (!isRef(this.type.type)) return;
    const word = this.region.word(this.offset);
    if (word !== 0) mark(word, this);
  }

  /** Visits the reference in the cell, for the garbage-collected heap. */
  visitReferences(_range: unknown, word: (word: number) => void): void {
    this.markReferences(word);
  }

  keepAlive(other: Sharer): void {
    this.#retained.add(other);
  }

  keepsAlive(other: Sharer): boolean {
    return this.owner === other || this.#retained.has(other);
  }
  readonly #retained: Set<Sharer> = new Set();
  targets: Set<Sharer> | undefined;
  values: Set<object> | undefined;

  /** The instances and others that share its reference; none of a number or a function. */
  sharers(): Iterable<unknown> {
    if (!isRef(this.type.type) || topHeap(heapOf(this.type.type)) === HEAP.func) return [];
    return [this.owner, ...this.#retained, ...this.targets ?? []];
  }

  get address(): number {
    return this.region.address + this.offset;
  }
}
