/**
 * Recordings as bytes. In: a module and events. Out: a log, and its parts again:
 *
 *     magic, version · chunk MODULE · chunk EVENTS … · chunk END
 *     the contents of END are empty, or one byte: 1 if an event says where the stack was exhausted
 *     chunk = kind (1 byte) · length of the payload (4) · payload · checksum (16)
 *
 * Payloads are deflated: the length of the contents (LEB128), then the data. Contents above 16 MiB are at most 64 times
 * as long as their payload; the writer stores data that would shrink further. The checksum is the first half of the
 * SHA-256 of the previous chunk's checksum and of the chunk, so that a chunk that is changed, cut, moved or repeated is
 * detected at its place.
 *
 * Invariant: the bytes are untrusted; nothing is inflated before all checksums are verified, and never beyond the
 * announced length. Reading a log of n bytes takes at most max(16 MiB, 64 n) of memory for contents.
 */
import { ByteReader, ByteWriter } from "../base/bytes.ts";
import { nameErrors } from "../base/error_names.ts";
import { markUncatchable, type SourcePlace, WaftError } from "../base/errors.ts";
import { nodeModule } from "../host/process.ts";

const MAGIC = new TextEncoder().encode("\0waftrec");
/** Logs of version 1 are of code with canonical NaNs, those before version 3 of code that counts the depth of calls. */
const VERSION = 3;
const HEAD_BYTES = MAGIC.length + 4;
const CHUNK_HEAD_BYTES = 5;
const CHECKSUM_BYTES = 16;
const KIND = { MODULE: 1, EVENTS: 2, END: 3 } as const;
/** A chunk ends with the event that makes its contents this long, in bytes. */
const CHUNK_BYTES = 1 << 16;
/** The maximum length of the contents of a chunk, in bytes. */
const MAX_CONTENT_BYTES = 2 ** 31 - 1;
/** Contents up to this length, in bytes, may have a payload of any length. */
const FREE_CONTENT_BYTES = 1 << 24;
/** The maximum length of longer contents, relative to that of their payload. */
const MAX_EXPANSION = 64;

/**
 * Thrown for bytes that are not a recording, with the offset of the fault, and for a replay that differs from it.
 * Compiled code does not catch it.
 */
export class RecordingError extends WaftError {
  static {
    nameErrors(this.prototype, "RecordingError");
  }

  /** Creates an error with the one-line `message`. */
  constructor(message: string, place: SourcePlace = {}) {
    super(message, place);
    markUncatchable(this);
  }
}

/** Throws the error for a recording that cannot be read. */
function refuse(why: string, offset: number): never {
  throw new RecordingError(`The recording cannot be read: ${why}`, { offset });
}

/** The SHA-256 of some runs of bytes. */
export function sha256(...runs: readonly Uint8Array[]): Uint8Array {
  const hash = nodeModule("node:crypto").createHash("sha256");
  for (const run of runs) hash.update(run);
  return new Uint8Array(hash.digest());
}

/** Writes a log. */
export class LogWriter {
  readonly #chunks: Uint8Array[] = [];
  #checksum: Uint8Array = new Uint8Array(0);
  /** The event that is being written; {@linkcode LogWriter.event} begins it. */
  out: ByteWriter = new ByteWriter(CHUNK_BYTES);
  /** The number of events. */
  count = 0;
  /** Whether an event says where the stack was exhausted. */
  hasExhaustion = false;

  /** Begins the log of a run of `module`, in binary form. */
  constructor(module: Uint8Array) {
    const head = new ByteWriter(HEAD_BYTES);
    head.raw(MAGIC);
    head.bits32(VERSION);
    const bytes = head.finish();
    this.#chunks.push(bytes);
    this.#checksum = sha256(bytes).subarray(0, CHECKSUM_BYTES);
    this.#add(KIND.MODULE, module);
  }

  /** Begins an event. */
  event(kind: number): ByteWriter {
    if (this.out.length >= CHUNK_BYTES) this.#flush();
    this.count++;
    this.out.u8(kind);
    return this.out;
  }

