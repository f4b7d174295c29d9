/**
 * Messages between the registry and its check processes.
 *
 * A frame is two lengths (32 bits each, big-endian), a JSON header and a binary body. In: chunks of a pipe, cut
 * anywhere. Out: whole frames. Every byte is copied once, so the cost is linear in the bytes received, however small
 * the chunks are.
 */

/** One message. */
export interface Frame {
  readonly header: unknown;
  readonly body: Uint8Array<ArrayBuffer>;
}

const PREFIX = 8;

/** A frame as bytes. */
export function encodeFrame(header: unknown, body: Uint8Array = new Uint8Array(0)): Uint8Array {
  const text = new TextEncoder().encode(JSON.stringify(header));
  const bytes = new Uint8Array(PREFIX + text.length + body.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, text.length);
  view.setUint32(4, body.length);
  bytes.set(text, PREFIX);
  bytes.set(body, PREFIX + text.length);
  return bytes;
}

/** Assembles frames from chunks. Throws a RangeError for a frame that is longer than `maxBytes`. */
export class FrameReader {
  readonly #maxBytes: number;
  readonly #chunks: Uint8Array[] = [];
  #length = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Takes a chunk; the frames that it completes. */
  push(chunk: Uint8Array): Frame[] {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    const frames: Frame[] = [];
    for (let frame = this.#next(); frame !== undefined; frame = this.#next()) frames.push(frame);
    return frames;
  }

  #next(): Frame | undefined {
    if (this.#length < PREFIX) return undefined;
    const view = new DataView(this.#peek(PREFIX).buffer);
    const [header, body] = [view.getUint32(0), view.getUint32(4)];
    const total = PREFIX + header + body;
    if (total > this.#maxBytes) throw new RangeError(`a message of ${total} bytes is longer than ${this.#maxBytes}`);
    if (this.#length < total) return undefined;
    const bytes = this.#peek(total);
    this.#drop(total);
    return {
      header: JSON.parse(new TextDecoder().decode(bytes.subarray(PREFIX, PREFIX + header))),
      body: bytes.subarray(PREFIX + header),
    };
  }

  /** A copy of the first bytes. */
  #peek(count: number): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(count);
    let at = 0;
    for (const chunk of this.#chunks) {
      const part = chunk.subarray(0, count - at);
      bytes.set(part, at);
      at += part.length;
      if (at === count) break;
    }
    return bytes;
  }

  #drop(count: number): void {
    this.#length -= count;
    let whole = 0;
    let left = count;
    while (whole < this.#chunks.length && left >= this.#chunks[whole].length) left -= this.#chunks[whole++].length;
    this.#chunks.splice(0, whole);
    if (left > 0) this.#chunks[0] = this.#chunks[0].subarray(left);
  }
}
