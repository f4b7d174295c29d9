/**
 * Markdown to HTML, for the documentation and for text of authors.
 *
 * In: Markdown that may be hostile. Out: HTML without scripts, raw HTML, remote images, or links other than http(s),
 * mailto and, in the documentation, relative ones. Raw HTML is shown as text. Characters that reorder text become
 * visible escapes.
 */
import MarkdownIt from "markdown-it";
import { highlight } from "./highlight.ts";
import { escapeControls } from "./markup.ts";
import { drawCurve } from "./curve.ts";
import { drawPlot } from "./plot.ts";
import { pictureOf } from "./static_files.ts";

/** The parts of a token that the renderer uses. */
interface Token {
  readonly type: string;
  readonly content: string;
  readonly tag: string;
  readonly info: string;
  children: Token[] | null;
  attrGet(name: string): string | null;
  attrSet(name: string, value: string): void;
}

/** A heading of a page. */
export interface Heading {
  readonly level: number;
  readonly text: string;
  readonly id: string;
}

/** The text under one heading, for the search. */
export interface Section {
  /** Absent for text before the first heading. */
  readonly heading?: Heading;
  /** Prose and tables as plain text. */
  readonly text: string;
  readonly code: string;
}

/** A rendered page. */
export interface RenderedPage {
  readonly html: string;
  readonly headings: readonly Heading[];
  readonly sections: readonly Section[];
}

const AUTHOR = new MarkdownIt({ html: false, linkify: false, typographer: false, maxNesting: 40, highlight });
const OWN = new MarkdownIt({ html: false, linkify: false, typographer: false, highlight });

