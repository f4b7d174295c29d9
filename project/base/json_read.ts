/**
 * Strict JSON reader that records the position of every key and value.
 *
 * In: bytes of a file. Out: the value, its duplicate keys, and a mapping from JSON pointers to line and column;
 * or the failure class that stopped the reading (too-large, encoding, conflict-markers, syntax). Objects have no
 * prototype, so `__proto__`, `constructor` and `valueOf` are ordinary keys. The text is one RFC 8259 value: the visitor
 * of jsonc-parser gives the positions, JSON.parse must agree, and depth is bounded before either runs.
 */
import { type JSONVisitor, printParseErrorCode, visit } from "jsonc-parser";
import { type Diagnostic, quote, readablePointer, stepInto } from "./diagnostic.ts";

/** Any JSON value. */
export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;

/** A JSON object without a prototype. */
export interface JsonObject {
  [key: string]: JsonValue;
}

/** Longest key of an object. */
const MAX_KEY = 1000;

/** Most repeated keys that are reported. */
const MAX_DUPLICATES = 100;

/** A line and a column, both counted from 1. */
interface Place {
  readonly line: number;
  readonly column: number;
}

/** A JSON document with positions. */
export interface JsonDocument {
  readonly file: string;
  readonly text: string;
  readonly value: JsonValue;
  /** One finding per repeated key. */
  readonly duplicates: readonly Diagnostic[];
  /** Place of a pointer's key (or its value); the nearest enclosing one when the pointer does not exist. */
  place(pointer: string, part?: "key" | "value"): Place;
}

/** Bounds and names for a reading. */
interface JsonReadOptions {
  /** File name used in findings. */
  readonly file: string;
  /** First part of the codes: `lock`, `manifest`, `catalog`. */
  readonly codes: string;
  readonly maxBytes: number;
  readonly maxDepth?: number;
}

/** Either a document or the findings that say why there is none. */
export type JsonReading =
  | { readonly ok: true; readonly document: JsonDocument }
  | { readonly ok: false; readonly diagnostics: readonly Diagnostic[]; readonly text?: string };

/** An object without a prototype. */
export function emptyObject(): JsonObject {
  return Object.create(null) as JsonObject;
}

/** True for a JSON object. */
export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Reads a JSON value strictly. */
export function readJson(bytes: Uint8Array, options: JsonReadOptions): JsonReading {
  const { file, codes, maxBytes } = options;
  const maxDepth = options.maxDepth ?? 64;
  const stop = (code: string, message: string, more: Partial<Diagnostic> = {}): JsonReading => ({
    ok: false,
    diagnostics: [{ code: `${codes}.${code}`, severity: "error", message, file, ...more }],
  });
  if (bytes.length > maxBytes) {
    return stop("too-large", `the file has ${bytes.length} bytes; at most ${maxBytes} are allowed`);
  }
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    return stop("encoding", "the file starts with a byte order mark", {
      line: 1,
      column: 1,
      help: "save it as UTF-8 without BOM",
    });
  }
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    const offset = firstBadUtf8(bytes);
    const before = new TextDecoder().decode(bytes.subarray(0, offset));
    return stop("encoding", `byte ${offset} is not valid UTF-8`, placeOf(lineStarts(before), before.length));
  }
  const starts = lineStarts(text);
  const marker = /^(?:<{7}|={7}|>{7}|\|{7})(?:[ \r].*)?$/m.exec(text);
  if (marker !== null) {
    const ours = /^<{7} ?(.*)$/m.exec(text)?.[1]?.trim() || "one side";
    const theirs = /^>{7} ?(.*)$/m.exec(text)?.[1]?.trim() || "the other side";
    const reading = stop(
      "conflict-markers",
      `the file contains an unresolved merge of ${quote(ours, 60)} and ${quote(theirs, 60)}`,
      {
        ...placeOf(starts, marker.index),
        help: codes === "lock" ? "run `waft add` to merge and re-resolve" : "resolve the merge and save the file",
      },
    );
    return { ...reading, text } as JsonReading;
  }
  const deep = firstTooDeep(text, maxDepth);
  if (deep >= 0) return stop("syntax", `nested deeper than ${maxDepth} levels`, placeOf(starts, deep));
  return readText(text, starts, options, stop);
}

type Stop = (code: string, message: string, more?: Partial<Diagnostic>) => JsonReading;

/** Positions of the members of an object or array. */
interface Members {
  /** By key, or by index as text. */
  readonly offsets: Map<string, { key: number; value: number }>;
}

