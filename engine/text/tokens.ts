/**
 * Tokens of the text format as columns: kind, start, end and value, one entry per token (specification, 6.3). The lexer
 * fills them, parsers index them.
 *
 * Invariant: the last two tokens are END or ERROR, so a lookahead of one token needs no check.
 */
import type { SourcePlace } from "../base/errors.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import { SymbolTable } from "./symbols.ts";

/** Kinds of tokens. Plain constants, so that hot comparisons are of small integers. */
export const END = 0;
export const LEFT = 1;
export const RIGHT = 2;
/** `value` is the keyword's number in keywords.ts, −1 for an unknown word. */
export const KEYWORD = 3;
/** `value` is the symbol of the identifier. */
export const ID = 4;
/** `value` is 1 if the string has escapes. */
export const STRING = 5;
/** Unsigned integer, signed integer, floating-point number. */
export const NAT = 6;
export const INT = 7;
export const FLOAT = 8;
/** The opening of a known annotation; `value` is one of ANNOTATION. Its content and `)` follow as tokens. */
export const ANNOTATION = 9;
/** Not a token of the language; `value` is 1 for an identifier without a name. */
export const RESERVED = 10;
/** The end of lexing by an error; the message is `Tokens.problem`. */
export const ERROR = 11;

/** Known annotations (specification, appendix A.5 to A.7); `value` of an ANNOTATION token. */
export const ANNOTATIONS = ["custom", "name", "metadata.code.branch_hint"] as const;
export const CUSTOM_ANNOTATION = 0;
export const NAME_ANNOTATION = 1;
export const BRANCH_HINT_ANNOTATION = 2;

export class Tokens {
  readonly source: Uint8Array;
  /** Identifiers of the whole source, shared by everything parsed from it. */
  readonly symbols: SymbolTable = new SymbolTable();
  kinds: Uint8Array;
  starts: Int32Array;
  ends: Int32Array;
  values: Int32Array;
  count = 0;
  /** The message of the ERROR token. */
  problem = "";
  #lines: Int32Array | undefined;

  constructor(source: Uint8Array) {
    this.source = source;
    const room = Math.min(source.length >> 2, 1 << 20) + 16;
    this.kinds = new Uint8Array(room);
    this.starts = new Int32Array(room);
    this.ends = new Int32Array(room);
    this.values = new Int32Array(room);
  }

  push(kind: number, start: number, end: number, value: number): void {
    const at = this.count++;
    if (at === this.kinds.length) this.#grow();
    this.kinds[at] = kind;
    this.starts[at] = start;
    this.ends[at] = end;
    this.values[at] = value;
  }

  /** All of the source text of a token. */
  wholeText(token: number): string {
    return decodeUtf8(this.source, this.starts[token], this.ends[token]) ?? "";
  }

  /** The source text of a token, truncated if it is long: for messages. */
  textOf(token: number): string {
    const start = this.starts[token];
    const end = this.ends[token];
    const cut = Math.min(end, start + 60);
    const text = new TextDecoder().decode(this.source.subarray(start, cut));
    return cut < end ? text + "…" : text;
  }

  /** Line of a byte offset, from 1. */
  lineOf(offset: number): number {
    const lines = this.#lines ??= lineStarts(this.source);
    let low = 0;
    let high = lines.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (lines[middle] <= offset) low = middle;
      else high = middle - 1;
    }
    return low + 1;
  }

  /** Line and column of a byte offset; both from 1, columns counted in characters. */
  placeOf(offset: number): SourcePlace {
    const line = this.lineOf(offset);
    let column = 1;
    for (let i = this.#lines![line - 1]; i < offset; i++) if ((this.source[i] & 0xc0) !== 0x80) column++;
    return { line, column };
  }

  #grow(): void {
    const room = this.kinds.length * 2;
    const kinds = new Uint8Array(room);
    kinds.set(this.kinds);
    this.kinds = kinds;
    for (const name of ["starts", "ends", "values"] as const) {
      const column = new Int32Array(room);
      column.set(this[name]);
      this[name] = column;
    }
  }
}

/** Offsets where lines begin. `\n`, `\r` and `\r\n` each end one line. */
function lineStarts(source: Uint8Array): Int32Array {
  let count = 1;
  for (let i = 0; i < source.length; i++) if (endsLine(source, i)) count++;
  const starts = new Int32Array(count);
  let line = 1;
  for (let i = 0; i < source.length; i++) if (endsLine(source, i)) starts[line++] = i + 1;
  return starts;
}

function endsLine(source: Uint8Array, i: number): boolean {
  return source[i] === 0x0a || (source[i] === 0x0d && source[i + 1] !== 0x0a);
}
