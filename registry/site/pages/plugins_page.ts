/**
 * The list of plugins: search words, filters by facet, order, pages.
 */
import { AUTHORITIES } from "../../../project/definitions/authorities.ts";
import { segmentOfId } from "../../names.ts";
import { cursorOf, listQueryOf } from "../../routes/packages.ts";
import type { Call } from "../../services.ts";
import { type Facet, facetCounts, listPackages, type PackageSummary, SORTS } from "../../store/packages.ts";
import { layout } from "../layout.ts";
import { type Markup, markup } from "../markup.ts";

const SHOWN: readonly { readonly facet: Facet; readonly label: string }[] = [
  { facet: "category", label: "Category" },
  { facet: "authority", label: "Authority" },
  { facet: "kind", label: "Kind" },
  { facet: "stability", label: "Stability" },
  { facet: "platform", label: "Platform" },
];
const SORT_WORDS: { readonly [sort in (typeof SORTS)[number]]: string } = {
  relevance: "Best match",
  installs: "Most installed",
  recent: "Newest",
  name: "Name",
};

/** Renders the list. */
export async function pluginsPage(call: Call): Promise<string> {
  const { database, cursorSecret } = call.services;
  const { query, bound } = listQueryOf(call, cursorSecret);
  const page = await listPackages(database, { ...query, limit: Math.min(query.limit, 30) });
  const nextCursor = cursorOf(page, bound, cursorSecret);
  const choices = await Promise.all(SHOWN.map(async ({ facet, label }) => ({
    facet,
    label,
    values: (await facetCounts(database, facet, 50)).filter((v) => v.value !== "*"),
  })));
  const next = new URLSearchParams(call.url.search);
  if (nextCursor !== null) next.set("cursor", nextCursor);
  const meanings = new Map(AUTHORITIES.map((a) => [a.name, a.meaning]));
  const body = markup`
    <main id="main" class="browse">
      <div class="intro">
        <h1>Plugins</h1>
        <p class="lead">WebAssembly modules that other modules can import. Each lists the authorities that it requests.
          <a href="/changes">Newest changes</a></p>
      </div>
        <form action="/plugins" method="get" class="filters" role="search" aria-label="Plugins">
    <label>Words <input type="search" name="q" value="${query.q}" maxlength="100"></label>
    ${
    choices.map(({ facet, label, values }) =>
      markup`<label>${label} <select name="${facet}"><option value="">any</option>${
        withChosen(values, query.facets[facet]).map(({ value, count }) =>
          markup`<option value="${value}" ${
            query.facets[facet] === value && markup`selected`
          }>${value} (${count})</option>`
        )
      }</select></label>`
    )
  }
    <label>Order <select name="sort">${
    SORTS.map((s) => markup`<option value="${s}" ${query.sort === s && markup`selected`}>${SORT_WORDS[s]}</option>`)
  }</select></label>
    <button>Show</button></form>
      <div class="found">
    <p role="status">${page.total} ${page.total === 1 ? "plugin" : "plugins"}${
    query.facets.authority !== undefined &&
    ` that request to ${meanings.get(query.facets.authority) ?? query.facets.authority}`
  }</p>
    <ul class="cards">${page.packages.map(card)}</ul>
    ${nextCursor !== null && markup`<p><a rel="next" href="/plugins?${next.toString()}">More plugins</a></p>`}
      </div>
    </main>
  `;
  return layout(call.services, {
    title: query.q === "" ? "Plugins" : `Plugins: ${query.q}`,
    description: "Plugins for waft, with the authorities that each of them requests.",
    section: "plugins",
    canonical: "/plugins",
    hidden: call.url.search !== "",
    body,
  });
}

function withChosen(
  values: readonly { value: string; count: number }[],
  chosen: string | undefined,
): readonly { value: string; count: number }[] {
  return chosen === undefined || values.some((v) => v.value === chosen)
    ? values
    : [...values, { value: chosen, count: 0 }];
}

function card(p: PackageSummary): Markup {
  return markup`
    <li>
      <div class="title">
        <h2><a href="/plugins/${segmentOfId(p.name)}">${p.displayName}</a></h2>
        <span>${p.version}</span> ${p.stability !== null && stabilityBadge(p.stability)}
      </div>
      <p>${p.description}</p>
      <ul class="asks" aria-label="Authorities">${
    p.authorities.length === 0
      ? markup`<li class="badge">no authorities</li>`
      : p.authorities.map((name) => markup`<li class="badge">${name}</li>`)
  }</ul>
      <ul class="meta">
        <li>${p.name}</li>
        <li>${p.installs.total} ${p.installs.total === 1 ? "install" : "installs"}</li>
        <li>${p.publishedAt.slice(0, 10)}</li>
        <li>${p.license}</li>
      </ul>
    </li>
  `;
}

/** A badge for a stability. */
export function stabilityBadge(stability: string): Markup {
  return stability === "deprecated"
    ? markup`<span class="badge warn">deprecated</span>`
    : markup`<span class="badge">${stability}</span>`;
}
