/**
 * The file format of compiled modules. In: a description, the metadata of a module, machine code and its tables. Out:
 * bytes; and from bytes, the same parts as views. Reading parses only the description and unpacks each table on first
 * use.
 *
 *      0   magic "\0waftbin"
 *      8   u32 format version         12  u32 number of sections
 *      16  u64 total length           24  u64 zero
 *      32  checksum of all bytes from 48 on (checksum.ts)
 *      48  { u32 id, u32 offset, u32 length } per section, ascending offsets, each a multiple of 16; zeros between
 *
 * All numbers are little-endian. Large code begins at a multiple of 64 KiB, so that the file can be mapped for
 * execution with any page size. Invariant: readArtifact either returns exactly the parts that writeArtifact received,
 * or throws. The reader of the description decides whether the code fits this engine and machine
 * (artifact/read_module.ts).
 */
import { nameErrors } from "../base/error_names.ts";
import { WaftError } from "../base/errors.ts";
import { checksum } from "./checksum.ts";
import type { CodeTables } from "../link/image.ts";
import { MAX_ENTRIES } from "../wasm/limits.ts";
import { packColumn, unpackColumn } from "./packed_column.ts";

/**
 * The bytes are not an artifact, are damaged, or belong to another engine, machine or set of options. Nothing of them
 * has run.
 */
export class ArtifactError extends WaftError {
  static {
    nameErrors(this.prototype, "ArtifactError");
  }
}

const MAGIC = Uint8Array.of(0, 0x77, 0x61, 0x66, 0x74, 0x62, 0x69, 0x6e);
/** Incremented whenever the format changes. */
const VERSION = 4;
const CHECKED_FROM = 48;
const CHECKSUM_AT = 32;
const ROW_BYTES = 12;
const ALIGNMENT = 16;
/** Code of at least this many bytes is aligned for every page size, so that it can be mapped from the file. */
export const MAPPED_FROM: number = 1 << 20;
const MAPPED_ALIGNMENT = 1 << 16;
/** Maximum size of an artifact in bytes: offsets are 32 bits wide, and the limit of buffers is lower. */
const MAX_BYTES = 2 ** 31 - 1;

/** The code tables in the order of their sections. */
export const TABLES = [
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

type TableName = (typeof TABLES)[number];

const ID = { DESCRIPTION: 1, METADATA: 2, CODE: 3, SIGNATURES: 4, INLINED: 5, TABLES: 16 } as const;
const SECTION_IDS: readonly number[] = [
  ID.DESCRIPTION,
  ID.METADATA,
  ID.CODE,
  ID.SIGNATURES,
  ID.INLINED,
  ...TABLES.map((_, k) => ID.TABLES + k),
];

/** The parts of an artifact. */
interface ArtifactParts {
  /** Stored as JSON; this file does not interpret it. */
  description: unknown;
  metadata: Uint8Array;
  code: Uint8Array;
  signatureIds: Int32Array;
  /** Inline sites: per function its index, the number of sites, and three words per site. */
  inlined: Int32Array;
  tables: CodeTables;
}

function alignUp(offset: number, alignment = ALIGNMENT): number {
  return Math.ceil(offset / alignment) * alignment;
}

/** The offset of section `id` with `size` bytes if the previous content ends at `end`. */
function sectionOffset(end: number, id: number, size: number): number {
  return alignUp(end, id === ID.CODE && size >= MAPPED_FROM ? MAPPED_ALIGNMENT : ALIGNMENT);
}

function bytesOf(words: Int32Array | Uint8Array): Uint8Array {
  return new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
}

/** Encodes an artifact. Equal parts yield equal bytes. Throws RangeError if it would exceed MAX_BYTES. */
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
    const offset = sectionOffset(at, SECTION_IDS[k], length);
    at = offset + length;
    return offset;
  });
  at = alignUp(at);
  if (at > MAX_BYTES) throw new RangeError(`The module is too large for an artifact: at most ${MAX_BYTES} bytes`);
  const bytes = new Uint8Array(at);
  const view = new DataView(bytes.buffer);
  bytes.set(MAGIC);
  view.setUint32(8, VERSION, true);
  view.setUint32(12, contents.length, true);
  view.setUint32(16, at, true);
  contents.forEach((content, k) => {
    const row = CHECKED_FROM + k * ROW_BYTES;
    view.setUint32(row, SECTION_IDS[k], true);
    view.setUint32(row + 4, offsets[k], true);
    view.setUint32(row + 8, content.length, true);
    bytes.set(content, offsets[k]);
  });
  checksum(bytes.subarray(CHECKED_FROM), new Int32Array(bytes.buffer, CHECKSUM_AT, 4));
  return bytes;
}

