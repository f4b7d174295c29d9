/**
 * The options of WASI for files and standard streams in memory. In: bytes, texts, iterables, functions and files by
 * path. Out: what memory_files.ts takes. Invariant: a value of another kind is refused before anything is opened.
 */

/** Bytes, or text in UTF-8. */
export type Contents = Uint8Array | ArrayBuffer | string;

/** Standard input: contents as a whole, or parts that are taken when the guest reads. */
export type InputSource = Contents | Iterable<Contents>;

/** A receiver of output: a function that gets each part that the guest writes, or "collect". */
export type OutputReceiver = ((bytes: Uint8Array) => void) | "collect";

const ENCODER = new TextEncoder();

/** The bytes of contents. Throws TypeError, naming `what`, for other values. */
export function bytesOf(contents: unknown, what: string): Uint8Array {
  if (typeof contents === "string") return ENCODER.encode(contents);
  if (contents instanceof ArrayBuffer) return new Uint8Array(contents);
  if (ArrayBuffer.isView(contents)) return new Uint8Array(contents.buffer, contents.byteOffset, contents.byteLength);
  throw new TypeError(`${what} must be bytes or text, not ${contents === null ? "null" : typeof contents}`);
}

/** A function that reads from standard input: at most `most` bytes, none at the end. Throws TypeError. */
export function readerOf(source: InputSource): (most: number) => Uint8Array {
  const parts = partsOf(source);
  let part = new Uint8Array(0);
  return (most) => {
    while (part.length === 0 && most > 0) {
      const { done, value } = parts.next();
      if (done === true) return part;
      part = bytesOf(value, "A part of the option stdin") as Uint8Array<ArrayBuffer>;
    }
    const taken = part.subarray(0, most);
    part = part.subarray(taken.length);
    return taken;
  };
}

function partsOf(source: unknown): Iterator<unknown> {
  if (
    typeof source === "object" && source !== null && !ArrayBuffer.isView(source) && !(source instanceof ArrayBuffer)
  ) {
    if (Symbol.iterator in source) return (source as Iterable<unknown>)[Symbol.iterator]();
    if (Symbol.asyncIterator in source || "getReader" in source) {
      throw new TypeError(
        "The option stdin cannot be a stream, for which a guest would have to wait: pass its bytes, or use runProgram",
      );
    }
  }
  return [bytesOf(source, "The option stdin")].values();
}

/** The parts that a guest has written, as one array. */
export class Collected {
  readonly #parts: Uint8Array[] = [];
  #length = 0;

  /** Keeps a part. */
  readonly add = (bytes: Uint8Array): void => {
    this.#parts.push(bytes);
    this.#length += bytes.length;
  };

  /** All bytes so far. */
  get bytes(): Uint8Array<ArrayBuffer> {
    const all = new Uint8Array(this.#length);
    let at = 0;
    for (const part of this.#parts) {
      all.set(part, at);
      at += part.length;
    }
    this.#parts.splice(0, this.#parts.length, all);
    return all.slice();
  }
}

/** The receiver that an option names; undefined for one that collects. Throws TypeError for other values. */
export function receiverOf(option: unknown, name: string): ((bytes: Uint8Array) => void) | undefined {
  if (option === "collect") return undefined;
  if (typeof option === "function") return option as (bytes: Uint8Array) => void;
  throw new TypeError(`The option ${name} is a function that gets bytes, or "collect"`);
}
