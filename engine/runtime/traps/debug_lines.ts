/**
 * Source locations of instructions, from the DWARF line tables of a module (custom sections .debug_line,
 * .debug_line_str and .debug_str; format versions 2 to 5: DWARF 5, section 6.2, and "DWARF for WebAssembly"). In: the
 * custom sections of a module. Out: a function from offsets in the contents of the code section, which are the
 * addresses of that format, to file, line and column.
 *
 * The input is untrusted: malformed units are skipped, and so are rows of code that the linker removed (their address
 * is 0 or near the end of the address space). Invariant: work and memory are bounded by a small multiple of the
 * sections' size: every row needs at least one byte of line-number program, and TextSection bounds the decoding of
 * strings.
 */
import { ByteReader } from "../../base/bytes.ts";
import type { SourcePlace } from "../../base/errors.ts";
import type { CustomSection } from "../../wasm/module.ts";

/** Maps an offset in the contents of the code section to its source location. */
export type DebugLines = (codeOffset: number) => SourcePlace | undefined;

const OP = {
  COPY: 1,
  ADVANCE_PC: 2,
  ADVANCE_LINE: 3,
  SET_FILE: 4,
  SET_COLUMN: 5,
  CONST_ADD_PC: 8,
  FIXED_ADVANCE_PC: 9,
};
const EXTENDED = { END_SEQUENCE: 1, SET_ADDRESS: 2 };
const FORM = {
  DATA2: 0x05,
  DATA4: 0x06,
  DATA8: 0x07,
  STRING: 0x08,
  BLOCK: 0x09,
  DATA1: 0x0b,
  STRP: 0x0e,
  UDATA: 0x0f,
  DATA16: 0x1e,
  LINE_STRP: 0x1f,
};
const CONTENT = { PATH: 1, DIRECTORY: 2 };
/** Addresses from here on are tombstones of removed code. */
const TOMBSTONES = 0xfffffff0;
/** Words per row: address, file, line, column. */
const ROW = 4;

/** The rows of all units, and sequences of rows with ascending addresses. */
interface Lines {
  rows: Uint32Array;
  length: number;
  files: string[];
  /** Per sequence: the first row, and the row after the last. */
  sequences: { from: number; to: number }[];
}

/** String sections that line tables refer to. */
interface Strings {
  str: TextSection;
  lineStr: TextSection;
}

/** Paths of this many UTF-16 units or more are treated as unknown. */
const MAX_PATH = 1024;
/** Maximum number of bytes decoded from a string section, as a multiple of its size. */
const MAX_COPIES = 8;

/**
 * A section of zero-terminated strings. Entries may refer to the same bytes any number of times, so the string at each
 * offset is decoded once, and all strings together have at most {@linkcode MAX_COPIES} times the size of the section.
 * Tools let strings share their tails, but not often enough to reach that limit.
 */