function readText(text: string, starts: readonly number[], options: JsonReadOptions, stop: Stop): JsonReading {
  const builder = new DocumentBuilder(text, starts, options);
  visit(text, builder.visitor(), { disallowComments: true, allowTrailingComma: false, allowEmptyContent: false });
  const { root, encodingFault } = builder;
  const fault = builder.syntaxFault ?? strictFault(text);
  if (fault !== undefined || root === undefined) {
    const { message, offset } = fault ?? { message: "a value is expected", offset: 0 };
    return stop("syntax", message, placeOf(starts, Math.min(offset, text.length)));
  }
  if (encodingFault >= 0) {
    return stop("encoding", "a string contains an unpaired surrogate or a NUL", placeOf(starts, encodingFault));
  }
  const { file } = options;
  const place: JsonDocument["place"] = (pointer, part = "value") => placeOf(starts, builder.find(pointer)[part]);
  return { ok: true, document: { file, text, value: root, duplicates: builder.duplicates, place } };
}

interface SyntaxFault {
  readonly message: string;
  readonly offset: number;
}

/** The fault of a text that only the host's parser refuses. */
function strictFault(text: string): SyntaxFault | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch {
    return { message: "this is not JSON", offset: 0 };
  }
}

/**
 * Builds the value of a text from the events of the parser, and remembers the positions of its parts. Positions are
 * kept per container, not per pointer: the pointers of a hostile file could be many times longer than the file.
 */
class DocumentBuilder {
  readonly duplicates: Diagnostic[] = [];
  root: JsonValue | undefined;
  syntaxFault: SyntaxFault | undefined;
  /** The offset of the first string that databases and system calls cannot hold; -1 if there is none. */
  encodingFault = -1;
  #rootOffset = 0;
  readonly #text: string;
  readonly #starts: readonly number[];
  readonly #options: JsonReadOptions;
  readonly #members = new Map<JsonValue, Members>();
  readonly #stack: { value: JsonValue[] | JsonObject; own: Members; key: string }[] = [];

  constructor(text: string, starts: readonly number[], options: JsonReadOptions) {
    this.#text = text;
    this.#starts = starts;
    this.#options = options;
  }

  visitor(): JSONVisitor {
    const close = () => void this.#stack.pop();
    return {
      onObjectBegin: (offset) => this.#open(emptyObject(), offset),
      onObjectProperty: (name, offset) => this.#addKey(name, offset),
      onObjectEnd: close,
      onArrayBegin: (offset) => this.#open([], offset),
      onArrayEnd: close,
      onLiteralValue: (value, offset, length) => this.#addLiteral(value, offset, length),
      onError: (error, offset) => this.#fault(EXPLAIN[printParseErrorCode(error)] ?? "this is not JSON", offset),
    };
  }

  /** The offsets of the part at a JSON pointer, or of the innermost one on the way to it. */
  find(pointer: string): { key: number; value: number } {
    let value = this.root;
    let found = { key: this.#rootOffset, value: this.#rootOffset };
    for (const raw of pointer.split("/").slice(1)) {
      const step = raw.replaceAll("~1", "/").replaceAll("~0", "~");
      const next = value === undefined ? undefined : this.#members.get(value)?.offsets.get(step);
      if (next === undefined) break;
      found = next;
      value = Array.isArray(value) ? value[Number(step)] : isObject(value) ? value[step] : undefined;
    }
    return found;
  }

  /** Reports the first fault only: the others may follow from it. */
  #fault(message: string, offset: number): void {
    this.syntaxFault ??= { message, offset };
  }

