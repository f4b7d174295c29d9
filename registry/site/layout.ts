/**
 * The frame of every page: head, bar, main, foot. One style sheet, one script, landmarks, and a link that skips the
 * bar.
 */
import type { Services } from "../services.ts";
import { type Content, type Markup, markup } from "./markup.ts";
import { CARD, ICON, SCRIPT, STYLE_SHEET } from "./static_files.ts";

/** The parts of a page. */
interface Page {
  readonly title: string;
  readonly description: string;
  /** The link of the bar that this page belongs to. */
  readonly section?: "docs" | "reference" | "plugins" | "playground";
  /** Path of the canonical form of the page. */
  readonly canonical?: string;
  /** Asks search engines not to index the page. */
  readonly hidden?: boolean;
  /** Other forms of the page. */
  readonly alternates?: readonly { readonly type: string; readonly href: string }[];
  readonly body: Content;
  readonly query?: string;
  /** Path of a script besides that of all pages. */
  readonly script?: string;
}

/** Tags for sites that show a card for a link. */
function cardTags(baseUrl: string, title: string, page: Page): Markup {
  const tags: readonly (readonly [string, string])[] = [
    ["og:site_name", "waft"],
    ["og:type", "website"],
    ["og:title", title],
    ["og:description", page.description],
    ["og:image", baseUrl + CARD.path],
    ...(page.canonical === undefined ? [] : [["og:url", baseUrl + page.canonical] as const]),
  ];
  return markup`${
    tags.map(([name, value]) =>
      markup`<meta property="${name}" content="${value}">
    `
    )
  }<meta name="twitter:card" content="summary_large_image">`;
}

/** Renders a page. */
export function layout(services: Services, page: Page): string {
  const { baseUrl, repositoryUrl } = services.settings;
  const hasReference = services.documents.page("/reference") !== undefined;
  const current = (section: string): Markup | false => page.section === section && markup`aria-current="true"`;
  const title = page.title === "waft" ? "waft: WebAssembly for Deno, Node and Bun" : `${page.title} · waft`;
  return markup`
    <!doctype html>
    <html lang="en">
      <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${title}</title>
    <meta name="description" content="${page.description}">
    ${page.hidden === true && markup`<meta name="robots" content="noindex">`}
    ${page.canonical !== undefined && markup`<link rel="canonical" href="${baseUrl}${page.canonical}">`}
    ${(page.alternates ?? []).map((a) => markup`<link rel="alternate" type="${a.type}" href="${a.href}">`)}
    ${cardTags(baseUrl, title, page)}
    <link rel="icon" href="${ICON.path}" type="image/svg+xml">
    <link rel="stylesheet" href="${STYLE_SHEET.path}">
    <script src="${SCRIPT.path}" defer></script>
    ${page.script !== undefined && markup`<script src="${page.script}" defer></script>`}
      </head>
      <body>
        <a class="skip" href="#main">Skip to content</a>
        <header class="bar">
          <div>
            <a class="brand" href="/"><img src="${ICON.path}" alt="" width="28" height="28">waft</a>
            <nav aria-label="Main">
              <ul>
                <li><a href="/getting-started" ${current("docs")}>Docs</a></li>
                ${hasReference && markup`<li><a href="/reference" ${current("reference")}>API</a></li>`}
                <li><a href="/plugins" ${current("plugins")}>Plugins</a></li>
                <li><a href="/playground" ${current("playground")}>Playground</a></li>
              </ul>
            </nav>
            <form action="/search" method="get" role="search" aria-label="Site">
              <input type="search" name="q" value="${
    page.query ??
      ""
  }" maxlength="100" aria-label="Search documentation and plugins" aria-keyshortcuts="/"
                placeholder="Search">
              <button>Search</button>
            </form>
          </div>
        </header>
        <div class="frame">${page.body}</div>
        <footer class="foot">
          <div>
            <span>waft, Apache-2.0</span>
            ${repositoryUrl !== undefined && markup`<a href="${repositoryUrl}">Repository</a>`}
            ${hasReference && markup`<a href="/reference">API reference</a>`}
            <a href="/registry-api">Registry API</a>
            <a href="/api/openapi.json">OpenAPI</a>
            <a href="/data/docs.json">Index of pages</a>
            <a href="/llms-full.txt">All pages as text</a>
            <a href="/security">Security</a>
          </div>
        </footer>
      </body>
    </html>
  `.text.trimStart();
}
