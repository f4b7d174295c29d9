/**
 * WIT text → tokens (WIT, "Lexical structure"). In: text and the name of its file. Out: tokens with their places and
 * the documentation comments before them.
 *
 * Errors are MalformedError with file, line and column.
 */
import { MalformedError } from "@waft/engine/internal/errors";
import { printable } from "../model/invalid.ts";

/** A token: `kind` is "id" for identifiers, a keyword or an operator for itself. */
export interface Token {
  readonly kind: string;
  /** The text; of an identifier without `%`, of a string its value. */
  readonly text: string;
  readonly start: number;
  /** Documentation comments before the token, one line each. */
  readonly docs: string;
}

const KEYWORDS: ReadonlySet<string> = new Set(
  ("as async bool borrow char constructor enum export f32 f64 flags from func future import include interface list map " +
    "option own package record resource result s16 s32 s64 s8 static stream string tuple type u16 u32 u64 u8 use " +
    "variant with world error-context").split(" "),
);

const OPERATORS = ["->", "-", "+", "=", ",", ":", ";", "(", ")", "{", "}", "<", ">", "*", "/", ".", "@", "_"] as const;

/** Control codes, bidirectional overrides and discouraged characters, which a WIT text must not contain. */
const FORBIDDEN = /(?![\t\n\r])\p{Cc}|[\u202a-\u202e\u2066-\u2069\u0149\u0673\u0f77\u0f79\u17a3\u17a4\u17b4\u17b5]/u;

/** Limit on the size of one file. */
const MAX_TEXT = 64 * 1024 * 1024;

/** A text under parsing: its file and its content. */
export interface WitSource {
  readonly file: string;
  readonly text: string;
}

/** Throws MalformedError at offset `at` of a text. */
export function failAt({ file, text }: WitSource, at: number, message: string): never {
  const before = text.slice(0, at).split("\n");
  const column = before[before.length - 1].length + 1;
  throw new MalformedError(printable(message), { file, line: before.length, column });
}

/** Splits a text into tokens; the last one has the kind "end". */
export function readTokens(source: WitSource): Token[] {
  const { text } = source;
  if (text.length > MAX_TEXT) failAt(source, 0, `a WIT file of ${text.length} characters is too large`);
  const forbidden = FORBIDDEN.exec(text);
  if (forbidden !== null) {
    failAt(source, forbidden.index, `the character ${JSON.stringify(forbidden[0])} is not allowed`);
  }
  const tokens: Token[] = [];
  let docs = "";
  for (let at = text.startsWith("\ufeff") ? 1 : 0;;) {
    const space = skipSpace(source, at);
    at = space.end;
    docs += space.docs;
    if (at >= text.length) {
      tokens.push({ kind: "end", text: "", start: at, docs });
      return tokens;
    }
    const { token, end } = readToken(source, at);
    tokens.push({ ...token, start: at, docs });
    docs = "";
    at = end;
  }
}

/** Skips whitespace and comments from `at`; collects documentation comments. */
function skipSpace(source: WitSource, at: number): { end: number; docs: string } {
  const { text } = source;
  let docs = "";
  for (;;) {
    while (at < text.length && /\s/.test(text[at])) at++;
    if (text.startsWith("//", at)) {
      const newline = text.indexOf("\n", at);
      const end = newline < 0 ? text.length : newline;
      if (text.startsWith("///", at)) docs += `${text.slice(at + 3, end).replace(/^ /, "").trimEnd()}\n`;
      at = end;
    } else if (text.startsWith("/*", at)) {
      const end = blockEnd(source, at);
      if (text.startsWith("/**", at) && end > at + 4) docs += blockDocs(text.slice(at + 3, end - 2));
      at = end;
    } else return { end: at, docs };
  }
}

function blockEnd(source: WitSource, start: number): number {
  const { text } = source;
  let depth = 0;
  for (let at = start; at < text.length;) {
    if (text.startsWith("/*", at)) {
      depth++;
      at += 2;
    } else if (text.startsWith("*/", at)) {
      at += 2;
      if (--depth === 0) return at;
    } else at++;
  }
  return failAt(source, start, "this comment is not closed");
}

function blockDocs(text: string): string {
  const lines = text.trim().split("\n").map((line) => line.trim().replace(/^\* ?/, ""));
  return `${lines.join("\n")}\n`;
}

function readToken(source: WitSource, at: number): { token: Omit<Token, "start" | "docs">; end: number } {
  const { text } = source;
  const id = /%?[A-Za-z][0-9A-Za-z-]*/y;
  id.lastIndex = at;
  const word = id.exec(text)?.[0];
  if (word !== undefined) {
    const explicit = word.startsWith("%");
    const name = explicit ? word.slice(1) : word;
    return { token: { kind: !explicit && KEYWORDS.has(name) ? name : "id", text: name }, end: at + word.length };
  }
  const digits = /[0-9]+/y;
  digits.lastIndex = at;
  const number = digits.exec(text)?.[0];
  if (number !== undefined) return { token: { kind: "integer", text: number }, end: at + number.length };
  if (text[at] === '"') return readString(source, at);
  for (const operator of OPERATORS) {
    if (text.startsWith(operator, at)) return { token: { kind: operator, text: operator }, end: at + operator.length };
  }
  return failAt(source, at, `unexpected character ${JSON.stringify(String.fromCodePoint(text.codePointAt(at) ?? 0))}`);
}

const ESCAPES: Readonly<Record<string, string>> = { t: "\t", n: "\n", r: "\r", '"': '"', "'": "'", "\\": "\\" };

function readString(source: WitSource, start: number): { token: Omit<Token, "start" | "docs">; end: number } {
  const { text } = source;
  const bytes: string[] = [];
  for (let at = start + 1; at < text.length;) {
    const character = text[at];
    if (character === '"') return { token: { kind: "string", text: bytes.join("") }, end: at + 1 };
    if (character === "\n") break;
    if (character !== "\\") {
      bytes.push(character);
      at++;
      continue;
    }
    const escape = /\\(?:([tnr"'\\])|u\{([0-9A-Fa-f]{1,6})\})/y;
    escape.lastIndex = at;
    const match = escape.exec(text);
    if (match === null) return failAt(source, at, "invalid string escape");
    const code = match[2] === undefined ? undefined : parseInt(match[2], 16);
    if (code !== undefined && (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))) {
      return failAt(source, at, "invalid string escape: not a Unicode scalar value");
    }
    bytes.push(code === undefined ? ESCAPES[match[1]] : String.fromCodePoint(code));
    at += match[0].length;
  }
  return failAt(source, start, "this string is not closed");
}

/** Whether `name` must be written with `%`. */
export function isKeyword(name: string): boolean {
  return KEYWORDS.has(name);
}
