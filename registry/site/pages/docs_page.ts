/**
 * A page of the documentation: navigation, text, headings, neighbours, and a banner in channels other than the default.
 */
import { DOCS_TOC, GENERATED_PAGES, REFERENCE_PAGES } from "../../docs_toc.ts";
import type { Services } from "../../services.ts";
import type { Channel, DocumentPage } from "../documents.ts";
import { layout } from "../layout.ts";
import { homePage } from "./home_page.ts";
import { type Markup, markup, trusted } from "../markup.ts";
import { readSource } from "../reference/pages.ts";

/** Renders a page. */
export function docsPage(services: Services, page: DocumentPage): string {
  const { documents } = services;
  if (page.path === "/") return homePage(services, page);
  const channel = documents.channel(page.channel)!;
  const sections = page.headings.filter((h) => h.level === 2);
  const contents = sections.length > 1 &&
    markup`<nav class="toc" aria-label="On this page"><h2>On this page</h2><ul>${
      sections.map((h) => markup`<li><a href="#${h.id}">${h.text}</a></li>`)
    }</ul></nav>`;
  const body = markup`
    <div class="split docs">
      <main id="main" class="prose">
        <p class="narrow"><a class="button quiet" href="#all-pages">All pages</a></p>
        ${banner(services, channel, page)}
        ${!isDefault(channel) && markup`<p class="channel"><span class="badge">${channel.id}</span></p>`}
        ${trusted(page.html)}
        <p class="source"><a href="${page.rawPath}">This page as Markdown</a>${editLink(services, channel, page)}</p>
        ${neighbours(channel, page)}
      </main>
      <div class="side">${navigation(services, channel, page)}</div>
      <div class="contents">${contents}</div>
    </div>`;
  return layout(services, {
    title: page.title,
    description: page.description,
    section: isReference(page) ? "reference" : "docs",
    canonical: documents.canonicalPath(page),
    alternates: [{ type: "text/markdown", href: page.rawPath }],
    body,
  });
}

function navigation(services: Services, channel: Channel, page: DocumentPage): Markup {
  const groups = DOCS_TOC.map((group) => ({
    title: group.title,
    pages: group.pages.flatMap((name) => channel.pages.filter((p) => p.name === name)),
  })).filter((g) => g.pages.length > 0);
  // Beside a page of the reference, its group comes first.
  if (isReference(page)) groups.sort((a, b) => Number(b.pages.some(isReference)) - Number(a.pages.some(isReference)));
  const link = (p: DocumentPage): Markup =>
    markup`<li><a href="${p.path}" ${p === page && markup`aria-current="page"`}>${
      p.name === "index" ? "Overview" : p.title
    }</a>${isReference(page) && p.name === moduleOf(page) && symbols(p)}</li>`;
  const symbols = (module: DocumentPage): Markup =>
    markup`<ul>${channel.pages.filter((p) => p !== module && moduleOf(p) === module.name).map(link)}</ul>`;
  return markup`
    <nav id="all-pages" aria-label="Documentation">
    ${
    groups.map((g) =>
      markup`
        <h2>${g.title}</h2>
        <ul>${g.pages.map(link)}</ul>
      `
    )
  }
    <h2>Channels</h2><ul>${
    services.documents.channels.map((c) => {
      const same = c.pages.find((p) => p.name === page.name) ?? c.pages[0];
      return markup`<li><a href="${same.path}" ${c === channel && markup`aria-current="true"`}>${c.label}</a></li>`;
    })
  }</ul>
    </nav>
  `;
}

/** Whether a page is of the API reference. */
function isReference(page: DocumentPage): boolean {
  return REFERENCE_PAGES.includes(moduleOf(page));
}

/** The name of the page of the module whose symbol `page` describes; that of other pages. */
function moduleOf(page: DocumentPage): string {
  return page.name.split("/")[0];
}

/** The channel at the root of the site. */
function isDefault(channel: Channel): boolean {
  return channel.base === "/";
}

/** A link to the file of a page, or to the source of a symbol; other generated pages have none. */
function editLink({ settings }: Services, channel: Channel, page: DocumentPage): Markup | false {
  const { repositoryUrl } = settings;
  if (repositoryUrl === undefined) return false;
  const source = isReference(page) ? readSource(page.source) : undefined;
  if (source !== undefined) {
    const revision = channel.id.startsWith("v") ? channel.id : "main";
    return markup` <a href="${repositoryUrl}/blob/${revision}/${source.file}#L${source.line}">Source</a>`;
  }
  if (GENERATED_PAGES.includes(page.name) || isReference(page) || !isDefault(channel)) return false;
  return markup` <a href="${repositoryUrl}/edit/main/docs/${page.name}.md">Edit this page</a>`;
}

/** The note that recommends another channel; none on the default channel and the newest release. */
function banner(services: Services, channel: Channel, page: DocumentPage): Markup | false {
  const official = services.documents.newestOfficial();
  if (isDefault(channel) || official === channel) return false;
  const better = official ?? services.documents.channels.find(isDefault);
  if (better === undefined) return false;
  const there = better.pages.find((p) => p.name === page.name) ?? better.pages[0];
  const about = channel.id.startsWith("v") ? `${channel.id}, an older release` : `the ${channel.id} channel`;
  return markup`<p class="banner">This page is about ${about}. <a href="${there.path}">Read it for ${better.label}</a>.</p>`;
}

/** Links to the pages before and after a page: of the documentation, or of the symbols of one module. */
function neighbours(channel: Channel, page: DocumentPage): Markup {
  const row = (p: DocumentPage): string => p.name.includes("/") ? moduleOf(p) : "";
  const pages = channel.pages.filter((p) => row(p) === row(page));
  const at = pages.indexOf(page);
  const before = pages[at - 1], after = pages[at + 1];
  return markup`<nav class="pages" aria-label="Neighbouring pages">
${before !== undefined && markup`<a rel="prev" href="${before.path}"><span>Previous</span>${before.title}</a>`}
${after !== undefined && markup`<a rel="next" href="${after.path}"><span>Next</span>${after.title}</a>`}</nav>`;
}

/** The page for an address that a channel does not have. */
export function missingPage(services: Services, path: string): string {
  const { documents } = services;
  const name = path.replace(/^\/(?:nightly|v[0-9][^/]*)\//, "").replace(/^\//, "") || "index";
  const others = documents.channelsWith(name).map((c) => c.pages.find((p) => p.name === name)!);
  return layout(services, {
    title: "Not found",
    description: "There is nothing at this address.",
    hidden: true,
    body: markup`<main id="main" class="prose"><h1>There is nothing at this address</h1>
${
      others.length > 0
        ? markup`
          <p>A page of this name exists in other channels:</p>
          <ul>${
          others.map((p) =>
            markup`<li><a href="${p.path}">${p.title}</a> (${documents.channel(p.channel)!.label})</li>`
          )
        }</ul>
        `
        : markup`<p>Try <a href="/search">the search</a>, <a href="/getting-started">the documentation</a> or <a href="/plugins">the plugins</a>.</p>`
    }</main>`,
  });
}