  #put(value: JsonValue, offset: number): void {
    const top = this.#stack.at(-1);
    if (top === undefined) {
      if (this.root === undefined) this.#rootOffset = offset;
      this.root ??= value;
    } else if (Array.isArray(top.value)) {
      top.own.offsets.set(String(top.value.length), { key: offset, value: offset });
      top.value.push(value);
    } else {
      top.value[top.key] = value;
      top.own.offsets.get(top.key)!.value = offset;
    }
  }

  #open(value: JsonValue[] | JsonObject, offset: number): void {
    this.#put(value, offset);
    const own = { offsets: new Map() };
    this.#members.set(value, own);
    this.#stack.push({ value, own, key: "" });
  }

  #addKey(name: string, offset: number): void {
    const top = this.#stack.at(-1);
    if (top === undefined || Array.isArray(top.value)) return;
    top.key = name;
    if (name.length > MAX_KEY) this.#fault(`a key has more than ${MAX_KEY} characters`, offset);
    this.#checkEncoding(name, offset);
    const known = top.own.offsets.get(name);
    if (known !== undefined && this.duplicates.length < MAX_DUPLICATES) this.#addDuplicate(name, known.key, offset);
    top.own.offsets.set(name, { key: offset, value: offset });
  }

  #addDuplicate(name: string, first: number, offset: number): void {
    const { file, codes } = this.#options;
    const pointer = this.#pointerOf(name);
    const container = readablePointer(pointer.slice(0, pointer.lastIndexOf("/")));
    this.duplicates.push({
      code: `${codes}.duplicate-key`,
      severity: "error",
      message: `${quote(name)} appears twice in ${container} (first in line ${placeOf(this.#starts, first).line})`,
      file,
      ...placeOf(this.#starts, offset),
      pointer,
      help: "keep one of the two",
    });
  }

  #pointerOf(key: string): string {
    let pointer = "";
    for (const { value, key } of this.#stack.slice(0, -1)) {
      pointer = stepInto(pointer, Array.isArray(value) ? value.length - 1 : key);
    }
    return stepInto(pointer, key);
  }

  #addLiteral(value: unknown, offset: number, length: number): void {
    if (typeof value === "number") this.#checkNumber(value, this.#text.slice(offset, offset + length), offset);
    if (typeof value === "string") this.#checkEncoding(value, offset);
    this.#put(value as JsonValue, offset);
  }

  /** An integer outside the safe range would silently change its value. */
  #checkNumber(value: number, digits: string, offset: number): void {
    const isLossy = /^-?[0-9]+$/.test(digits) && !Number.isSafeInteger(value);
    if (Number.isFinite(value) && !isLossy) return;
    this.#fault(`the number ${quote(digits, 40)} cannot be represented exactly`, offset);
  }

  #checkEncoding(text: string, offset: number): void {
    const isSound = text.isWellFormed() && !text.includes("\0");
    if (!isSound && this.encodingFault < 0) this.encodingFault = offset;
  }
}

/** jsonc-parser's names of errors in our words. */
const EXPLAIN: { readonly [name: string]: string } = {
  InvalidSymbol: "this word is not JSON",
  InvalidNumberFormat: "this is not a JSON number",
  PropertyNameExpected: "a property name in double quotes is expected (JSON allows no trailing comma)",
  ValueExpected: "a value is expected (JSON allows no trailing comma)",
  ColonExpected: "a colon is expected",
  CommaExpected: "a comma is expected",
  CloseBraceExpected: "a closing brace is expected",
  CloseBracketExpected: "a closing bracket is expected",
  EndOfFileExpected: "unexpected data after the JSON value",
  InvalidCommentToken: "comments are not allowed",
  UnexpectedEndOfComment: "comments are not allowed",
  UnexpectedEndOfString: "unterminated string",
  UnexpectedEndOfNumber: "incomplete number",
  InvalidUnicode: "a \\u escape needs four hexadecimal digits",
  InvalidEscapeCharacter: "invalid escape sequence",
  InvalidCharacter: "control characters must be escaped",
};

/** Offset of the bracket that exceeds the allowed depth, or -1; ignores brackets in strings. */
function firstTooDeep(text: string, maxDepth: number): number {
  let depth = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (quoted) {
      if (c === 0x5c) i++;
      else if (c === 0x22 || c === 0x0a) quoted = false;
    } else if (c === 0x22) quoted = true;
    else if (c === 0x7b || c === 0x5b) {
      if (++depth > maxDepth) return i;
    } else if (c === 0x7d || c === 0x5d) depth--;
  }
  return -1;
}

/** Offset of the first byte that does not continue valid UTF-8, by halving. */
function firstBadUtf8(bytes: Uint8Array): number {
  let low = 0;
  let high = bytes.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    try {
      new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(0, middle), { stream: true });
      low = middle;
    } catch {
      high = middle - 1;
    }
  }
  return low;
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let i = text.indexOf("\n"); i >= 0; i = text.indexOf("\n", i + 1)) starts.push(i + 1);
  return starts;
}

function placeOf(starts: readonly number[], offset: number): Place {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle] <= offset) low = middle;
    else high = middle - 1;
  }
  return { line: low + 1, column: offset - starts[low] + 1 };
}