export class TextSection {
  readonly #bytes: Uint8Array;
  readonly #texts = new Map<number, string>();
  #left: number;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#left = MAX_COPIES * bytes.length;
  }

  /** The text at an offset; empty beyond the end. Throws a RangeError if too much of the section overlaps. */
  at(offset: number): string {
    const known = this.#texts.get(offset);
    if (known !== undefined || offset >= this.#bytes.length) return known ?? "";
    const zero = this.#left < 0 ? -1 : this.#bytes.indexOf(0, offset);
    const end = zero < 0 ? this.#bytes.length : zero;
    this.#left -= end - offset + 1;
    if (this.#left < 0) throw new RangeError("the strings of the debugging information overlap");
    const decoded = text(this.#bytes.subarray(offset, end));
    this.#texts.set(offset, decoded);
    return decoded;
  }
}

/** Reads the line tables of a module; undefined if it has no readable ones. */
export function debugLines(customs: readonly CustomSection[]): DebugLines | undefined {
  const bytesOf = (name: string) => customs.find((section) => section.name === name)?.bytes ?? new Uint8Array(0);
  const section = bytesOf(".debug_line");
  if (section.length === 0) return undefined;
  const lines: Lines = { rows: new Uint32Array(1024), length: 0, files: [], sequences: [] };
  const strings = {
    str: new TextSection(bytesOf(".debug_str")),
    lineStr: new TextSection(bytesOf(".debug_line_str")),
  };
  for (let at = 0; at < section.length;) at = readUnit(section, at, strings, lines);
  if (lines.sequences.length === 0) return undefined;
  const { rows, files, sequences } = lines;
  sequences.sort((a, b) => rows[a.from * ROW] - rows[b.from * ROW]);
  return (codeOffset) => {
    const sequence = sequences[lastBelow(sequences.length, (k) => rows[sequences[k].from * ROW] <= codeOffset)];
    if (sequence === undefined) return undefined;
    const { from, to } = sequence;
    if (rows[(to - 1) * ROW] <= codeOffset) return undefined;
    const at = (from + lastBelow(to - from, (k) => rows[(from + k) * ROW] <= codeOffset)) * ROW;
    const file = files[rows[at + 1]];
    const line = rows[at + 2];
    if (file === undefined || file === "" || line === 0) return undefined;
    return { file, line, ...(rows[at + 3] === 0 ? {} : { column: rows[at + 3] }) };
  };
}

/**
 * Binary search: the last k below `count` for which `holds` is true, given that it is true for a prefix; −1 if for
 * none.
 */
function lastBelow(count: number, holds: (k: number) => boolean): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Reads a little-endian number of `size` bytes. */
export function fixed(reader: ByteReader, size: number): number {
  const bytes = reader.take(size);
  let value = 0;
  for (let k = size - 1; k >= 0; k--) value = value * 256 + bytes[k];
  return value;
}

function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

/** Reads a zero-terminated string. */
export function cString(reader: ByteReader): string {
  const end = reader.bytes.indexOf(0, reader.pos);
  if (end < 0 || end >= reader.end) reader.fail("unterminated string");
  const string = text(reader.take(end - reader.pos));
  reader.pos++;
  return string;
}

/** Reads the unit at `at` and returns the offset of the next one; adds nothing if the unit is malformed. */
function readUnit(section: Uint8Array, at: number, strings: Strings, lines: Lines): number {
  const { length } = lines;
  const sequences = lines.sequences.length;
  const files = lines.files.length;
  let end = section.length;
  try {
    const reader = new ByteReader(section, at);
    let size = fixed(reader, 4);
    const wide = size === 0xffffffff;
    if (wide) size = fixed(reader, 8);
    if (size > reader.left) return end;
    end = reader.pos + size;
    readProgram(new ByteReader(section, reader.pos, end), wide ? 8 : 4, strings, lines);
  } catch {
    lines.length = length;
    lines.sequences.length = sequences;
    lines.files.length = files;
  }
  return end;
}

function readProgram(reader: ByteReader, offsetSize: number, strings: Strings, lines: Lines): void {
  const version = fixed(reader, 2);
  if (version < 2 || version > 5) return;
  if (version === 5) fixed(reader, 2); // sizes of addresses and segment selectors
  const headerLength = fixed(reader, offsetSize);
  const program = reader.pos + headerLength;
  if (headerLength > reader.left) return;
  const minimum = reader.u8();
  if (version >= 4) reader.u8(); // operations per instruction, 1
  reader.u8(); // is_stmt
  const lineBase = (reader.u8() << 24) >> 24;
  const lineRange = reader.u8();
  const opcodeBase = reader.u8();
  const operands = reader.take(Math.max(opcodeBase - 1, 0));
  const firstFile = lines.files.length;
  if (version === 5) readFiles5(reader, offsetSize, strings, lines.files);
  else readFiles(reader, lines.files);
  if (lineRange === 0 || opcodeBase === 0) return;
  reader.pos = program;

  let address = 0, file = 1, line = 1, column = 0;
  let from = lines.length;
  const row = () => addRow(lines, address, firstFile + file - (version === 5 ? 0 : 1), line, column);
  while (reader.left > 0) {
    const op = reader.u8();
    if (op >= opcodeBase) {
      const advance = op - opcodeBase;
      address += Math.trunc(advance / lineRange) * minimum;
      line += lineBase + advance % lineRange;
      row();
    } else if (op === 0) {
      const size = reader.u32();
      if (size === 0) continue;
      const next = reader.pos + size;
      if (size > reader.left) return;
      const extended = reader.u8();
      if (extended === EXTENDED.SET_ADDRESS) address = fixed(reader, size - 1);
      else if (extended === EXTENDED.END_SEQUENCE) {
        row();
        const start = lines.rows[from * ROW];
        if (start !== 0 && start < TOMBSTONES && lines.length - from > 1) {
          lines.sequences.push({ from, to: lines.length });
        } else lines.length = from;
        from = lines.length;
        address = 0, file = 1, line = 1, column = 0;
      }
      reader.pos = next;
    } else if (op === OP.COPY) row();
    else if (op === OP.ADVANCE_PC) address += reader.u32() * minimum;
    else if (op === OP.ADVANCE_LINE) line += reader.s32();
    else if (op === OP.SET_FILE) file = reader.u32();
    else if (op === OP.SET_COLUMN) column = reader.u32();
    else if (op === OP.CONST_ADD_PC) address += Math.trunc((255 - opcodeBase) / lineRange) * minimum;
    else if (op === OP.FIXED_ADVANCE_PC) address += fixed(reader, 2);
    else for (let left = operands[op - 1]; left > 0; left--) reader.u32();
  }
  lines.length = from; // an unterminated sequence
}

function addRow(lines: Lines, address: number, file: number, line: number, column: number): void {
  const at = lines.length * ROW;
  if (at === lines.rows.length) {
    const grown = new Uint32Array(at * 2);
    grown.set(lines.rows);
    lines.rows = grown;
  }
  lines.rows[at] = address;
  lines.rows[at + 1] = file;
  lines.rows[at + 2] = line;
  lines.rows[at + 3] = column;
  lines.length++;
}

/** The path of a file in a directory. Empty if it is too long, because many files may refer to one long directory. */
function joined(directory: string | undefined, name: string): string {
  if ((directory?.length ?? 0) + name.length >= MAX_PATH) return "";
  if (directory === undefined || directory === "" || name.startsWith("/")) return name;
  return `${directory.replace(/\/$/, "")}/${name}`;
}

/**
 * Versions 2 to 4: directories are numbered from 1; 0 is the compilation directory, whose name is in another section.
 */
function readFiles(reader: ByteReader, files: string[]): void {
  const directories: string[] = [""];
  for (let name = cString(reader); name !== ""; name = cString(reader)) directories.push(name);
  for (let name = cString(reader); name !== ""; name = cString(reader)) {
    files.push(joined(directories[reader.u32()], name));
    reader.u64();
    reader.u64();
  }
}

/** Version 5: self-describing lists of entries. */
function readFiles5(reader: ByteReader, offsetSize: number, strings: Strings, files: string[]): void {
  const directories: string[] = [];
  readEntries(reader, offsetSize, strings, (name) => directories.push(joined(directories[0], name)));
  readEntries(reader, offsetSize, strings, (name, directory) => files.push(joined(directories[directory], name)));
}

function readEntries(
  reader: ByteReader,
  offsetSize: number,
  strings: Strings,
  add: (name: string, directory: number) => void,
): void {
  const formats: { content: number; form: number }[] = [];
  for (let left = reader.u8(); left > 0; left--) formats.push({ content: reader.u32(), form: reader.u32() });
  for (let left = reader.u32(); left > 0; left--) {
    const before = reader.pos;
    let name = "";
    let directory = 0;
    for (const { content, form } of formats) {
      const value = readForm(reader, form, offsetSize, strings);
      if (content === CONTENT.PATH && typeof value === "string") name = value;
      else if (content === CONTENT.DIRECTORY && typeof value === "number") directory = value;
    }
    if (reader.pos === before) reader.fail("entries without formats");
    add(name, directory);
  }
}

function readForm(reader: ByteReader, form: number, offsetSize: number, strings: Strings): string | number | undefined {
  switch (form) {
    case FORM.STRING:
      return cString(reader);
    case FORM.LINE_STRP:
      return strings.lineStr.at(fixed(reader, offsetSize));
    case FORM.STRP:
      return strings.str.at(fixed(reader, offsetSize));
    case FORM.UDATA:
      return reader.u32();
    case FORM.DATA1:
      return reader.u8();
    case FORM.DATA2:
      return fixed(reader, 2);
    case FORM.DATA4:
      return fixed(reader, 4);
    case FORM.DATA8:
      reader.take(8);
      return undefined;
    case FORM.DATA16:
      reader.take(16);
      return undefined;
    case FORM.BLOCK:
      reader.take(reader.u32());
      return undefined;
  }
  return reader.fail(`form ${form}`);
}
