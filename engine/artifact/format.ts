/**
 * The file format of compiled modules. In: a description, the metadata of a module, machine code and its tables. Out: bytes, and from those
 * the same again, as views: nothing is parsed but the description; tables are unpacked when they are asked for.
 *
 *     0   magic "\0waftbin"
 *     8   u32 format version         12  u32 number of sections
 *     16  u64 length of all          24  u64 zero
 *     32  checksum of everything from 48 on (checksum.ts)
 *     48  { u32 id, u32 offset, u32 length } per section, ascending offsets, each a multiple of 16; zeros between
 *
 * All numbers are little-endian. Big code begins at a multiple of 64 KiB, so that a file can be mapped where it is to run, whatever the pages'
 * size. Invariants: what readArtifact returns is, byte for byte, what writeArtifact got, or it threw. Whether the code
 * is fit for this engine and machine is for the reader of the description to decide (artifact/read_module.ts).
 */
import { WaftError } from "../errors.ts";
import { checksum } from "./checksum.ts";
import type { CodeTables } from "../link/image.ts";
import { packColumn, unpackColumn } from "./packed_column.ts";

/** The bytes are no artifact, are damaged, or belong to another engine, machine or set of options: nothing of them runs. */
export class ArtifactError extends WaftError {
  static {
    this.prototype.name = "ArtifactError";
  }
}

const MAGIC = Uint8Array.of(0, 0x77, 0x61, 0x66, 0x74, 0x62, 0x69, 0x6e);
/** Changes whenever the format does. */
const VERSION = 4;
const CHECKED_FROM = 48;
const CHECKSUM_AT = 32;
const ROW_BYTES = 12;
const ALIGNMENT = 16;
/** Code of so many bytes begins at a page, whatever pages there are. */
export const MAPPED_FROM: number = 1 << 20;
const MAPPED_ALIGNMENT = 1 << 16;
/** The most bytes of an artifact: offsets are 32 bits wide, and buffers end before that anyway. */
const MAX_BYTES = 2 ** 31 - 1;

/** The tables of code in the order of their sections. */
const TABLES = [
  "callReturn",
  "callFrame",
  "callPos",
  "callSite",
  "callLanding",
  "callCross",
  "trapAt",
  "trapCode",
  "trapFrame",
  "trapPos",
  "trapSite",
  "pollAt",
  "functionStart",
  "functionEnd",
  "entryThunk",
  "hostThunk",
] as const satisfies readonly (keyof CodeTables)[];

const ID = { DESCRIPTION: 1, OUTLINE: 2, CODE: 3, SIGNATURES: 4, INLINED: 5, TABLES: 16 } as const;
const SECTION_IDS: readonly number[] = [
  ID.DESCRIPTION,
  ID.OUTLINE,
  ID.CODE,
  ID.SIGNATURES,
  ID.INLINED,
  ...TABLES.map((_, k) => ID.TABLES + k),
];

/** What an artifact holds. */
export interface ArtifactParts {
  /** JSON; what it says is not this file's. */
  description: unknown;
  metadata: Uint8Array;
  code: Uint8Array;
  signatureIds: Int32Array;
  /** Inline sites: per function its index, how many there are, and three words for each. */
  inlined: Int32Array;
  tables: CodeTables;
}

function alignUp(offset: number, alignment = ALIGNMENT): number {
  return Math.ceil(offset / alignment) * alignment;
}

/** Where section `id` begins when what stands before it ends at `end`. */
function sectionOffset(end: number, id: number, size: number): number {
  return alignUp(end, id === ID.CODE && size >= MAPPED_FROM ? MAPPED_ALIGNMENT : ALIGNMENT);
}

function bytesOf(words: Int32Array | Uint8Array): Uint8Array {
  return new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
}

/** Writes an artifact. The same parts give the same bytes. Throws RangeError when it would be too long. */
export function writeArtifact(parts: ArtifactParts): Uint8Array<ArrayBuffer> {
  const contents = [
    new TextEncoder().encode(JSON.stringify(parts.description)),
    parts.metadata,
    parts.code,
    bytesOf(parts.signatureIds),
    bytesOf(parts.inlined),
    ...TABLES.map((name) => packColumn(parts.tables[name])),
  ];
  let at = CHECKED_FROM + contents.length * ROW_BYTES;
  const offsets = contents.map(({ length }, k) => {
    const offset = sectionOffset(at, SECTION_IDS[k]!, length);
    at = offset + length;
    return offset;
  });
  at = alignUp(at);
  if (at > MAX_BYTES) throw new RangeError("The module is too big for an artifact");
  const bytes = new Uint8Array(at);
  const view = new DataView(bytes.buffer);
  bytes.set(MAGIC);
  view.setUint32(8, VERSION, true);
  view.setUint32(12, contents.length, true);
  view.setUint32(16, at, true);
  contents.forEach((content, k) => {
    const row = CHECKED_FROM + k * ROW_BYTES;
    view.setUint32(row, SECTION_IDS[k]!, true);
    view.setUint32(row + 4, offsets[k]!, true);
    view.setUint32(row + 8, content.length, true);
    bytes.set(content, offsets[k]!);
  });
  checksum(bytes.subarray(CHECKED_FROM), new Int32Array(bytes.buffer, CHECKSUM_AT, 4));
  return bytes;
}

