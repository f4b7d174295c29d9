/**
 * Errors about components. In: a message, which may quote names of the component, and an offset. Out: an InvalidError
 * whose message is one line without control characters, regardless of the names.
 */
import { InvalidError } from "@waft/engine/internal/errors";

/** Control, formatting and separator characters, which a terminal would interpret. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** An InvalidError at `offset`. */
export function invalid(message: string, offset: number): InvalidError {
  return new InvalidError(printable(message), { offset });
}

/** `text` with unprintable characters as escapes. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}
