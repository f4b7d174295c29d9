/**
 * Text → tokens. In: UTF-8 source. Out: one {@linkcode Tokens}, columns of kind, start, end and value, in one pass and
 * linear time (specification, 6.3). Comments and unknown annotations produce no token.
 *
 * The lexer does not throw. A character sequence that is not a token becomes RESERVED; an error that it cannot skip (an
 * illegal character, an unclosed string, bad UTF-8) ends the columns with an ERROR token. The parser that reaches such
 * a token reports it, so the first mistake in the text is the one reported, and a script survives a bad module.
 */
import { MalformedError } from "../base/errors.ts";
import { keywordNumber } from "./keywords.ts";
import { numberKind } from "./number_text.ts";
import { NO_SYMBOL, SymbolTable } from "./symbols.ts";
import { decodeString, scanString, StringProblem, utf8Length } from "./string_text.ts";
import { ANNOTATION, ANNOTATIONS, END, ERROR, ID, KEYWORD, LEFT, RESERVED, RIGHT, STRING, Tokens } from "./tokens.ts";

/** Largest source: offsets are int32. */
const SOURCE_LIMIT = 0x7fff_fff0;

// Classes of bytes.
const ILLEGAL = 0;
const SPACE = 1;
const IDENTIFIER = 2;
const PUNCTUATION = 3;
const QUOTE = 4;
const OPEN = 5;
const CLOSE = 6;
const SEMICOLON = 7;
const NON_ASCII = 8;
const CLASS = byteClasses();

function byteClasses(): Uint8Array {
  const classes = new Uint8Array(256).fill(NON_ASCII, 0x80).fill(IDENTIFIER, 0x21, 0x7f);
  for (const char of " \t\n\r") classes[char.charCodeAt(0)] = SPACE;
  for (const char of ",[]{}") classes[char.charCodeAt(0)] = PUNCTUATION;
  classes[0x22] = QUOTE;
  classes[0x28] = OPEN;
  classes[0x29] = CLOSE;
  classes[0x3b] = SEMICOLON;
  return classes;
}

const DOLLAR = 0x24;
const AT = 0x40;

/** Reads all of `text`. Throws only for a source beyond SOURCE_LIMIT. */
export function readTokens(text: string | Uint8Array): Tokens {
  if (typeof text === "string" && !text.isWellFormed()) rejectSurrogate(text);
  const source = typeof text === "string" ? new TextEncoder().encode(text) : text;
  if (source.length > SOURCE_LIMIT) throw new MalformedError("Module text is too long", { line: 1, column: 1 });
  const lexer = new Lexer(source);
  lexer.run();
  return lexer.tokens;
}

/** A string with half of a surrogate pair has no UTF-8 form. */
function rejectSurrogate(text: string): never {
  const wellFormed = text.toWellFormed();
  let at = 0;
  while (text[at] === wellFormed[at]) at++;
  const before = new TextEncoder().encode(text.slice(0, at));
  throw new MalformedError("malformed UTF-8 encoding: lone surrogate", new Tokens(before).placeOf(before.length));
}

class Lexer {
  readonly tokens: Tokens;
  readonly #source: Uint8Array;
  #at = 0;
  /** Offset at which lexing stopped; −1 while it continues. */
  #stopped = -1;

  constructor(source: Uint8Array) {
    this.#source = source;
    this.tokens = new Tokens(source);
  }