function refuse(message: string, offset?: number): never {
  throw new ArtifactError(message, offset === undefined ? {} : { offset });
}

/** Do the bytes begin like an artifact? */
export function looksLikeArtifact(bytes: Uint8Array): boolean {
  return bytes.length >= MAGIC.length && MAGIC.every((byte, k) => bytes[k] === byte);
}

/**
 * What `input` holds, as views of it (of a copy, when it is not aligned or may change in other threads): it must not change while they are in use.
 * Throws ArtifactError.
 */
export function readArtifact(input: Uint8Array): ArtifactParts {
  if (!looksLikeArtifact(input)) refuse("These bytes are no compiled artifact", 0);
  if (input.length < CHECKED_FROM) refuse("The artifact is cut off in its header", input.length);
  const bytes = input.byteOffset % 4 !== 0 || !(input.buffer instanceof ArrayBuffer) ? new Uint8Array(input) : input;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const version = view.getUint32(8, true);
  if (version !== VERSION) refuse(`The artifact has format ${version}, this build reads ${VERSION}`, 8);
  const count = view.getUint32(12, true);
  if (count !== SECTION_IDS.length) refuse(`The artifact is damaged: it claims ${count} sections`, 12);
  const length = view.getUint32(16, true);
  if (length !== bytes.length || view.getUint32(20, true) !== 0 || length % ALIGNMENT !== 0) {
    refuse(`The artifact is cut off or damaged: it claims ${length} bytes and has ${bytes.length}`, 16);
  }
  if (view.getUint32(24, true) !== 0 || view.getUint32(28, true) !== 0) refuse("The artifact's header is damaged", 24);
  const sum = new Int32Array(4);
  checksum(bytes.subarray(CHECKED_FROM), sum);
  for (let k = 0; k < 4; k++) {
    if (view.getInt32(CHECKSUM_AT + k * 4, true) !== sum[k]) refuse("The artifact is damaged: its checksum is wrong");
  }
  const contents = sections(view, bytes);
  const words = (content: Uint8Array): Int32Array => {
    if (content.length % 4 !== 0) refuse("The artifact is damaged: a section has no whole words");
    return new Int32Array(content.buffer, content.byteOffset, content.length >> 2);
  };
  const tables = {} as CodeTables;
  TABLES.forEach((name, k) => defineTable(tables, name, contents[ID.INLINED + k]!));
  return {
    description: parseDescription(contents[0]!),
    metadata: contents[1]!,
    code: contents[2]!,
    signatureIds: words(contents[3]!),
    inlined: words(contents[4]!),
    tables,
  };
}

/** A table that is unpacked when it is read first. */
function defineTable(tables: CodeTables, name: (typeof TABLES)[number], packed: Uint8Array): void {
  let table: Int32Array | Uint8Array | undefined;
  Object.defineProperty(tables, name, { get: () => table ??= unpackTable(name, packed), enumerable: true });
}

function unpackTable(name: (typeof TABLES)[number], packed: Uint8Array): Int32Array | Uint8Array {
  let column: Int32Array;
  try {
    column = unpackColumn(packed);
  } catch (error) {
    return refuse(`The artifact is damaged: its table ${name}: ${(error as Error).message}`);
  }
  return name === "callCross" ? Uint8Array.from(column) : column;
}

/** The sections' contents, by their place in SECTION_IDS. */
function sections(view: DataView, bytes: Uint8Array): Uint8Array[] {
  let end = CHECKED_FROM + SECTION_IDS.length * ROW_BYTES;
  return SECTION_IDS.map((id, k) => {
    const row = CHECKED_FROM + k * ROW_BYTES;
    const offset = view.getUint32(row + 4, true);
    const size = view.getUint32(row + 8, true);
    if (
      view.getUint32(row, true) !== id || offset !== sectionOffset(end, id, size) ||
      size > bytes.length - offset || offset > bytes.length
    ) {
      refuse(`The artifact is damaged: section ${k}`, row);
    }
    end = offset + size;
    return bytes.subarray(offset, end);
  });
}

function parseDescription(content: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(content));
  } catch {
    return refuse("The artifact is damaged: its description cannot be read");
  }
}