  /** Ends the log and returns its bytes. */
  finish(): Uint8Array<ArrayBuffer> {
    this.#flush();
    this.#add(KIND.END, this.hasExhaustion ? Uint8Array.of(1) : new Uint8Array(0));
    const all = new ByteWriter(this.#chunks.reduce((sum, chunk) => sum + chunk.length, 0));
    for (const chunk of this.#chunks) all.raw(chunk);
    return all.finish();
  }

  #flush(): void {
    if (this.out.length === 0) return;
    this.#add(KIND.EVENTS, this.out.bytes.subarray(0, this.out.length));
    if (this.out.bytes.length > CHUNK_BYTES * 2) this.out = new ByteWriter(CHUNK_BYTES);
    else this.out.length = 0;
  }

  #add(kind: number, content: Uint8Array): void {
    const payload = payloadOf(content);
    const chunk = new ByteWriter(payload.length + CHUNK_HEAD_BYTES + CHECKSUM_BYTES);
    chunk.u8(kind);
    chunk.bits32(payload.length);
    chunk.raw(payload.bytes.subarray(0, payload.length));
    this.#checksum = sha256(this.#checksum, chunk.bytes.subarray(0, chunk.length)).subarray(0, CHECKSUM_BYTES);
    chunk.raw(this.#checksum);
    this.#chunks.push(chunk.finish());
  }
}

/** The longest contents that a payload of `bytes` bytes can have. */
function longestContent(bytes: number): number {
  return Math.min(MAX_CONTENT_BYTES, Math.max(FREE_CONTENT_BYTES, bytes * MAX_EXPANSION));
}

function payloadOf(content: Uint8Array): ByteWriter {
  const { deflateRawSync } = nodeModule("node:zlib");
  const payload = new ByteWriter(Math.min(content.length, CHUNK_BYTES) + 16);
  payload.u32(content.length);
  if (content.length === 0) return payload;
  const packed = deflateRawSync(content);
  payload.raw(content.length <= longestContent(packed.length) ? packed : deflateRawSync(content, { level: 0 }));
  return payload;
}

interface Chunk {
  readonly kind: number;
  /** The offset of the chunk in the log. */
  readonly offset: number;
  readonly payload: Uint8Array;
}

/** Whether the bytes begin like a recording. */
export function isRecording(bytes: Uint8Array): boolean {
  return MAGIC.every((byte, k) => bytes[k] === byte);
}

/** Splits a log into its chunks, whose checksums it verifies. */
function chunksOf(bytes: Uint8Array): Chunk[] {
  const damaged = MAGIC.findIndex((byte, k) => bytes[k] !== byte);
  if (damaged >= 0) refuse("the bytes are not a recording of waft", Math.min(damaged, bytes.length));
  if (bytes.length < HEAD_BYTES) refuse("it is cut off", bytes.length);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const version = view.getUint32(MAGIC.length, true);
  if (version < 1 || version > VERSION) {
    refuse(`it has version ${version}, but this build reads versions 1 to ${VERSION}`, MAGIC.length);
  }
  const chunks: Chunk[] = [];
  let checksum = sha256(bytes.subarray(0, HEAD_BYTES)).subarray(0, CHECKSUM_BYTES);
  let at = HEAD_BYTES;
  while (chunks.at(-1)?.kind !== KIND.END) {
    if (at + CHUNK_HEAD_BYTES > bytes.length) refuse("it is cut off", bytes.length);
    const length = view.getUint32(at + 1, true);
    const end = at + CHUNK_HEAD_BYTES + length;
    if (end + CHECKSUM_BYTES > bytes.length) refuse("a chunk is cut off or damaged", at);
    const expected = sha256(checksum, bytes.subarray(at, end)).subarray(0, CHECKSUM_BYTES);
    checksum = bytes.subarray(end, end + CHECKSUM_BYTES);
    if (expected.some((byte, k) => byte !== checksum[k])) refuse("the checksum of a chunk is wrong", at);
    chunks.push({ kind: bytes[at], offset: at, payload: bytes.subarray(at + CHUNK_HEAD_BYTES, end) });
    at = end + CHECKSUM_BYTES;
  }
  if (at !== bytes.length) refuse("it has trailing bytes", at);
  return chunks;
}

function contentOf({ payload, offset }: Chunk): Uint8Array {
  const reader = new ByteReader(payload);
  try {
    const length = reader.u32();
    if (length > longestContent(payload.length)) refuse("a chunk is too long", offset);
    if (length === 0) return payload.subarray(0, 0);
    const content = nodeModule("node:zlib").inflateRawSync(reader.take(reader.left), { maxOutputLength: length });
    if (content.length === length) return new Uint8Array(content.buffer, content.byteOffset, length);
  } catch (error) {
    if (error instanceof RecordingError) throw error;
  }
  return refuse("the contents of a chunk are malformed", offset);
}

/** Reads a log, whose checksums are verified first. Throws RecordingError with the place of the first fault. */
export class LogReader {
  /** The module in binary form. */
  readonly module: Uint8Array;
  readonly #chunks: readonly Chunk[];
  #next = 1;
  #reader = new ByteReader(new Uint8Array(0));
  /** Whether an event says where the stack was exhausted. */
  readonly hasExhaustion: boolean;
  /** The number of events read so far. */
  count = 0;

