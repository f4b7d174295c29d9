/** The bytes of a function under construction; the backends' assemblers extend it with their instructions. */
import { grown } from "../base/columns.ts";

export class CodeBuffer {
  buffer: Uint8Array;
  /** Number of bytes written. */
  at = 0;

  constructor(capacity: number) {
    this.buffer = new Uint8Array(capacity);
  }

  /** Makes room for `more` bytes. */
  reserve(more: number): void {
    if (this.at + more <= this.buffer.length) return;
    this.buffer = grown(this.buffer, Math.max(this.at + more, this.buffer.length * 2));
  }
}
