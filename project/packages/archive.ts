/**
 * Package archives: gzip of ustar, read and written in memory only.
 *
 * In: untrusted bytes. Out: a map from path to bytes, or one finding that describes the fault; nothing is ever
 * unpacked to disk. Only plain files with portable names are accepted: no links, devices, PAX or GNU extensions,
 * absolute or climbing paths, or names that collide on some file system. Every size is bounded before memory is
 * allocated. Writing is canonical: sorted names, mode 0644, no times, no owners.
 */
import { errorCode } from "@waft/engine/internal/errors";
import { constants, gzipSync, inflateRawSync } from "node:zlib";
import { isWindowsDevice } from "@waft/engine/internal/host/windows_names";
import { fail, type ProjectError, quote } from "../base/diagnostic.ts";

/** Bounds of a package archive. */
export const ARCHIVE_LIMITS = {
  packedBytes: 16 << 20,
  unpackedBytes: 64 << 20,
  ratio: 100,
  files: 1000,
  pathBytes: 200,
  pathDepth: 16,
  fileBytes: 32 << 20,
} as const;

/** Bounds of a kind of archive. */
type ArchiveLimits = { readonly [name in keyof typeof ARCHIVE_LIMITS]: number };

const BLOCK = 512;

function bad(code: string, message: string, help?: string): ProjectError {
  return fail(`archive.${code}`, message, help === undefined ? {} : { help });
}

/** Reads a `.tar.gz`; throws a ProjectError with an `archive.*` code. */
export function readArchive(packed: Uint8Array, limits: ArchiveLimits = ARCHIVE_LIMITS): Map<string, Uint8Array> {
  return readTar(gunzip(packed, limits), limits);
}

/** Unpacks the single member of a gzip file; refuses more members, trailing bytes and wrong checksums. */
function gunzip(packed: Uint8Array, limits: ArchiveLimits): Uint8Array {
  const { packedBytes } = limits;
  if (packed.length > packedBytes) {
    throw bad("too-large", `the archive has ${packed.length} bytes; at most ${packedBytes} are allowed`);
  }
  if (packed.length < 18 || packed[0] !== 0x1f || packed[1] !== 0x8b || packed[2] !== 8) {
    throw bad("gzip", "the archive does not start with a gzip header");
  }
  const flags = packed[3];
  if (flags !== 0) throw bad("gzip", "the gzip header has a name, a comment or an extra field");
  // At most 100 times the input, and at most the limit.
  const limit = unpackedLimit(packed.length, limits);
  const body = packed.subarray(10);
  let unpacked: Uint8Array;
  let used: number;
  try {
    const result = inflateRawSync(body, { info: true, maxOutputLength: limit } as object) as unknown as {
      readonly buffer: Uint8Array;
      readonly engine: { readonly bytesWritten: number };
    };
    unpacked = new Uint8Array(result.buffer.buffer, result.buffer.byteOffset, result.buffer.byteLength);
    used = result.engine.bytesWritten;
  } catch (error) {
    if (errorCode(error) === "ERR_BUFFER_TOO_LARGE") {
      throw bad("bomb", `the archive unpacks to more than ${limit} bytes`);
    }
    throw bad("gzip", "the compressed data is damaged");
  }
  if (used + 8 > body.length) throw bad("gzip", "the archive is cut off");
  if (used + 8 < body.length) throw bad("trailing", "bytes follow the end of the gzip member");
  const view = new DataView(body.buffer, body.byteOffset + used, 8);
  if (view.getUint32(0, true) !== crc32(unpacked)) throw bad("gzip", "the archive's checksum is wrong");
  if (view.getUint32(4, true) !== unpacked.length % 2 ** 32) throw bad("gzip", "the archive's length field is wrong");
  return unpacked;
}

/** The bound on the unpacked size of an archive; small archives may be very compressible. */
function unpackedLimit(packedLength: number, limits: ArchiveLimits): number {
  return Math.min(limits.unpackedBytes, Math.max(packedLength * limits.ratio, 1 << 20));
}

function readTar(tar: Uint8Array, limits: ArchiveLimits): Map<string, Uint8Array> {
  const files = new Map<string, Uint8Array>();
  const folded = new Map<string, string>();
  let offset = 0;
  for (;;) {
    if (offset + BLOCK > tar.length) throw bad("tar", "the archive has no end-of-archive marker");
    const header = tar.subarray(offset, offset + BLOCK);
    offset += BLOCK;
    if (header.every((byte) => byte === 0)) break;
    if (files.size >= limits.files) {
      throw bad("too-many", `the archive holds more than ${limits.files} files`);
    }
    const { path, size } = readHeader(header);
    checkPath(path);
    const key = foldPath(path);
    const same = folded.get(key);
    if (same !== undefined) {
      throw bad(
        "duplicate",
        same === path
          ? `the archive holds ${quote(path)} twice`
          : `${quote(path)} and ${quote(same)} collide on some file systems`,
      );
    }
    folded.set(key, path);
    if (size > limits.fileBytes) {
      throw bad("too-large", `${quote(path)} has ${size} bytes; at most ${limits.fileBytes} are allowed`);
    }
    if (offset + size > tar.length) throw bad("tar", `${quote(path)} is longer than the archive`);
    files.set(path, tar.subarray(offset, offset + size));
    const end = Math.ceil(size / BLOCK) * BLOCK;
    if (!tar.subarray(offset + size, Math.min(offset + end, tar.length)).every((byte) => byte === 0)) {
      throw bad("tar", `hidden bytes follow ${quote(path)}`);
    }
    offset += end;
  }
  if (!tar.subarray(offset).every((byte) => byte === 0)) {
    throw bad("trailing", "bytes follow the end-of-archive marker");
  }
  for (const path of files.keys()) {
    for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", at + 1)) {
      const parent = folded.get(foldPath(path.slice(0, at)));
      if (parent !== undefined) throw bad("duplicate", `${quote(parent)} is a file and the folder of ${quote(path)}`);
    }
  }
  return files;
}

