/**
 * Strings in memory (Canonical ABI, load_string_from_range and store_string_into_range). In: a memory, an encoding, a
 * pointer and a number of code units, or a string. Out: the string, or the pointer and the number of code units.
 * Invariant: a string that comes from another component is stored with exactly the calls of `realloc` that the
 * specification prescribes for its encoding there; one that comes from JavaScript is stored with a single allocation.
 *
 * A number of code units is negative if the string is tagged as UTF-16 (`latin1+utf16`): −1 − units.
 */
import type { StringEncoding } from "../model/canon.ts";
import { BYTES_PER_CHECK, type GuestMemory } from "./guest_memory.ts";
import { MAX_RANGE_BYTES } from "./layout.ts";
import { trap } from "./traps.ts";

/** A string lifted from a component for another one. */
export interface ForeignString {
  readonly text: string;
  /** The encoding in the source; a string of `latin1+utf16` has the encoding of its tag. */
  readonly encoding: "utf8" | "utf16" | "latin1" | "tagged utf16";
  readonly units: number;
}

const utf8Decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const utf16Decoder = new TextDecoder("utf-16le", { fatal: true, ignoreBOM: true });
const utf8Encoder = new TextEncoder();

/** Up to this many bytes of ASCII are decoded without TextDecoder, whose calls cost more. */
const SHORT = 24;

/** The code units of a string that are stored between two checks of the time. */
const UNITS_PER_CHECK = BYTES_PER_CHECK >> 1;

/** Strings of V8 up to this length are flat, however they are made; longer sums keep their parts. */
const FLAT = 12;

/** Checks the range of a string to be lifted, and charges for its code units. */
function checkRange(memory: GuestMemory, pointer: number, units: number, unitBytes: number, align: number): void {
  const bytes = units * unitBytes;
  if (bytes > MAX_RANGE_BYTES) trap("string is too long");
  if (pointer % align !== 0) trap("string pointer is not aligned");
  if (pointer + bytes > memory.u8.length) trap("string is out of bounds of the memory");
  memory.charge(2 * units);
}

/** The string of `units` code units at `pointer`. */
export function liftText(memory: GuestMemory, encoding: StringEncoding, pointer: number, units: number): string {
  switch (encoding) {
    case "utf8":
      checkRange(memory, pointer, units, 1, 1);
      return decodeUtf8(memory, pointer, units);
    case "utf16":
      checkRange(memory, pointer, units, 2, 2);
      return decodeUtf16(memory, pointer, units);
    case "latin1+utf16":
      if (units < 0) {
        checkRange(memory, pointer, -1 - units, 2, 2);
        return decodeUtf16(memory, pointer, -1 - units);
      }
      checkRange(memory, pointer, units, 1, 2);
      return decodeLatin1(memory, pointer, units);
  }
}

/** The string with its encoding, for another component. */
export function liftForeign(
  memory: GuestMemory,
  encoding: StringEncoding,
  pointer: number,
  units: number,
): ForeignString {
  const text = liftText(memory, encoding, pointer, units);
  if (encoding !== "latin1+utf16") return { text, encoding, units };
  return units < 0 ? { text, encoding: "tagged utf16", units: -1 - units } : { text, encoding: "latin1", units };
}

function decodeUtf8(memory: GuestMemory, pointer: number, bytes: number): string {
  if (bytes <= SHORT) {
    const end = pointer + bytes;
    const middle = Math.min(pointer + FLAT, end);
    const first = decodeAscii(memory.u8, pointer, middle);
    const second = first === undefined ? undefined : decodeAscii(memory.u8, middle, end);
    if (second !== undefined) {
      memory.spend(2 * bytes);
      return first! + second;
    }
  }
  return decodeBytes(memory, utf8Decoder, pointer, bytes);
}

/** The string of the bytes from `start` to `end`; undefined if one is not ASCII. */
function decodeAscii(u8: Uint8Array, start: number, end: number): string | undefined {
  let text = "";
  for (let at = start; at < end; at++) {
    const byte = u8[at];
    if (byte > 0x7f) return undefined;
    text += String.fromCharCode(byte);
  }
  return text;
}

function decodeUtf16(memory: GuestMemory, pointer: number, units: number): string {
  return decodeBytes(memory, utf16Decoder, pointer, 2 * units);
}

/** Decodes a string by `decoder`; a long one in pieces, so that it ends at the limits of the call. */
function decodeBytes(memory: GuestMemory, decoder: TextDecoder, pointer: number, bytes: number): string {
  if (bytes <= BYTES_PER_CHECK) {
    memory.spend(2 * bytes);
    return decodePiece(decoder, memory.u8.subarray(pointer, pointer + bytes), false);
  }
  const pieces = new TextDecoder(decoder.encoding, { fatal: true, ignoreBOM: true });
  let text = "";
  for (let at = 0; at < bytes; at += BYTES_PER_CHECK) {
    const end = Math.min(at + BYTES_PER_CHECK, bytes);
    memory.spend(2 * (end - at));
    text += decodePiece(pieces, memory.u8.subarray(pointer + at, pointer + end), end < bytes);
  }
  return text;
}

