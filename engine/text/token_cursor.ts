/**
 * A position in a run of tokens, with the operations that every parser of the text format needs: test for `(keyword`,
 * parse a name, a string or an index, and report an unexpected token with line and column.
 *
 * Invariant: `at` never passes the final END or ERROR token, because only matched tokens are consumed and no parser
 * matches those two.
 */
import { InvalidError, MalformedError } from "../base/errors.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import { INTEGER, numberKind, readInteger, readMagnitude } from "./number_text.ts";
import { decodeString } from "./string_text.ts";
import { NO_SYMBOL } from "./symbols.ts";
import {
  ANNOTATION,
  ANNOTATIONS,
  END,
  ERROR,
  ID,
  KEYWORD,
  LEFT,
  NAME_ANNOTATION,
  NAT,
  RESERVED,
  RIGHT,
  STRING,
  type Tokens,
} from "./tokens.ts";

export class TokenCursor {
  readonly tokens: Tokens;
  readonly kinds: Uint8Array;
  readonly values: Int32Array;
  at: number;

  constructor(tokens: Tokens, at = 0) {
    this.tokens = tokens;
    this.kinds = tokens.kinds;
    this.values = tokens.values;
    this.at = at;
  }

  /** Kind of the current token. */
  get kind(): number {
    return this.kinds[this.at];
  }

  isKeyword(keyword: number): boolean {
    return this.kinds[this.at] === KEYWORD && this.values[this.at] === keyword;
  }

  isUnknownKeyword(): boolean {
    return this.isKeyword(-1);
  }

  /** The keyword after an opening parenthesis at the cursor, −1 if there is none. */
  openKeyword(): number {
    const at = this.at;
    return this.kinds[at] === LEFT && this.kinds[at + 1] === KEYWORD ? this.values[at + 1] : -1;
  }

  isOpen(keyword: number): boolean {
    return this.openKeyword() === keyword;
  }

  takeKeyword(keyword: number): boolean {
    if (!this.isKeyword(keyword)) return false;
    this.at++;
    return true;
  }

  takeOpen(keyword: number): boolean {
    if (!this.isOpen(keyword)) return false;
    this.at += 2;
    return true;
  }

  takeClose(): boolean {
    if (this.kinds[this.at] !== RIGHT) return false;
    this.at++;
    return true;
  }

  expectKeyword(keyword: number): void {
    if (!this.takeKeyword(keyword)) this.unexpected();
  }

  expectOpen(keyword: number): void {
    if (this.kinds[this.at] !== LEFT) this.unexpected();
    if (!this.takeOpen(keyword)) this.unexpected(this.at + 1);
  }

  expectClose(): void {
    if (!this.takeClose()) this.unexpected();
  }

  /** Consumes an identifier; returns its symbol, or NO_SYMBOL. */
  takeId(): number {
    return this.kinds[this.at] === ID ? this.values[this.at++] : NO_SYMBOL;
  }

  isNameAnnotation(): boolean {
    return this.kinds[this.at] === ANNOTATION && this.values[this.at] === NAME_ANNOTATION;
  }

  /** Parses `(@name "…")`. */
  takeNameAnnotation(): string | undefined {
    if (!this.isNameAnnotation()) return undefined;
    this.at++;
    if (this.kind !== STRING) this.fail("@name annotation: unexpected token");
    const name = this.name("@name annotation: ");
    if (!this.takeClose()) this.fail("@name annotation: unexpected token");
    return name;
  }

  /** Parses a string; returns its bytes. */
  string(): Uint8Array {
    if (this.kind !== STRING) this.unexpected();
    const tokens = this.tokens;
    const at = this.at++;
    const start = tokens.starts[at];
    const end = tokens.ends[at];
    if (this.values[at] === 0) return tokens.source.subarray(start + 1, end - 1);
    return decodeString(tokens.source, start, end);
  }

