/** The bytes of a function under construction; the backends' assemblers extend it with their instructions. */
import { grown } from "../base/columns.ts";

export class CodeBuffer {
  buffer: Uint8Array;
  /** Number of bytes written. */
  at = 0;

  constructor(capacity: number) {
    this.buffer = new Uint8Array(capacity);
  }

  /** Appends 32 bits. */
  word(value: number): void {
    const { buffer, at } = this;
    buffer[at] = value;
    buffer[at + 1] = value >> 8;
    buffer[at + 2] = value >> 16;
    buffer[at + 3] = value >> 24;
    this.at = at + 4;
  }

  /** Makes room for `more` bytes. */
  reserve(more: number): void {
    if (this.at + more <= this.buffer.length) return;
    this.buffer = grown(this.buffer, Math.max(this.at + more, this.buffer.length * 2));
  }
}
