/**
 * The process in which archives are checked: no files, no network, no environment, a small heap.
 *
 * In, on stdin, again and again: two lengths (32 bits each, big-endian), a request in JSON, an archive. Out, on stdout: a
 * length and a CheckResult in JSON. Whoever started it ends it when it takes too long or too much memory.
 */
import process from "node:process";
import { checkArchive, type CheckRequest, type CheckResult } from "./check.ts";

/** Reads exact numbers of bytes from a stream of chunks; undefined at its end. */
class ChunkReader {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #parts: Uint8Array[] = [];
  #length = 0;

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.#chunks = stream[Symbol.asyncIterator]();
  }

  async take(count: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
    while (this.#length < count) {
      const { done, value } = await this.#chunks.next();
      if (done === true) return undefined;
      this.#parts.push(value);
      this.#length += value.length;
    }
    const taken = new Uint8Array(count);
    for (let at = 0; at < count;) {
      const part = this.#parts[0]!;
      const used = part.subarray(0, count - at);
      taken.set(used, at);
      at += used.length;
      if (used.length === part.length) this.#parts.shift();
      else this.#parts[0] = part.subarray(used.length);
    }
    this.#length -= count;
    return taken;
  }
}

function write(result: CheckResult): void {
  const body = new TextEncoder().encode(JSON.stringify(result));
  const frame = new Uint8Array(4 + body.length);
  new DataView(frame.buffer).setUint32(0, body.length);
  frame.set(body, 4);
  process.stdout.write(frame);
}

const input = new ChunkReader(process.stdin as AsyncIterable<Uint8Array>);
for (;;) {
  const lengths = await input.take(8);
  if (lengths === undefined) break;
  const view = new DataView(lengths.buffer);
  const header = await input.take(view.getUint32(0));
  const archive = await input.take(view.getUint32(4));
  if (header === undefined || archive === undefined) break;
  write(await checkArchive(archive, JSON.parse(new TextDecoder().decode(header)) as CheckRequest));
}
