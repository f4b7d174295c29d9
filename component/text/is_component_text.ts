/**
 * Distinguishes the text of components from that of modules, without reading all of it. In: text. Out: whether the
 * first form is `(component …)`.
 */

/** The offset after space and comments from `at`. */
function skipSpace(text: string, at: number): number {
  for (;;) {
    while (at < text.length && " \t\r\n".includes(text[at])) at++;
    if (text.startsWith(";;", at)) {
      const end = text.indexOf("\n", at);
      at = end < 0 ? text.length : end;
    } else if (text.startsWith("(;", at)) at = blockEnd(text, at);
    else return at;
  }
}

/** The offset after the block comment at `start`; comments nest. */
function blockEnd(text: string, start: number): number {
  const delimiter = /\(;|;\)/g;
  delimiter.lastIndex = start;
  let depth = 0;
  for (let match = delimiter.exec(text); match !== null; match = delimiter.exec(text)) {
    depth += match[0] === "(;" ? 1 : -1;
    if (depth === 0) return delimiter.lastIndex;
  }
  return text.length;
}

/** Whether the text begins like a component. */
export function isComponentText(text: string | Uint8Array): boolean {
  const source = typeof text === "string" ? text : new TextDecoder().decode(text);
  const open = skipSpace(source, 0);
  if (source[open] !== "(") return false;
  const word = skipSpace(source, open + 1);
  return /^component(?![!-'*-:<-~])/.test(source.slice(word, word + 10));
}
