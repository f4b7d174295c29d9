/**
 * The messages between a program and its runner, a child process with the engine. In: kinds, numbers and payloads. Out:
 * bytes for a pipe, and messages from the parts in which they arrive. Invariant: a message is checked before it is
 * used, on both sides: its kind, its length, and its reserved bytes; and no memory is reserved for bytes that have not
 * come.
 *
 * A message is a header and a payload. All numbers are little-endian:
 *
 *     0  u32  bytes of the payload
 *     4  u8   kind; three bytes of zero follow
 *     8  u32  id: of a request and its answer, or of a call of a host function and its answer
 *     12 u32  subject: the module, instance or function that it concerns
 */

/** The version of the protocol; both sides compare it before anything else. */
export const PROTOCOL_VERSION = 1;

/** Bytes of the header. */
export const HEADER_BYTES = 16;

/** Kinds of messages. */
export const KIND = {
  /** To the runner: the first message, with the options of the engine as JSON. */
  SETUP: 1,
  /** The answer to the first message, as JSON. */
  READY: 2,
  COMPILE: 3,
  INSTANTIATE: 4,
  CALL: 5,
  READ: 6,
  WRITE: 7,
  RESET: 8,
  /** Closes an instance. */
  CLOSE: 9,
  /** Forgets a module. */
  FORGET: 10,
  /** Runs a program of WASI. */
  RUN: 11,
  /** A request of a package on top of the engine. The subject is one of its operations. */
  EXTENDED: 12,
  /** From the runner: the answers to requests. */
  DONE: 20,
  FAILED: 21,
  /** From the runner: a call of a host function; the payload begins with the id of the request that made it. */
  HOST: 22,
  /** From the runner: a notice of a package on top of the engine, which has no answer. */
  NOTICE: 25,
  /** To the runner: the answers to calls of host functions. */
  RETURNED: 23,
  THREW: 24,
} as const;

/** A kind of message. */
export type MessageKind = (typeof KIND)[keyof typeof KIND];

const KINDS: ReadonlySet<number> = new Set(Object.values(KIND));

/** A message that has arrived whole. */
export interface Message {
  readonly kind: number;
  readonly id: number;
  readonly subject: number;
  readonly payload: Uint8Array;
}

/** The other side has sent bytes that are not a message of this protocol. */
export class ProtocolError extends Error {}

/** A new message: its bytes, with room for `bytes` of payload from HEADER_BYTES on. */
export function newMessage(kind: MessageKind, id: number, subject: number, bytes: number): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(HEADER_BYTES + bytes);
  writeHeader(new DataView(message.buffer), kind, id, subject, bytes);
  return message;
}

/** Writes a header to the start of `view`. */
export function writeHeader(view: DataView, kind: MessageKind, id: number, subject: number, bytes: number): void {
  view.setUint32(0, bytes, true);
  view.setUint32(4, kind, true);
  view.setUint32(8, id, true);
  view.setUint32(12, subject, true);
}

/** A header. Throws ProtocolError for one that this protocol does not have. */
export function readHeader(view: DataView, at: number, maxBytes: number): Message & { readonly bytes: number } {
  const bytes = view.getUint32(at, true);
  const kind = view.getUint32(at + 4, true);
  if (!KINDS.has(kind)) throw new ProtocolError(`a message of the unknown kind ${kind}`);
  if (bytes > maxBytes) throw new ProtocolError(`a message of ${bytes} bytes; at most ${maxBytes} are allowed`);
  return {
    kind,
    id: view.getUint32(at + 8, true),
    subject: view.getUint32(at + 12, true),
    payload: EMPTY,
    bytes,
  };
}

const EMPTY = new Uint8Array(0);

/** Joins the parts in which bytes arrive to messages. */
export class MessageReader {
  readonly #maxBytes: number;
  readonly #handle: (message: Message) => void;
  /** Bytes that begin a message, in arrival order. */
  #parts: Uint8Array[] = [];
  #length = 0;
  /** The number of bytes from which on a message may be complete. */
  #needed = HEADER_BYTES;

  /** Passes each message to `handle`; payloads have at most `maxBytes`. */
  constructor(maxBytes: number, handle: (message: Message) => void) {
    this.#maxBytes = maxBytes;
    this.#handle = handle;
  }

  /** Takes a part, which the reader keeps. Throws ProtocolError, and the errors of the handler. */
  push(part: Uint8Array): void {
    this.#parts.push(part);
    this.#length += part.length;
    if (this.#length < this.#needed) return;
    const bytes = this.#parts.length === 1 ? this.#parts[0] : joined(this.#parts, this.#length);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    let at = 0;
    this.#needed = HEADER_BYTES;
    while (bytes.length - at >= HEADER_BYTES) {
      const { kind, id, subject, bytes: length } = readHeader(view, at, this.#maxBytes);
      const end = at + HEADER_BYTES + length;
      if (end > bytes.length) {
        this.#needed = HEADER_BYTES + length;
        break;
      }
      this.#handle({ kind, id, subject, payload: bytes.subarray(at + HEADER_BYTES, end) });
      at = end;
    }
    this.#parts = at === bytes.length ? [] : [bytes.subarray(at)];
    this.#length = bytes.length - at;
  }
}

function joined(parts: readonly Uint8Array[], length: number): Uint8Array {
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
