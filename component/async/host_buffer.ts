/**
 * Buffers of JavaScript values, from and to which channels copy. In: elements, in one part to be read. Out: the parts
 * that were written. Invariant: `progress` is the number of elements that have been copied.
 */
import type { Buffer } from "./channel.ts";

/** A buffer of JavaScript values. */
export class HostBuffer implements Buffer {
  readonly length: number;
  readonly inHost = true;
  progress = 0;
  /** The elements to be read, or those that were written, in parts. */
  readonly parts: ArrayLike<unknown>[];

  constructor(length: number, elements?: ArrayLike<unknown>) {
    this.length = length;
    this.parts = elements === undefined ? [] : [elements];
  }

  read(count: number): ArrayLike<unknown> {
    const elements = this.parts[0];
    const from = this.progress;
    this.progress += count;
    if (ArrayBuffer.isView(elements)) return (elements as Uint8Array).subarray(from, this.progress);
    return Array.prototype.slice.call(elements, from, this.progress) as unknown[];
  }

  write(elements: ArrayLike<unknown>): void {
    this.progress += elements.length;
    this.parts.push(elements);
  }
}