AUTHOR.validateLink = (url: string): boolean => /^(?:https?:\/\/|mailto:)/i.test(url.trim());
OWN.validateLink = (url: string): boolean =>
  /^(?:https:\/\/|#|\/|\.{0,2}\/?[A-Za-z0-9_-]+(?:\.md)?(?:$|[#/.]))/.test(url);

// Images of authors are never loaded: a link with the image's text takes their place.
AUTHOR.renderer.rules.image = (tokens, i) => {
  const token = tokens[i] as unknown as Token;
  const text = token.content === "" ? "image" : token.content;
  const source = token.attrGet("src") ?? "";
  const escape = AUTHOR.utils.escapeHtml;
  return `<a href="${escape(source)}" rel="nofollow noopener ugc">[${escape(text)}]</a>`;
};

/** Code blocks that are drawn, by the word after the fence. */
const PICTURES: Readonly<Record<string, ((text: string) => string | undefined) | undefined>> = {
  plot: drawPlot,
  curve: drawCurve,
};

const plainFence = OWN.renderer.rules.fence!;
OWN.renderer.rules.fence = (tokens, i, ...more) => {
  const token = tokens[i];
  return PICTURES[token.info.trim()]?.(token.content) ?? plainFence(tokens, i, ...more);
};

/** The id of a heading whose text can be a link to itself: not the title, and no links inside. */
function anchorOf(open: Token, inline: Token): string | undefined {
  const isPlain = open.tag !== "h1" && !(inline.children ?? []).some((c) => c.type === "link_open");
  return isPlain ? open.attrGet("id") ?? undefined : undefined;
}

OWN.renderer.rules.heading_open = (tokens, i) => {
  const [open, inline] = [tokens[i], tokens[i + 1]] as unknown as [Token, Token];
  const anchor = anchorOf(open, inline);
  const id = OWN.utils.escapeHtml(open.attrGet("id") ?? "");
  return `<${open.tag} id="${id}">${anchor === undefined ? "" : `<a class="anchor" href="#${id}">`}`;
};
OWN.renderer.rules.heading_close = (tokens, i) => {
  const [open, inline] = [tokens[i - 2], tokens[i - 1]] as unknown as [Token, Token];
  return `${anchorOf(open, inline) === undefined ? "" : "</a>"}</${open.tag}>\n`;
};

AUTHOR.core.ruler.push("outside_links", (state) => {
  for (const token of walk(state.tokens as unknown as Token[])) {
    if (token.type === "link_open") token.attrSet("rel", "nofollow noopener ugc");
  }
});

function* walk(tokens: readonly Token[]): Generator<Token> {
  for (const token of tokens) {
    yield token;
    if (token.children !== null) yield* walk(token.children);
  }
}

/** Renders text of an author. Its headings begin two levels below the page's title. */
export function renderAuthorText(markdown: string): string {
  return scrollable(AUTHOR.render(escapeControls(markdown))).replace(
    /<(\/?)h([1-6])>/g,
    (_, slash: string, level: string) => `<${slash}h${Math.min(6, Number(level) + 2)}>`,
  );
}

/** Renders a page of the documentation; `resolve` turns links to other pages into addresses. */
export function renderDocument(markdown: string, resolve: (link: string) => string): RenderedPage {
  const environment = {};
  const parsed = OWN.parse(markdown, environment);
  const tokens = parsed as unknown as Token[];
  const headings: Heading[] = [];
  const used = new Set<string>();
  for (const [i, token] of tokens.entries()) {
    for (const child of token.children ?? []) {
      if (child.type === "link_open") child.attrSet("href", resolve(child.attrGet("href") ?? ""));
      if (child.type === "image") placePicture(child);
    }
    if (token.type === "heading_open") headings.push(makeHeading(token, tokens[i + 1], used));
  }
  const html = scrollable(OWN.renderer.render(parsed, OWN.options, environment));
  return { html, headings, sections: sectionsOf(tokens, headings) };
}

/** Gives an image its address on the site, and its size, so that nothing moves when it arrives. */
function placePicture(image: Token): void {
  image.attrSet("loading", "lazy");
  const picture = pictureOf(image.attrGet("src") ?? "");
  if (picture === undefined) return;
  image.attrSet("src", picture.path);
  image.attrSet("width", String(picture.width));
  image.attrSet("height", String(picture.height));
}

/** Gives a heading its id. */
function makeHeading(open: Token, inline: Token, used: Set<string>): Heading {
  const text = plainText(inline);
  const level = Number(open.tag.slice(1));
  const id = uniqueId(text, used);
  open.attrSet("id", id);
  return { level, text, id };
}

/** Cuts a page at its headings. */
function sectionsOf(tokens: readonly Token[], headings: readonly Heading[]): Section[] {
  const sections: { heading?: Heading; text: string; code: string }[] = [{ text: "", code: "" }];
  let next = 0;
  let isHeading = false;
  for (const token of tokens) {
    const section = sections.at(-1)!;
    if (token.type === "heading_open") {
      isHeading = true;
      sections.push({ heading: headings[next++], text: "", code: "" });
    } else if (token.type === "heading_close") isHeading = false;
    else if (token.type === "fence" && PICTURES[token.info.trim()] === undefined) section.code += `${token.content}\n`;
    else if (token.type === "inline" && !isHeading) section.text += `${plainText(token)} `;
    else if (token.type === "td_close" || token.type === "th_close") section.text = `${section.text.trimEnd()} · `;
    else if (token.type === "tr_close") section.text = section.text.replace(/[ ·]*$/, "; ");
  }
  return sections.filter((s) => s.heading !== undefined || s.text !== "" || s.code !== "");
}

/**
 * Wide tables and code scroll by themselves, and by keyboard; alignment is a class, since the site's policy refuses
 * inline styles. The input is the renderer's own HTML: the text inside it holds no tags and no quotes.
 */
function scrollable(html: string): string {
  return html.replaceAll(/ style="text-align:(left|right|center)"/g, ' class="to-$1"').replaceAll(
    "<table>",
    '<div class="wide" tabindex="0"><table>',
  ).replaceAll("</table>", "</table></div>")
    .replaceAll("<pre>", '<div class="code"><pre tabindex="0">').replaceAll("</pre>", "</pre></div>");
}

function plainText(token: Token): string {
  return (token.children ?? []).map((c) => c.type === "softbreak" ? " " : c.content).join("");
}

function uniqueId(text: string, used: Set<string>): string {
  const base = text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "section";
  let id = base;
  for (let n = 2; used.has(id); n++) id = `${base}-${n}`;
  used.add(id);
  return id;
}
