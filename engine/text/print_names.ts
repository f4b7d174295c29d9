/**
 * Names and strings as text: identifiers that are unique and lexically valid, and string literals without invisible
 * characters (specification, 6.3.3 and 6.3.5).
 *
 * Establishes: two indices of one space never get the same identifier, and parsing an identifier with its annotation
 * gives back the name.
 */

const IDENTIFIER = /^[0-9A-Za-z!#$%&'*+\-./:<=>?@\\^_`|~]+$/;
/**
 * Quotes, backslashes, and all invisible characters: controls, formats (bidirectional ones among them), separators
 * except the space.
 */
// deno-lint-ignore no-control-regex
const ESCAPED = /["\\\x00-\x1f\x7f]|(?! )[\p{C}\p{Z}]/gu;

function escapeCharacter(char: string): string {
  switch (char) {
    case '"':
      return '\\"';
    case "\\":
      return "\\\\";
    case "\t":
      return "\\t";
    case "\n":
      return "\\n";
    case "\r":
      return "\\r";
  }
  return `\\u{${char.codePointAt(0)!.toString(16)}}`;
}

/** A string literal of text. */
export function quoteText(text: string): string {
  return `"${text.replace(ESCAPED, escapeCharacter)}"`;
}

/** Bytes of data per line. */
const BYTES_PER_LINE = 64;

/** String literals of bytes, one per line; at least one. */
export function quoteBytes(bytes: Uint8Array): string[] {
  const lines: string[] = [];
  for (let start = 0; start === 0 || start < bytes.length; start += BYTES_PER_LINE) {
    lines.push(`"${escapeBytes(bytes, start, Math.min(start + BYTES_PER_LINE, bytes.length))}"`);
  }
  return lines;
}

function escapeBytes(bytes: Uint8Array, start: number, end: number): string {
  let text = "";
  for (let i = start; i < end; i++) {
    const byte = bytes[i];
    if (byte >= 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x5c) text += String.fromCharCode(byte);
    else text += "\\" + byte.toString(16).padStart(2, "0");
  }
  return text;
}

/** `$name`, in quotes if it has characters that identifiers cannot have. */
function identifier(name: string): string {
  return IDENTIFIER.test(name) ? "$" + name : "$" + quoteText(name);
}

/** The identifiers of one index space. */
export class IndexNames {
  readonly #ids: Map<number, string> = new Map();
  /** Identifiers, with an annotation of the true name if it differs. */
  readonly #binders: Map<number, string> = new Map();

  constructor(names: ReadonlyMap<number, string> | undefined) {
    if (names === undefined) return;
    const used = new Set<string>();
    for (const [index, name] of [...names].sort((a, b) => a[0] - b[0])) {
      let unique = name;
      if (unique === "" || used.has(unique)) unique = `${name}_${index}`;
      while (used.has(unique)) unique += "_";
      used.add(unique);
      const id = identifier(unique);
      this.#ids.set(index, id);
      this.#binders.set(index, unique === name ? id : `${id} (@name ${quoteText(name)})`);
    }
  }

  /** A reference to index `index`: its identifier or the number. */
  ref(index: number): string {
    return this.#ids.get(index) ?? String(index);
  }

  /** ` $name` for a binder, or the index as a comment. */
  binder(index: number): string {
    return ` ${this.#binders.get(index) ?? `(;${index};)`}`;
  }

  /** ` $name` for a binder, or nothing. */
  optionalBinder(index: number): string {
    const binder = this.#binders.get(index);
    return binder === undefined ? "" : ` ${binder}`;
  }

  has(index: number): boolean {
    return this.#ids.has(index);
  }
}
