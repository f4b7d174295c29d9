/**
 * Results of a search: plugins and sections of the documentation of one channel, the API reference included.
 */
import { segmentOfId } from "../../names.ts";
import type { Services } from "../../services.ts";
import { listPackages, type PackageSummary } from "../../store/packages.ts";
import type { Channel, SearchHit } from "../documents.ts";
import { layout } from "../layout.ts";
import { type Markup, markup } from "../markup.ts";

const SHOWN_PLUGINS = 5;

/** Renders the results. */
export async function searchPage(services: Services, query: string, channel: Channel): Promise<string> {
  const { documents, database } = services;
  const hits = documents.search(channel, query);
  const found = query === ""
    ? { packages: [], total: 0 }
    : await listPackages(database, { q: query, facets: {}, sort: "relevance", limit: SHOWN_PLUGINS });
  return layout(services, {
    title: query === "" ? "Search" : `Search: ${query}`,
    description: "Search in the documentation and the plugins of waft.",
    hidden: true,
    query,
    body: markup`<main id="main" class="prose"><h1>Search</h1>
<form action="/search" method="get" class="filters row">
<label>Words <input type="search" name="q" value="${query}" maxlength="100"></label>
<label>Channel <select name="channel">${
      documents.channels.map((c) =>
        markup`<option value="${c.id}" ${c === channel && markup`selected`}>${c.label}</option>`
      )
    }</select></label>
<button>Search</button></form>
${
      query !== "" &&
      markup`<p role="status">${countText(hits.length, "section")} and ${countText(found.total, "plugin")} found.</p>`
    }
${found.total > 0 && pluginResults(query, found)}
${hits.length > 0 && documentResults(hits)}
</main>`,
  });
}

function countText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function pluginResults(query: string, found: { packages: readonly PackageSummary[]; total: number }): Markup {
  const all = new URLSearchParams({ q: query }).toString();
  return markup`<h2>Plugins</h2>
<ul class="cards">${
    found.packages.map((p) =>
      markup`
        <li>
          <h3><a href="/plugins/${segmentOfId(p.name)}">${p.displayName}</a></h3>
          <p>${p.description}</p>
          <ul class="meta"><li>${p.name}</li><li>${p.version}</li></ul>
        </li>
      `
    )
  }</ul>
${found.total > found.packages.length && markup`<p><a href="/plugins?${all}">All ${found.total} plugins</a></p>`}`;
}

function documentResults(hits: readonly SearchHit[]): Markup {
  return markup`<h2>Documentation</h2>
<ol class="cards">${
    hits.map(({ page, heading, excerpt }) => {
      const isTop = heading === undefined || heading.level === 1;
      return markup`
        <li>
          <h3><a href="${page.path}${isTop ? "" : `#${heading.id}`}">${page.title}${
        isTop ? "" : `: ${heading.text}`
      }</a></h3>
          <p>${excerpt}</p>
        </li>
      `;
    })
  }</ol>`;
}