function decodePiece(decoder: TextDecoder, piece: Uint8Array, stream: boolean): string {
  try {
    return decoder.decode(piece, { stream });
  } catch {
    return trap(`string is not valid ${decoder.encoding === "utf-8" ? "UTF-8" : "UTF-16"}`);
  }
}

function decodeLatin1(memory: GuestMemory, pointer: number, bytes: number): string {
  const parts: string[] = [];
  const end = pointer + bytes;
  for (let at = pointer; at < end; at += 4096) {
    const part = memory.u8.subarray(at, Math.min(at + 4096, end));
    memory.spend(2 * part.length);
    parts.push(String.fromCharCode(...part));
  }
  return parts.join("");
}

/** The number of code units of the string that was stored last, as its encoding counts and tags them. */
let storedUnits = 0;

/** The number of code units of the string that {@linkcode lowerText} stored last. */
export function unitsStored(): number {
  return storedUnits;
}

/** Stores `value` and returns its pointer; {@linkcode unitsStored} returns its length. */
export function lowerText(memory: GuestMemory, encoding: StringEncoding, value: unknown): number {
  if (typeof value !== "string") {
    if (isForeign(value)) return storeForeign(memory, encoding, value);
    throw new TypeError(`Expected a string, not ${typeof value}`);
  }
  const text = value.isWellFormed() ? value : value.toWellFormed();
  if (encoding === "utf8") return storeAsUtf8(memory, text);
  if (encoding === "utf16") return storeUtf16(memory, text, text.length);
  return isLatin1(memory, text) ? storeLatin1(memory, text) : storeUtf16(memory, text, -1 - text.length);
}

function isForeign(value: unknown): value is ForeignString {
  return typeof value === "object" && value !== null && "encoding" in value && "units" in value;
}

/** Checks the time before the code units of `text` from `at` on, if a new piece begins there. */
function checkPiece(memory: GuestMemory, text: string, at: number): void {
  if (at % UNITS_PER_CHECK === 0) memory.checkTime(2 * Math.min(text.length - at, UNITS_PER_CHECK));
}

function isLatin1(memory: GuestMemory, text: string): boolean {
  return prefixUpTo(memory, text, 0xff) === text.length;
}

/** The code units of `text` before the first one that is greater than `most`. */
function prefixUpTo(memory: GuestMemory, text: string, most: number): number {
  for (let k = 0; k < text.length; k++) {
    checkPiece(memory, text, k);
    if (text.charCodeAt(k) > most) return k;
  }
  return text.length;
}

/** The UTF-8 form of `text`, which is well-formed. */
function encodeUtf8(memory: GuestMemory, text: string): Uint8Array {
  if (text.length <= UNITS_PER_CHECK) {
    memory.checkTime(2 * text.length);
    return utf8Encoder.encode(text);
  }
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for (let start = 0, end = 0; start < text.length; start = end) {
    end = Math.min(start + UNITS_PER_CHECK, text.length);
    const splitsPair = end < text.length && text.codePointAt(end - 1)! > 0xffff;
    if (splitsPair) end--;
    memory.checkTime(2 * (end - start));
    const part = utf8Encoder.encode(text.slice(start, end));
    parts.push(part);
    bytes += part.length;
  }
  const encoded = new Uint8Array(bytes);
  let at = 0;
  for (const part of parts) {
    encoded.set(part, at);
    at += part.length;
  }
  return encoded;
}

function storeAsUtf8(memory: GuestMemory, text: string): number {
  const units = text.length;
  if (units <= SHORT && isAscii(text)) {
    const pointer = memory.allocate(1, units);
    const { u8 } = memory;
    for (let k = 0; k < units; k++) u8[pointer + k] = text.charCodeAt(k);
    storedUnits = units;
    return pointer;
  }
  // The length is known only afterwards, and counting costs more than copying.
  const encoded = 3 * units <= SCRATCH.length
    ? SCRATCH.subarray(0, utf8Encoder.encodeInto(text, SCRATCH).written)
    : encodeUtf8(memory, text);
  checkLength(encoded.length);
  const pointer = memory.allocate(1, encoded.length);
  memory.write(encoded, pointer);
  storedUnits = encoded.length;
  return pointer;
}

/** Holds the UTF-8 form of one string between its encoding and its copy, during which no other string is encoded. */
const SCRATCH = new Uint8Array(1 << 16);

