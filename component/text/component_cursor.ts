/**
 * A position in the tokens of component text: the engine's cursor, with words compared by their text, because the words
 * of components are not keywords of core WebAssembly. Errors are MalformedError with line and column.
 */
import { TokenCursor } from "@waft/engine/internal/text/token_cursor";
import { ID, KEYWORD, LEFT, RESERVED, RIGHT, STRING } from "@waft/engine/internal/text/tokens";
import { currentForm } from "./older_forms.ts";

export class ComponentCursor extends TokenCursor {
  /** The word at token `at`; undefined if the token is not a word. */
  wordAt(at: number): string | undefined {
    const kind = this.kinds[at];
    return kind === KEYWORD || kind === RESERVED ? this.tokens.wholeText(at) : undefined;
  }

  /** Whether `(` and the words follow. */
  isOpening(...words: string[]): boolean {
    return this.kinds[this.at] === LEFT && words.every((word, i) => this.wordAt(this.at + 1 + i) === word);
  }

  /** Consumes `(` and the words, if they follow. */
  takeOpening(...words: string[]): boolean {
    if (!this.isOpening(...words)) return false;
    this.at += 1 + words.length;
    return true;
  }

  expectOpening(...words: string[]): void {
    if (!this.takeOpening(...words)) this.unexpectedToken(this.kinds[this.at] === LEFT ? this.at + 1 : this.at);
  }

  takeWord(word: string): boolean {
    if (this.wordAt(this.at) !== word) return false;
    this.at++;
    return true;
  }

  /** Consumes and returns a word. */
  word(): string {
    const word = this.wordAt(this.at);
    if (word === undefined) return this.unexpectedToken();
    this.at++;
    return word;
  }

  /** Consumes an identifier; returns its name without `$`. */
  id(): string | undefined {
    if (this.kind !== ID) return undefined;
    return this.tokens.symbols.text(this.values[this.at++]);
  }

  /** Whether `(word "…")` follows: an inline import or export. */
  isInline(word: string): boolean {
    if (!this.isOpening(word)) return false;
    return this.kinds[this.at + 2] === STRING && (this.kinds[this.at + 3] === RIGHT || this.isAttribute(this.at + 3));
  }

  isAttribute(at: number): boolean {
    if (this.kinds[at] !== LEFT) return false;
    return ["implements", "external-id", "versionsuffix"].includes(this.wordAt(at + 1) ?? "");
  }

  unexpectedToken(at: number = this.at): never {
    const word = this.wordAt(at);
    if (word === undefined) return this.unexpected(at);
    const current = currentForm(word);
    return this.fail(`unexpected token ${word}${current === undefined ? "" : `, an older form: write ${current}`}`, at);
  }
}
