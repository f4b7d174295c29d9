/**
 * Self-contained HTML pages: one file with its style, script and data, which loads nothing. In: trusted style and
 * script, and data that may come from hostile modules. Out: the page. Invariant: the content security policy allows
 * this style and this script alone, data blocks cannot end their elements, and text from outside has no invisible
 * characters.
 */
import { createHash } from "node:crypto";
import { escapeHostile } from "../base/diagnostic.ts";

/** A block of data that the script reads by the id of its element. */
export interface DataBlock {
  readonly id: string;
  readonly text: string;
}

/** The parts of a page. */
interface PageParts {
  readonly title: string;
  readonly style: string;
  readonly script: string;
  /** HTML of the body without the data. */
  readonly body: string;
  readonly data: readonly DataBlock[];
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Text as HTML, inside of elements and quoted attributes. */
export function escapeMarkup(text: string): string {
  return escapeHostile(text).replace(/[&<>"']/g, (c) => ENTITIES[c] ?? c);
}

/** JSON that cannot end a script element. */
export function scriptJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function sourceHash(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

/** The text of the page. The data is text of `scriptJson` or base64. */
export function pageHtml({ title, style, script, body, data }: PageParts): string {
  const policy = `default-src 'none'; script-src ${sourceHash(script)}; style-src ${sourceHash(style)}; ` +
    "base-uri 'none'; form-action 'none'";
  const blocks = data.map(({ id, text }) =>
    `<script type="application/json" id="${escapeMarkup(id)}">${text}</script>`
  );
  return [
    "<!doctype html>",
    '<html lang="en">',
    "<head>",
    '<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    `<title>${escapeMarkup(title)}</title>`,
    `<style>${style}</style>`,
    "</head>",
    "<body>",
    body,
    ...blocks,
    `<script>${script}</script>`,
    "</body>",
    "</html>",
    "",
  ].join("\n");
}