/**
 * The form in which file systems that ignore letter case compare paths: ſ and s, ß and ss are the same to some. ẞ is ß
 * in lower case, and ss only after that.
 */
function foldPath(path: string): string {
  return path.normalize("NFC").toLowerCase().toUpperCase().toLowerCase().normalize("NFC");
}

function readHeader(header: Uint8Array): { path: string; size: number } {
  if (text(header, 257, 6, "magic") !== "ustar" || header[263] !== 0x30 || header[264] !== 0x30) {
    throw bad("tar", "an entry is not in the ustar format");
  }
  let sum = 0;
  for (let i = 0; i < BLOCK; i++) sum += i >= 148 && i < 156 ? 0x20 : header[i];
  if (octal(header, 148, 8, "checksum") !== sum) throw bad("tar", "an entry's header checksum is wrong");
  const prefix = text(header, 345, 155, "name");
  const name = text(header, 0, 100, "name");
  const path = prefix === "" ? name : `${prefix}/${name}`;
  const type = header[156];
  if (type !== 0x30 && type !== 0) {
    throw bad(
      "entry-type",
      `${quote(path)} is ${
        ENTRY_TYPES[String.fromCharCode(type)] ?? "of an unknown type"
      }; only plain files are allowed`,
    );
  }
  if (text(header, 157, 100, "link name") !== "") throw bad("entry-type", `${quote(path)} names a link target`);
  return { path, size: octal(header, 124, 12, "size") };
}

const ENTRY_TYPES: { readonly [type: string]: string | undefined } = {
  "1": "a hard link",
  "2": "a symbolic link",
  "3": "a character device",
  "4": "a block device",
  "5": "a directory entry",
  "6": "a pipe",
  "7": "a contiguous file",
  g: "a PAX global header",
  x: "a PAX header",
  L: "a GNU long name",
  K: "a GNU long link",
  S: "a sparse file",
};

function text(header: Uint8Array, at: number, length: number, what: string): string {
  const field = header.subarray(at, at + length);
  const end = field.indexOf(0);
  const used = end < 0 ? field : field.subarray(0, end);
  if (end >= 0 && !field.subarray(end).every((byte) => byte === 0)) {
    throw bad("path", `an entry's ${what} holds a NUL character`);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(used);
  } catch {
    throw bad("path", `an entry's ${what} is not UTF-8`);
  }
}

function octal(header: Uint8Array, at: number, length: number, what: string): number {
  let value = 0;
  let digits = 0;
  for (let i = at; i < at + length; i++) {
    const c = header[i];
    if (c === 0 || c === 0x20) {
      if (digits > 0) break;
      continue;
    }
    if (c < 0x30 || c > 0x37) throw bad("tar", `an entry's ${what} is not octal`);
    value = value * 8 + (c - 0x30);
    digits++;
  }
  if (digits === 0) throw bad("tar", `an entry's ${what} is empty`);
  return value;
}

/** Throws unless the path is relative, portable and stays inside the package. */
function checkPath(path: string): void {
  const wrong = pathFault(path);
  if (wrong !== undefined) throw bad("path", `${quote(path)} ${wrong}`);
}