  /** Parses any number of strings; returns their bytes, concatenated. */
  strings(): Uint8Array {
    const first = this.at;
    let size = 0;
    while (this.kind === STRING) size += this.string().length;
    const bytes = new Uint8Array(size);
    size = 0;
    for (this.at = first; this.kind === STRING;) {
      const part = this.string();
      bytes.set(part, size);
      size += part.length;
    }
    return bytes;
  }

  /** Parses a string that must be UTF-8. */
  name(context = ""): string {
    const token = this.at;
    const text = decodeUtf8(this.string());
    if (text === undefined) this.fail(`${context}malformed UTF-8 encoding`, token);
    return text;
  }

  /** Parses an unsigned 32-bit integer. */
  u32(): number {
    if (this.kind !== NAT) this.unexpected();
    if (!this.integer(32)) this.fail("i32 constant out of range");
    this.at++;
    return INTEGER.lo;
  }

  /** Parses an unsigned 64-bit integer into INTEGER. */
  u64(): void {
    if (this.kind !== NAT) this.unexpected();
    if (!this.integer(64)) this.fail("i64 constant out of range");
    this.at++;
  }

  /** Reads the current integer into INTEGER without consuming it; false if it does not fit `bits`. */
  integer(bits: number): boolean {
    const { source, starts, ends } = this.tokens;
    return readInteger(source, starts[this.at], ends[this.at], bits);
  }

  /**
   * Whether the current token is the keyword `prefix` followed by an unsigned integer, as in `offset=4`. Reads it into
   * INTEGER.
   */
  takeAssignment(prefix: string): boolean {
    const at = this.at;
    if (this.kinds[at] !== KEYWORD || this.values[at] !== -1) return false;
    const { source, starts, ends } = this.tokens;
    const start = starts[at];
    for (let i = 0; i < prefix.length; i++) if (source[start + i] !== prefix.charCodeAt(i)) return false;
    const from = start + prefix.length;
    if (!isNatural(source, from, ends[at])) this.unexpected();
    if (!readMagnitude(source, from, ends[at])) this.fail("i64 constant out of range");
    this.at++;
    return true;
  }

  /** Skips from inside parentheses to the token after the closing one. */
  skipToClose(): void {
    const kinds = this.kinds;
    let at = this.at;
    for (let depth = 1; depth > 0; at++) {
      const kind = kinds[at];
      if (kind === LEFT || kind === ANNOTATION) depth++;
      else if (kind === RIGHT) depth--;
      else if (kind === END || kind === ERROR) this.unexpected(at);
    }
    this.at = at;
  }

  /** Reports an unexpected token `token`. */
  unexpected(token: number = this.at): never {
    const { tokens } = this;
    switch (tokens.kinds[token]) {
      case ERROR:
        return this.fail(tokens.problem, token);
      case END:
        return this.fail("unexpected token: end of text", token);
      case RESERVED:
        if (tokens.values[token] === 1) this.fail("empty identifier", token);
        return this.fail(`unknown operator ${tokens.textOf(token)}`, token);
      case LEFT: {
        // After an opening parenthesis, the keyword is the unexpected token.
        const next = tokens.kinds[token + 1];
        if (next === KEYWORD || next === RESERVED || next === ERROR) this.unexpected(token + 1);
        break;
      }
      case KEYWORD:
        if (tokens.values[token] === -1) this.fail(`unknown operator ${tokens.textOf(token)}`, token);
        break;
      case ANNOTATION:
        return this.fail(`misplaced @${ANNOTATIONS[tokens.values[token]]} annotation`, token);
    }
    this.fail(`unexpected token ${tokens.textOf(token)}`, token);
  }

  /** Reports a malformed text at `token`. */
  fail(message: string, token: number = this.at): never {
    const { tokens } = this;
    throw new MalformedError(message, tokens.placeOf(tokens.starts[token]));
  }

  /** Reports an error of validation that prevents further parsing. */
  invalid(message: string, token: number = this.at): never {
    throw new InvalidError(message, this.tokens.placeOf(this.tokens.starts[token]));
  }
}

function isNatural(source: Uint8Array, start: number, end: number): boolean {
  return start < end && numberKind(source, start, end) === NAT;
}
