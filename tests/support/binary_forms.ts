/**
 * The `(module binary "…")` forms of a specification-suite script, found by scanning text, so that tests of the decoder
 * do not depend on the text parser. In: the script. Out: each module's bytes and, inside assert_malformed or
 * assert_invalid, the assertion's message.
 */

/** One binary module of a script. */
interface BinaryForm {
  bytes: Uint8Array<ArrayBuffer>;
  line: number;
  assertion: "none" | "malformed" | "invalid" | "other";
  /** The assertion's message; empty without one. */
  message: string;
}

const FORM =
  /(?:\(\s*(assert_\w+)\s*)?\(\s*module\s+(?:definition\s+)?(?:\$\S+\s+)?binary((?:\s+|;;[^\n]*\n|"(?:[^"\\]|\\.)*")*)\)(?:(?:\s+|;;[^\n]*\n)*"([^"]*)")?/g;
const STRING = /;;[^\n]*\n|"((?:[^"\\]|\\.)*)"/g;
const ESCAPE = /\\([0-9a-fA-F]{2}|[^0-9a-fA-F])|([^\\]+)/g;
const ESCAPED: Record<string, number> = { t: 9, n: 10, r: 13, '"': 34, "'": 39, "\\": 92 };

function stringBytes(text: string, out: number[]): void {
  for (const [, escape, plain] of text.matchAll(ESCAPE)) {
    if (plain !== undefined) out.push(...new TextEncoder().encode(plain));
    else out.push(escape.length === 2 ? parseInt(escape, 16) : ESCAPED[escape]);
  }
}

/** All binary forms of `script`. */
export function binaryForms(script: string): BinaryForm[] {
  const forms: BinaryForm[] = [];
  for (const match of script.matchAll(FORM)) {
    const bytes: number[] = [];
    for (const [, text] of match[2].matchAll(STRING)) if (text !== undefined) stringBytes(text, bytes);
    const kind = match[1];
    forms.push({
      bytes: Uint8Array.from(bytes),
      line: script.slice(0, match.index).split("\n").length,
      assertion: kind === undefined
        ? "none"
        : kind === "assert_malformed"
        ? "malformed"
        : kind === "assert_invalid"
        ? "invalid"
        : "other",
      message: match[3] ?? "",
    });
  }
  return forms;
}