  constructor(bytes: Uint8Array) {
    this.#chunks = chunksOf(bytes);
    const [module] = this.#chunks;
    if (module.kind !== KIND.MODULE) refuse("it has no module", module.offset);
    const strange = this.#chunks.findIndex(({ kind }, k) =>
      kind !== (k === 0 ? KIND.MODULE : k === this.#chunks.length - 1 ? KIND.END : KIND.EVENTS)
    );
    if (strange >= 0) refuse("its chunks are out of order", this.#chunks[strange].offset);
    this.module = contentOf(module);
    const end = contentOf(this.#chunks[this.#chunks.length - 1]);
    if (end.length > 1 || end[0] > 1) refuse("its end is malformed", this.#chunks[this.#chunks.length - 1].offset);
    this.hasExhaustion = end[0] === 1;
  }

  /** The kind of the next event (EVENT), which is not consumed. */
  get kind(): number {
    const reader = this.#current();
    return reader.bytes[reader.pos];
  }

  /** Consumes the kind of the next event. Returns a reader of its fields. */
  event(): ByteReader {
    const reader = this.#current();
    this.count++;
    reader.pos++;
    return reader;
  }

  /** A reader of the fields of the next event, which is not consumed. */
  peek(): ByteReader {
    const { bytes, pos } = this.#current();
    return new ByteReader(bytes, pos + 1);
  }

  /** Consumes the next event if it is exactly `bytes`; returns whether it is. */
  matches(bytes: Uint8Array): boolean {
    const reader = this.#current();
    if (bytes.length > reader.left) return false;
    for (let k = 0; k < bytes.length; k++) if (reader.bytes[reader.pos + k] !== bytes[k]) return false;
    reader.pos += bytes.length;
    this.count++;
    return true;
  }

  /** Whether there is no further event. */
  get isAtEnd(): boolean {
    return this.#reader.left === 0 && this.#next >= this.#chunks.length - 1;
  }

  /** The fields of the event that is being read. */
  get current(): ByteReader {
    return this.#reader;
  }

  /** Runs `read`, and reports malformed fields as a fault of the chunk. */
  reading<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof WaftError) || error.name !== "MalformedError") throw error;
      return this.fail(error.message);
    }
  }

  /** Throws RecordingError for the current event, which no recorder writes. */
  fail(why: string): never {
    return refuse(`${why}, in event ${this.count}`, this.#chunks[this.#next - 1].offset);
  }

  #current(): ByteReader {
    if (this.#reader.left > 0) return this.#reader;
    if (this.isAtEnd) refuse("its events end too early", this.#chunks[this.#chunks.length - 1].offset);
    const content = contentOf(this.#chunks[this.#next++]);
    if (content.length === 0) refuse("it has an empty chunk", this.#chunks[this.#next - 1].offset);
    return this.#reader = new ByteReader(content);
  }
}
