/**
 * The HTML of a README and of release notes, on pages and in answers.
 *
 * In: a release. Out: the HTML that the check process rendered when the release was published. Requests never render
 * Markdown: the cost of rendering is the author's choice. A README without HTML is shown as plain text.
 */
import { escapeControls, escapeText, type Markup, trusted } from "./markup.ts";

/** Safe HTML of a release's README. */
export function readmeHtml(release: { readonly readme: string; readonly readmeHtml?: string }): string {
  if (release.readmeHtml !== undefined && release.readmeHtml !== "") return release.readmeHtml;
  return release.readme === "" ? "" : `<pre tabindex="0">${escapeText(escapeControls(release.readme))}</pre>`;
}

/** Release notes as the text of an element, with their line ends. */
export function notesText(notes: string): Markup {
  // Two characters that XML cannot have.
  return trusted(escapeText(escapeControls(notes)).replace(/[\ufffe\uffff]/g, "\ufffd"));
}
