/**
 * HTML templates with mandatory escaping: a template tag whose values are text unless they are Markup.
 *
 * In: untrusted text. Out: HTML. Characters that reorder or hide text become visible escapes.
 */
import { escapeHostile } from "../../project/base/diagnostic.ts";

/** HTML that is safe to use as it is. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A value of a template. */
export type Content = Markup | string | number | null | undefined | false | readonly Content[];

const ENTITIES: { readonly [c: string]: string } = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Text as HTML, good inside of elements and quoted attributes. */
export function escapeHtml(text: string): string {
  // Not /\s*[\r\n]\s*/, which takes quadratic time on long runs of spaces.
  return escapeHostile(text.replace(/\s+/g, (space) => /[\r\n]/.test(space) ? " " : space)).replace(
    /[&<>"']/g,
    (c) => ENTITIES[c],
  );
}

/** Text as HTML, with its line ends: for code. */
export function escapeText(text: string): string {
  return text.replace(/[&<>"']/g, (c) => ENTITIES[c]);
}

// deno-lint-ignore no-control-regex -- it matches control characters on purpose
const HOSTILE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** Text with line ends, whose other control and bidi characters are visible escapes. */
export function escapeControls(text: string): string {
  return text.replace(HOSTILE, (c) => `\\u{${c.charCodeAt(0).toString(16)}}`);
}

/** A template. */
export function markup(parts: TemplateStringsArray, ...values: readonly Content[]): Markup {
  let text = parts[0];
  values.forEach((value, i) => text += rendered(value) + parts[i + 1]);
  return new Markup(text);
}

/** HTML that is already safe (from the Markdown renderer). */
export function trusted(text: string): Markup {
  return new Markup(text);
}

function rendered(value: Content): string {
  if (value === null || value === undefined || value === false) return "";
  if (value instanceof Markup) return value.text;
  if (typeof value === "number") return String(value);
  if (typeof value === "string") return escapeHtml(value);
  return value.map(rendered).join("");
}