  run(): void {
    const source = this.#source;
    const tokens = this.tokens;
    const length = source.length;
    while (this.#at < length && this.#stopped < 0) {
      const at = this.#at;
      switch (CLASS[source[at]]) {
        case SPACE:
          this.#at = at + 1;
          break;
        case OPEN: {
          const next = at + 1 < length ? source[at + 1] : 0;
          if (next === 0x3b) this.#blockComment();
          else if (next === AT) this.#annotation();
          else {
            tokens.push(LEFT, at, at + 1, 0);
            this.#at = at + 1;
          }
          break;
        }
        case CLOSE:
          tokens.push(RIGHT, at, at + 1, 0);
          this.#at = at + 1;
          break;
        case SEMICOLON:
          if (at + 1 < length && source[at + 1] === 0x3b) this.#lineComment();
          else this.#punctuation();
          break;
        case PUNCTUATION:
          this.#punctuation();
          break;
        case IDENTIFIER:
        case QUOTE:
          this.#word();
          break;
        default:
          this.#stopAtCharacter();
      }
    }
    const end = this.#stopped < 0 ? length : this.#stopped;
    const kind = this.#stopped < 0 ? END : ERROR;
    tokens.push(kind, end, Math.min(end + 1, length), 0);
    tokens.push(kind, end, Math.min(end + 1, length), 0);
  }

  #punctuation(): void {
    this.tokens.push(RESERVED, this.#at, this.#at + 1, 0);
    this.#at++;
  }