function refuse(message: string, offset?: number): never {
  throw new ArtifactError(message, offset === undefined ? {} : { offset });
}

/** Whether the bytes begin with the magic number of artifacts. */
export function looksLikeArtifact(bytes: Uint8Array): boolean {
  return bytes.length >= MAGIC.length && MAGIC.every((byte, k) => bytes[k] === byte);
}

/**
 * Decodes an artifact. The parts are views of `input`, or of a copy if it is not aligned or is shared with other
 * threads; the caller must not change `input` while they are in use. Throws ArtifactError.
 */
export function readArtifact(input: Uint8Array): ArtifactParts {
  if (!looksLikeArtifact(input)) refuse("The bytes are not a waft artifact", 0);
  if (input.length < CHECKED_FROM) refuse("The artifact is truncated in its header", input.length);
  const bytes = input.byteOffset % 4 !== 0 || !(input.buffer instanceof ArrayBuffer) ? new Uint8Array(input) : input;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const version = view.getUint32(8, true);
  if (version !== VERSION) refuse(`The artifact has format ${version}, but this build reads format ${VERSION}`, 8);
  const count = view.getUint32(12, true);
  if (count !== SECTION_IDS.length) refuse(`The artifact is damaged: its header declares ${count} sections`, 12);
  const length = view.getUint32(16, true);
  if (length !== bytes.length || view.getUint32(20, true) !== 0 || length % ALIGNMENT !== 0) {
    refuse(`The artifact is truncated or damaged: its header declares ${length} bytes, but it has ${bytes.length}`, 16);
  }
  if (view.getUint32(24, true) !== 0 || view.getUint32(28, true) !== 0) refuse("The artifact's header is damaged", 24);
  const sum = new Int32Array(4);
  checksum(bytes.subarray(CHECKED_FROM), sum);
  for (let k = 0; k < 4; k++) {
    if (view.getInt32(CHECKSUM_AT + k * 4, true) !== sum[k]) refuse("The artifact is damaged: its checksum is wrong");
  }
  const contents = sections(view, bytes);
  const words = (content: Uint8Array): Int32Array => {
    if (content.length % 4 !== 0) refuse("The artifact is damaged: a section is not a multiple of 4 bytes");
    return new Int32Array(content.buffer, content.byteOffset, content.length >> 2);
  };
  const tables = {} as CodeTables;
  // A row belongs to an instruction, or to a function or a type of the module.
  const maxRows = contents[2].length + MAX_ENTRIES.functions;
  TABLES.forEach((name, k) => defineTable(tables, name, contents[ID.INLINED + k], maxRows));
  return {
    description: parseDescription(contents[0]),
    metadata: contents[1],
    code: contents[2],
    signatureIds: words(contents[3]),
    inlined: words(contents[4]),
    tables,
  };
}

/** Defines a table that is unpacked on first use. */
function defineTable(tables: CodeTables, name: TableName, packed: Uint8Array, maxRows: number): void {
  let table: Int32Array | Uint8Array | undefined;
  Object.defineProperty(tables, name, { get: () => table ??= unpackTable(name, packed, maxRows), enumerable: true });
}

function unpackTable(name: TableName, packed: Uint8Array, maxRows: number): Int32Array | Uint8Array {
  let column: Int32Array;
  try {
    column = unpackColumn(packed, maxRows);
  } catch (error) {
    return refuse(`The artifact is damaged: table ${name}: ${(error as Error).message}`);
  }
  return name === "callCross" ? Uint8Array.from(column) : column;
}

/** The contents of the sections, in the order of SECTION_IDS. */
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
      refuse(`The artifact is damaged: invalid entry for section ${k}`, row);
    }
    end = offset + size;
    return bytes.subarray(offset, end);
  });
}

function parseDescription(content: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(content));
  } catch {
    return refuse("The artifact is damaged: its description is not valid JSON");
  }
}

/** Throws ArtifactError unless the tables name code of the image, `size` bytes, for each of `count` functions. */
export function requirePlaces({ functionStart, functionEnd }: CodeTables, size: number, count: number): void {
  const isComplete = functionStart.length === count && functionEnd.length === count;
  if (isComplete && functionStart.every((start, k) => start === -1 || isRange(start, functionEnd[k], size))) return;
  refuse("The artifact is damaged: its tables name code outside of the image");
}

function isRange(start: number, end: number, size: number): boolean {
  return start >= 0 && start < end && end <= size;
}