/** The reason why a path is not relative, portable and inside the package; undefined if it is. */
export function pathFault(path: string): string | undefined {
  const { pathBytes, pathDepth } = ARCHIVE_LIMITS;
  if (path === "") return "is an empty path";
  if (new TextEncoder().encode(path).length > pathBytes) return `is longer than ${pathBytes} bytes`;
  if (/[\p{Cc}\p{Cf}]/u.test(path)) return "holds control or invisible characters";
  if (path.startsWith("/")) return "is absolute";
  if (/^[A-Za-z]:/.test(path)) return "has a drive letter";
  if (/[\\:*?"<>|]/.test(path)) return 'holds a character that some systems forbid (\\ : * ? " < > |)';
  const segments = path.split("/");
  if (segments.length > pathDepth) return `is deeper than ${pathDepth} levels`;
  for (const segment of segments) {
    if (segment === "" || segment === ".") return "has an empty or . segment";
    if (segment === "..") return "leads out of the package";
    if (isWindowsDevice(segment)) return `uses ${quote(segment)}, a reserved name on Windows`;
    if (/[. ]$/.test(segment)) return "has a segment that ends in a dot or a space";
  }
  return undefined;
}

/** Writes a canonical tar: the same files give the same bytes on every host. */
export function writeTar(
  files: ReadonlyMap<string, Uint8Array>,
  limits: ArchiveLimits = ARCHIVE_LIMITS,
): Uint8Array {
  const { unpackedBytes } = limits;
  if (files.size > limits.files) {
    throw bad("too-many", `the package holds more than ${limits.files} files`);
  }
  const blocks: Uint8Array[] = [];
  let total = 0;
  for (const path of [...files.keys()].sort()) {
    checkPath(path);
    const bytes = files.get(path)!;
    if (bytes.length > limits.fileBytes) {
      throw bad(
        "too-large",
        `${quote(path)} has ${bytes.length} bytes; at most ${limits.fileBytes} are allowed`,
      );
    }
    const padding = new Uint8Array((BLOCK - bytes.length % BLOCK) % BLOCK);
    blocks.push(writeHeader(path, bytes.length), bytes, padding);
    total += BLOCK + bytes.length + padding.length;
    if (total > unpackedBytes) throw bad("too-large", `the package has more than ${unpackedBytes} bytes`);
  }
  const tar = new Uint8Array(total + 2 * BLOCK);
  let at = 0;
  for (const block of blocks) {
    tar.set(block, at);
    at += block.length;
  }
  return tar;
}

/**
 * Writes a `.tar.gz` of a canonical tar. Compressors differ, so other hosts may write different bytes for the same
 * files.
 */
export function writeArchive(
  files: ReadonlyMap<string, Uint8Array>,
  limits: ArchiveLimits = ARCHIVE_LIMITS,
): Uint8Array<ArrayBuffer> {
  const { packedBytes } = limits;
  const tar = writeTar(files, limits);
  const packed = new Uint8Array(gzipSync(tar, { level: 9, strategy: constants.Z_DEFAULT_STRATEGY }));
  // The header's time and operating system would differ between machines.
  packed.fill(0, 4, 8);
  packed[9] = 0xff;
  if (tar.length > unpackedLimit(packed.length, limits)) {
    throw bad("bomb", `the package compresses more than ${limits.ratio} times, which readers refuse`);
  }
  if (packed.length > packedBytes) {
    throw bad("too-large", `the archive has ${packed.length} bytes; at most ${packedBytes} are allowed`);
  }
  return packed;
}

/** An entry of a tar file. */
export interface TarEntry {
  /** Relative path; that of a folder ends with a slash. */
  readonly path: string;
  readonly mode: number;
  /** The contents of a file. */
  readonly bytes?: Uint8Array;
}

/** A tar file with these entries, in their order, without times and owners. */
export function tarFile(entries: readonly TarEntry[]): Uint8Array {
  const blocks = (bytes: number) => Math.ceil(bytes / BLOCK) * BLOCK;
  const total = entries.reduce((sum, { bytes }) => sum + BLOCK + blocks(bytes?.length ?? 0), 2 * BLOCK);
  const tar = new Uint8Array(total);
  let at = 0;
  for (const { path, mode, bytes = new Uint8Array() } of entries) {
    tar.set(writeHeader(path, bytes.length, mode), at);
    tar.set(bytes, at + BLOCK);
    at += BLOCK + blocks(bytes.length);
  }
  return tar;
}

const FILE_TYPE = "0";
const FOLDER_TYPE = "5";

function writeHeader(path: string, size: number, mode = 0o644): Uint8Array {
  const header = new Uint8Array(BLOCK);
  const bytes = new TextEncoder().encode(path);
  let name = bytes;
  if (bytes.length > 100) {
    // ustar splits at a slash: up to 155 bytes before it, up to 100 after.
    let cut = -1;
    for (let i = Math.max(0, bytes.length - 101); i < bytes.length && i <= 155; i++) {
      if (bytes[i] === 0x2f) {
        cut = i;
        break;
      }
    }
    if (cut < 1) throw bad("path", `${quote(path)} does not fit into a ustar header`, "shorten the file name");
    header.set(bytes.subarray(0, cut), 345);
    name = bytes.subarray(cut + 1);
  }
  header.set(name, 0);
  const put = (text: string, at: number): void => header.set(new TextEncoder().encode(text), at);
  put(`${mode.toString(8).padStart(7, "0")}\0`, 100);
  put("0000000\0", 108);
  put("0000000\0", 116);
  put(`${size.toString(8).padStart(11, "0")}\0`, 124);
  put("00000000000\0", 136);
  put("        ", 148);
  put(path.endsWith("/") ? FOLDER_TYPE : FILE_TYPE, 156);
  put("ustar\u000000", 257);
  let sum = 0;
  for (const byte of header) sum += byte;
  put(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return header;
}

const CRC_TABLE = new Uint32Array(256).map((_, n) => {
  let c = n;
  for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c;
});

function crc32(bytes: Uint8Array): number {
  let c = 0xffffffff;
  for (let i = 0; i < bytes.length; i++) c = CRC_TABLE[(c ^ bytes[i]) & 0xff] ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
}
