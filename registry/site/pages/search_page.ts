/**
 * Results of a search in the documentation of one channel.
 */
import type { Services } from "../../services.ts";
import type { Channel } from "../documents.ts";
import { layout } from "../layout.ts";
import { markup } from "../markup.ts";

/** Renders the results. */
export function searchPage(services: Services, query: string, channel: Channel): string {
  const hits = services.documents.search(channel, query);
  const { channels } = services.documents;
  return layout(services, {
    title: query === "" ? "Search" : `Search: ${query}`,
    description: "Search in the documentation of waft.",
    section: "docs",
    hidden: true,
    query,
    body: markup`<main id="main" class="prose"><h1>Search the documentation</h1>
<form action="/search" method="get" class="filters row">
<label>Words <input type="search" name="q" value="${query}" maxlength="100"></label>
<label>Channel <select name="channel">${
      channels.map((c) => markup`<option value="${c.id}" ${c === channel && markup`selected`}>${c.label}</option>`)
    }</select></label>
<button>Search</button></form>
${query !== "" && markup`<p role="status">${hits.length} ${hits.length === 1 ? "section" : "sections"} found.</p>`}
<ol class="cards">${
      hits.map(({ page, heading, excerpt }) =>
        markup`
          <li>
            <h2><a href="${page.path}${
          heading === undefined || heading.level === 1 ? "" : `#${heading.id}`
        }">${page.title}${heading === undefined || heading.level === 1 ? "" : `: ${heading.text}`}</a></h2>
            <p>${excerpt}</p>
          </li>
        `
      )
    }</ol>
${
      query !== "" &&
      markup`<p><a href="/plugins?${
        new URLSearchParams({ q: query }).toString()
      }">Search plugins for the same words</a></p>`
    }
</main>`,
  });
}
