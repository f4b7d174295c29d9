/**
 * The tokens of WAVE (WebAssembly Value Encoding): space and comments, labels, numbers, characters and strings. In:
 * text and a position in it. Out: tokens and the position after them. Errors are MalformedError with line and column.
 */
import { MalformedError } from "@waft/engine/internal/errors";
import { printable } from "../model/invalid.ts";

/** Words that a label can be only behind a `%`. */
export const WAVE_KEYWORDS: ReadonlySet<string> = new Set("true false inf nan some none ok err".split(" "));

const LABEL = /%?[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|-inf(?![\w-])/y;
const SPACE = /(?:[ \t\r\n]|\/\/[^\n]*)*/y;
/** The name of a function: a label, or an interface and a label. */
const FUNCTION = /[A-Za-z%][\w:/@.+#%[\]-]*/y;

const ESCAPES: Readonly<Record<string, string>> = {
  "\\": "\\",
  '"': '"',
  "'": "'",
  t: "\t",
  n: "\n",
  r: "\r",
};

/** A position in a WAVE text. */
export class WaveCursor {
  readonly text: string;
  at = 0;

  constructor(text: string) {
    this.text = text;
    this.skipSpace();
  }

  /** Throws MalformedError with the place of `at`. */
  fail(message: string, at: number = this.at): never {
    const before = this.text.slice(0, at).split("\n");
    const column = [...before[before.length - 1]].length + 1;
    throw new MalformedError(printable(message), { line: before.length, column });
  }

  skipSpace(): void {
    SPACE.lastIndex = this.at;
    SPACE.exec(this.text);
    this.at = SPACE.lastIndex;
  }

  get ended(): boolean {
    return this.at === this.text.length;
  }

  /** A description of the next token, for messages. */
  get found(): string {
    if (this.ended) return "the end of the text";
    const token = this.#match(NUMBER, false) ?? this.#match(LABEL, false) ?? String.fromCodePoint(this.#code());
    return JSON.stringify(token);
  }

  #code(): number {
    return this.text.codePointAt(this.at)!;
  }

  #match(pattern: RegExp, takes = true): string | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0];
    if (found === undefined || !takes) return found;
    this.at += found.length;
    this.skipSpace();
    return found;
  }

  /** Whether the next token begins with `text`. */
  sees(text: string): boolean {
    return this.text.startsWith(text, this.at);
  }

  /** Takes a punctuation mark if it is next. */
  take(mark: string): boolean {
    if (!this.sees(mark)) return false;
    this.at += mark.length;
    this.skipSpace();
    return true;
  }

  expect(mark: string): void {
    if (!this.take(mark)) this.fail(`expected "${mark}", found ${this.found}`);
  }

  /** The next label, with its `%`, without taking it. */
  peekLabel(): string | undefined {
    return this.#match(LABEL, false);
  }

  label(): string | undefined {
    return this.#match(LABEL);
  }

  number(): string | undefined {
    return this.#match(NUMBER);
  }

  functionName(): string | undefined {
    return this.#match(FUNCTION);
  }

  /** Items separated by commas up to `close`; a comma may follow the last one. */
  sequence(close: string, item: () => void): void {
    while (!this.take(close)) {
      item();
      if (this.take(",")) continue;
      if (!this.sees(close)) this.fail(`expected "," or "${close}", found ${this.found}`);
    }
  }

  /** A character in single quotes. */
  character(): string {
    const start = this.at;
    this.at++;
    const value = this.sees("'") || this.ended ? this.fail("a character is missing", start) : this.#unit(start);
    if (!this.sees("'")) this.fail('a character ends with "\'"', start);
    this.at++;
    this.skipSpace();
    return value;
  }

  /** A string in double quotes, or lines between `"""`. */
  string(): string {
    const start = this.at;
    if (this.sees('"""')) return this.#lines(start);
    this.at++;
    let value = "";
    while (!this.sees('"')) {
      if (this.ended || this.sees("\n")) this.fail("the string has no end", start);
      value += this.#unit(start);
    }
    this.at++;
    this.skipSpace();
    return value;
  }

  /** Lines of a string; the indentation of the closing quotes is not part of them. */
  #lines(start: number): string {
    const open = /"""\r?\n/y;
    open.lastIndex = start;
    if (!open.test(this.text)) this.fail('a line break must follow """', start);
    const close = /(^|\n)([ \t]*)"""/g;
    close.lastIndex = open.lastIndex - 1;
    const end = close.exec(this.text);
    if (end === null) this.fail("the string has no end", start);
    const indent = end[2];
    const body = end.index < open.lastIndex ? [] : this.text.slice(open.lastIndex, end.index).split("\n");
    let at = open.lastIndex;
    const lines = body.map((line) => {
      if (line.trim() !== "" && !line.startsWith(indent)) {
        this.fail("the line is indented less than the closing quotes", at);
      }
      const value = this.#unescape(at + indent.length, at + line.length);
      at += line.length + 1;
      return value;
    });
    this.at = close.lastIndex;
    this.skipSpace();
    return lines.join("\n");
  }

  #unescape(from: number, to: number): string {
    let value = "";
    for (this.at = from; this.at < to;) value += this.#unit(from);
    return value;
  }

  /** One character of a literal, which may be an escape. */
  #unit(start: number): string {
    if (!this.sees("\\")) {
      const code = this.#code();
      if (code >= 0xd800 && code <= 0xdfff) this.fail("a lone surrogate is not a character");
      const unit = String.fromCodePoint(code);
      this.at += unit.length;
      return unit;
    }
    const hex = /\\u\{([0-9A-Fa-f]{1,6})\}/y;
    hex.lastIndex = this.at;
    const digits = hex.exec(this.text)?.[1];
    if (digits !== undefined) {
      const code = parseInt(digits, 16);
      if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
        this.fail(`\\u{${digits}} is not a Unicode scalar value`);
      }
      this.at = hex.lastIndex;
      return String.fromCodePoint(code);
    }
    const escape = this.text[this.at + 1];
    if (escape === undefined) this.fail("the literal has no end", start);
    const value = ESCAPES[escape];
    if (value === undefined) this.fail(`unknown escape \\${escape}`);
    this.at += 2;
    return value;
  }
}
