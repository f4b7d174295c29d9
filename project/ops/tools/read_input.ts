/**
 * The contents of a file that a command line names. In: the word. Out: the bytes; by convention `-` means standard
 * input, and as an output path standard output. Failures are those of the file system.
 *
 * Standard input is read by its descriptor: as a path it cannot be opened if it is a socket, or on Windows.
 */
import { errorCode } from "@waft/engine/internal/errors";
import { readFile } from "@waft/engine/internal/host/files";
import { nodeModule } from "@waft/engine/internal/host/process";

/** The bytes that each read of standard input may return. */
const CHUNK_BYTES = 1 << 16;

/** The contents of the file `word`, or of standard input. */
export function readInput(word: string): Uint8Array<ArrayBuffer> {
  return word === "-" ? readStandardInput() : readFile(word);
}

/** All of standard input, up to its end. */
function readStandardInput(): Uint8Array<ArrayBuffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  while (true) {
    const chunk = new Uint8Array(CHUNK_BYTES);
    const count = readSome(chunk);
    if (count === 0) break;
    chunks.push(chunk.subarray(0, count));
    length += count;
  }
  const bytes = new Uint8Array(length);
  for (let at = 0, k = 0; k < chunks.length; at += chunks[k++].length) bytes.set(chunks[k], at);
  return bytes;
}

/** The number of bytes read into `chunk`; 0 at the end. */
function readSome(chunk: Uint8Array): number {
  const { readSync } = nodeModule("node:fs");
  while (true) {
    try {
      return readSync(0, chunk);
    } catch (error) {
      const code = errorCode(error);
      // Windows reports the end of a pipe as an error.
      if (code === "EOF") return 0;
      // The pipe is non-blocking and its writer is slow: retry. Deno's own error has a name in place of the code.
      if (code !== "EAGAIN" && !(error instanceof Error && error.name === "WouldBlock")) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}