  #stop(problem: string, at: number): void {
    this.tokens.problem = problem;
    this.#stopped = at;
  }

  /** Stops at a control character, or at one outside ASCII where only ASCII is allowed. */
  #stopAtCharacter(): void {
    const bad = this.#source[this.#at] >= 0x80 && utf8Length(this.#source, this.#at) === 0;
    this.#stop(bad ? "malformed UTF-8 encoding" : "illegal character", this.#at);
  }

  /** A maximal run of identifier characters and strings: keyword, number, identifier, string or reserved. */
  #word(): void {
    const source = this.#source;
    const length = source.length;
    const start = this.#at;
    let at = start;
    let strings = 0;
    let escapes = 0;
    for (; at < length; at++) {
      const kind = CLASS[source[at]];
      if (kind === IDENTIFIER) continue;
      if (kind !== QUOTE) break;
      const string = scanString(source, at);
      if (string.problem !== StringProblem.none) return this.#stopInString(start, at, string.problem, string.end);
      if (string.escaped) escapes = 1;
      strings++;
      at = string.end - 1;
    }
    this.#at = at;
    const first = source[start];
    if (strings === 0) return this.#plainWord(first, start, at);
    if (strings === 1 && source[at - 1] === 0x22) {
      if (first === 0x22) return this.tokens.push(STRING, start, at, escapes);
      if (first === DOLLAR && source[start + 1] === 0x22) return this.#quotedIdentifier(start, at);
    }
    this.tokens.push(RESERVED, start, at, 0);
  }

  #plainWord(first: number, start: number, end: number): void {
    const tokens = this.tokens;
    const source = this.#source;
    if (first === DOLLAR) {
      if (end - start === 1) tokens.push(RESERVED, start, end, 1);
      else tokens.push(ID, start, end, tokens.symbols.intern(source, start + 1, end));
      return;
    }
    if (first >= 0x61 && first <= 0x7a) {
      const keyword = keywordNumber(source, start, end);
      // Only `inf` and `nan…` are numbers that begin with a letter.
      const number = keyword < 0 && (first === 0x69 || first === 0x6e) ? numberKind(source, start, end) : RESERVED;
      tokens.push(number === RESERVED ? KEYWORD : number, start, end, keyword);
      return;
    }
    tokens.push(numberKind(source, start, end), start, end, 0);
  }

  #quotedIdentifier(start: number, end: number): void {
    const bytes = decodeString(this.#source, start + 1, end);
    if (bytes.length === 0) return this.tokens.push(RESERVED, start, end, 1);
    for (let i = 0; i < bytes.length;) {
      const size = utf8Length(bytes, i);
      if (size === 0) return this.#stop("malformed UTF-8 encoding in an identifier", start);
      i += size;
    }
    this.tokens.push(ID, start, end, this.tokens.symbols.intern(bytes, 0, bytes.length));
  }

  #stopInString(start: number, quote: number, problem: StringProblem, at: number): void {
    const name = start + 1 === quote && this.#source[start] === DOLLAR;
    if (name && problem !== StringProblem.utf8 && problem !== StringProblem.escape) {
      return this.#stop("empty identifier: its quoted name is not closed on the line", start);
    }
    this.#stop(problem, problem === StringProblem.unclosed ? quote : at);
  }

  #lineComment(): void {
    const source = this.#source;
    let at = this.#at + 2;
    for (; at < source.length; at++) {
      const byte = source[at];
      if (byte === 0x0a || byte === 0x0d) break;
      if (byte >= 0x80) {
        const size = utf8Length(source, at);
        if (size === 0) return this.#stop("malformed UTF-8 encoding", at);
        at += size - 1;
      }
    }
    this.#at = at;
  }

  #blockComment(): void {
    const source = this.#source;
    const start = this.#at;
    let depth = 1;
    let at = start + 2;
    while (at < source.length) {
      const byte = source[at];
      const next = at + 1 < source.length ? source[at + 1] : 0;
      if (byte === 0x28 && next === 0x3b) {
        depth++;
        at += 2;
      } else if (byte === 0x3b && next === 0x29) {
        at += 2;
        if (--depth === 0) {
          this.#at = at;
          return;
        }
      } else if (byte >= 0x80) {
        const size = utf8Length(source, at);
        if (size === 0) return this.#stop("malformed UTF-8 encoding", at);
        at += size;
      } else {
        at++;
      }
    }
    this.#stop("unclosed comment", start);
  }

  /** `(@id …)`: a known annotation becomes tokens, any other is skipped to its end. */
  #annotation(): void {
    const source = this.#source;
    const start = this.#at;
    const from = start + 2;
    let to = from;
    let id: Uint8Array = source.subarray(from, from);
    if (source[from] === 0x22) {
      const string = scanString(source, from);
      if (string.problem === StringProblem.utf8) return this.#stop(string.problem, string.end);
      if (string.problem === StringProblem.none) {
        id = decodeString(source, from, string.end);
        to = string.end;
      }
    } else {
      while (to < source.length && CLASS[source[to]] === IDENTIFIER) to++;
      id = source.subarray(from, to);
    }
    if (id.length === 0) return this.#stop("empty annotation id", start);
    for (let i = 0; i < id.length;) {
      const size = utf8Length(id, i);
      if (size === 0) return this.#stop("malformed UTF-8 encoding in an annotation id", from);
      i += size;
    }
    this.#at = to;
    const symbol = ANNOTATION_IDS.find(id, 0, id.length);
    if (symbol !== NO_SYMBOL) this.tokens.push(ANNOTATION, start, to, symbol);
    else this.#skipAnnotation(start);
  }

  /** Skips the content of an annotation, which may be any balanced tokens, and its closing parenthesis. */
  #skipAnnotation(start: number): void {
    const source = this.#source;
    for (let depth = 1; this.#at < source.length && this.#stopped < 0;) {
      const at = this.#at;
      const next = at + 1 < source.length ? source[at + 1] : 0;
      switch (CLASS[source[at]]) {
        case OPEN:
          if (next === 0x3b) {
            this.#blockComment();
            break;
          }
          depth++;
          this.#at = at + 1;
          break;
        case CLOSE:
          this.#at = at + 1;
          if (--depth === 0) return;
          break;
        case SEMICOLON:
          if (next === 0x3b) this.#lineComment();
          else this.#at = at + 1;
          break;
        case QUOTE: {
          const string = scanString(source, at);
          if (string.problem !== StringProblem.none) return this.#stopInString(at, at, string.problem, string.end);
          this.#at = string.end;
          break;
        }
        case ILLEGAL:
        case NON_ASCII:
          this.#stopAtCharacter();
          break;
        default:
          this.#at = at + 1;
      }
    }
    if (this.#stopped < 0) this.#stop("unclosed annotation", start);
  }
}

const ANNOTATION_IDS = annotationIds();

function annotationIds(): SymbolTable {
  const ids = new SymbolTable(0x2545f491);
  for (const id of ANNOTATIONS) {
    const bytes = new TextEncoder().encode(id);
    ids.intern(bytes, 0, bytes.length);
  }
  return ids;
}
