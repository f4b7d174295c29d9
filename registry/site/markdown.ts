/**
 * Markdown to HTML: our documentation, and what authors wrote.
 *
 * In: Markdown that may be hostile. Out: HTML without scripts, raw HTML, remote images or links other than http(s), mailto
 * and, in our own pages, relative ones. Raw HTML is text. Characters that reorder text become visible escapes.
 */
import MarkdownIt from "markdown-it";
import { highlight } from "./highlight.ts";
import { escapeControls } from "./markup.ts";
import { drawPlot } from "./plot.ts";

/** What the renderer needs of a token. */
interface Token {
  readonly type: string;
  readonly content: string;
  readonly tag: string;
  readonly children: Token[] | null;
  attrGet(name: string): string | null;
  attrSet(name: string, value: string): void;
}

/** A heading of a page. */
export interface Heading {
  readonly level: number;
  readonly text: string;
  readonly id: string;
}

/** A rendered page. */
export interface RenderedPage {
  readonly html: string;
  readonly headings: readonly Heading[];
}

const AUTHOR = new MarkdownIt({ html: false, linkify: false, typographer: false, maxNesting: 40, highlight });
const OWN = new MarkdownIt({ html: false, linkify: false, typographer: false, highlight });

AUTHOR.validateLink = (url: string): boolean => /^(?:https?:\/\/|mailto:)/i.test(url.trim());
OWN.validateLink = (url: string): boolean =>
  /^(?:https:\/\/|#|\/|\.{0,2}\/?[A-Za-z0-9_-]+(?:\.md)?(?:$|[#/.]))/.test(url);

// A picture of an author is loaded from nowhere: its place shows a link with the picture's text.
AUTHOR.renderer.rules.image = (tokens, i) => {
  const token = tokens[i] as unknown as Token;
  const text = token.content === "" ? "image" : token.content;
  const source = token.attrGet("src") ?? "";
  const escape = AUTHOR.utils.escapeHtml;
  return `<a href="${escape(source)}" rel="nofollow noopener ugc">[${escape(text)}]</a>`;
};

const plainFence = OWN.renderer.rules.fence!;
OWN.renderer.rules.fence = (tokens, i, ...more) => {
  const token = tokens[i]!;
  return (token.info.trim() === "plot" ? drawPlot(token.content) : undefined) ?? plainFence(tokens, i, ...more);
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

/** Renders what an author wrote. Its headings begin one level below the page's own. */
export function renderAuthorText(markdown: string): string {
  return scrollable(AUTHOR.render(escapeControls(markdown))).replace(
    /<(\/?)h([1-6])>/g,
    (_, slash: string, level: string) => `<${slash}h${Math.min(6, Number(level) + 2)}>`,
  );
}

/** Renders a page of the documentation; `resolve` turns links to other pages into addresses. */
export function renderDocument(markdown: string, resolve: (link: string) => string): RenderedPage {
  const environment = {};
  const tokens = OWN.parse(markdown, environment);
  const headings: Heading[] = [];
  const used = new Set<string>();
  for (const [i, token] of (tokens as unknown as Token[]).entries()) {
    for (const child of token.children ?? []) {
      if (child.type === "link_open") child.attrSet("href", resolve(child.attrGet("href") ?? ""));
      if (child.type === "image") child.attrSet("loading", "lazy");
    }
    if (token.type !== "heading_open") continue;
    const text = plainText((tokens as unknown as Token[])[i + 1]!);
    const id = uniqueId(text, used);
    token.attrSet("id", id);
    headings.push({ level: Number(token.tag.slice(1)), text, id });
  }
  return { html: scrollable(OWN.renderer.render(tokens, OWN.options, environment)), headings };
}

/**
 * Wide tables and code scroll by themselves, and by keyboard; alignment is a class, since the site's policy refuses inline
 * styles. What was written holds no tags and no quotes but the renderer's.
 */
function scrollable(html: string): string {
  return html.replaceAll(/ style="text-align:(left|right|center)"/g, ' class="to-$1"').replaceAll(
    "<table>",
    '<div class="wide" tabindex="0"><table>',
  ).replaceAll("</table>", "</table></div>")
    .replaceAll("<pre>", '<pre tabindex="0">');
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