function isAscii(text: string): boolean {
  for (let k = 0; k < text.length; k++) if (text.charCodeAt(k) > 0x7f) return false;
  return true;
}

/** A string of more bytes than a component may receive cannot be lowered. */
function checkLength(bytes: number): void {
  if (bytes > MAX_RANGE_BYTES) trap("string is too long");
}

function storeUtf16(memory: GuestMemory, text: string, units: number): number {
  checkLength(2 * text.length);
  const pointer = memory.allocate(2, 2 * text.length);
  writeUtf16(memory, pointer, text);
  storedUnits = units;
  return pointer;
}

function writeUtf16(memory: GuestMemory, pointer: number, text: string): void {
  const units = new Uint16Array(memory.u8.buffer, memory.u8.byteOffset + pointer, text.length);
  for (let k = 0; k < text.length; k++) {
    checkPiece(memory, text, k);
    units[k] = text.charCodeAt(k);
  }
}

function storeLatin1(memory: GuestMemory, text: string): number {
  checkLength(text.length);
  const pointer = memory.allocate(2, text.length);
  writeLatin1(memory, pointer, text);
  storedUnits = text.length;
  return pointer;
}

function writeLatin1(memory: GuestMemory, pointer: number, text: string): void {
  const { u8 } = memory;
  for (let k = 0; k < text.length; k++) {
    checkPiece(memory, text, k);
    u8[pointer + k] = text.charCodeAt(k);
  }
}

function storeForeign(memory: GuestMemory, to: StringEncoding, value: ForeignString): number {
  const { encoding, units, text } = value;
  switch (to) {
    case "utf8":
      if (encoding === "utf8") return storeAsUtf8(memory, text);
      return growToUtf8(memory, text, units, encoding === "latin1" ? 2 * units : 3 * units);
    case "utf16":
      if (encoding === "utf8") return shrinkToUtf16(memory, text, units);
      return storeUtf16(memory, text, text.length);
    case "latin1+utf16":
      if (encoding === "latin1") return storeLatin1(memory, text);
      if (encoding === "tagged utf16") return narrowUtf16(memory, text);
      return growFromLatin1(memory, text, units);
  }
}

/** store_string_to_utf8: begins with one byte per code unit. */
function growToUtf8(memory: GuestMemory, text: string, units: number, worst: number): number {
  let pointer = memory.allocate(1, units);
  const bytes = encodeUtf8(memory, text);
  const plain = prefixUpTo(memory, text, 0x7f);
  if (plain === bytes.length) {
    memory.write(bytes, pointer);
    storedUnits = units;
    return pointer;
  }
  memory.write(bytes.subarray(0, plain), pointer);
  pointer = memory.reallocate(pointer, units, 1, worst);
  memory.write(bytes.subarray(plain), pointer + plain);
  if (worst > bytes.length) pointer = memory.reallocate(pointer, worst, 1, bytes.length);
  storedUnits = bytes.length;
  return pointer;
}

/** store_utf8_to_utf16: begins with two bytes per byte. */
function shrinkToUtf16(memory: GuestMemory, text: string, units: number): number {
  const worst = 2 * units;
  let pointer = memory.allocate(2, worst);
  writeUtf16(memory, pointer, text);
  const bytes = 2 * text.length;
  if (bytes < worst) pointer = memory.reallocate(pointer, worst, 2, bytes);
  storedUnits = text.length;
  return pointer;
}

/** store_string_to_latin1_or_utf16: Latin-1 until a character does not fit. */
function growFromLatin1(memory: GuestMemory, text: string, units: number): number {
  let pointer = memory.allocate(2, units);
  const narrow = prefixUpTo(memory, text, 0xff);
  writeLatin1(memory, pointer, text.slice(0, narrow));
  if (narrow === text.length) {
    if (narrow < units) pointer = memory.reallocate(pointer, units, 2, narrow);
    storedUnits = narrow;
    return pointer;
  }
  const worst = 2 * units;
  pointer = memory.reallocate(pointer, units, 2, worst);
  writeUtf16(memory, pointer, text);
  const bytes = 2 * text.length;
  if (worst > bytes) pointer = memory.reallocate(pointer, worst, 2, bytes);
  storedUnits = -1 - text.length;
  return pointer;
}

/** store_probably_utf16_to_latin1_or_utf16. */
function narrowUtf16(memory: GuestMemory, text: string): number {
  const bytes = 2 * text.length;
  let pointer = memory.allocate(2, bytes);
  writeUtf16(memory, pointer, text);
  if (!isLatin1(memory, text)) {
    storedUnits = -1 - text.length;
    return pointer;
  }
  writeLatin1(memory, pointer, text);
  pointer = memory.reallocate(pointer, bytes, 1, text.length);
  storedUnits = text.length;
  return pointer;
}
