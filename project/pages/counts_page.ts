/**
 * The page of `waft profile --counts`: tables with a search field. In: tables of text. Out: one self-contained page.
 * Invariant: texts enter the page escaped.
 */
import { FLAME_STYLE } from "./flame_style.ts";
import { escapeMarkup, pageHtml } from "./page_shell.ts";
import { PAGE_STYLE } from "./page_style.ts";

/** A table; the last column has names, the others numbers. */
export interface CountTable {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** Rows of a table in the page. */
const MAX_ROWS = 2000;

/** Hides the rows whose name lacks the searched text. */
const SCRIPT = String.raw`"use strict";
const search = document.getElementById("search");
const filter = () => {
  const words = search.value.toLowerCase();
  for (const row of document.querySelectorAll("tbody tr")) {
    row.hidden = !row.lastElementChild.textContent.toLowerCase().includes(words);
  }
};
search.addEventListener("input", filter);
document.getElementById("tools").addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target === search) return;
  search.focus();
  event.preventDefault();
});
`;

/** The text of the page for the counts of program `name`. */
export function countsPageHtml(tables: readonly CountTable[], name: string): string {
  return pageHtml({
    title: `${name} · waft profile`,
    style: PAGE_STYLE + FLAME_STYLE,
    script: SCRIPT,
    body: `<header><h1>${escapeMarkup(name)}</h1><span class="quiet">exact counts of one run</span></header>
<main>
<form id="tools" role="search">
<label>Search <input id="search" type="search" autocomplete="off" spellcheck="false"></label>
</form>
${tables.map(tableHtml).join("\n")}
</main>`,
    data: [],
  });
}

function tableHtml({ title, columns, rows }: CountTable): string {
  const left = rows.length - MAX_ROWS;
  const more = left > 0 ? `<p class="quiet">and ${left} more</p>` : "";
  const heads = columns.map((text, k) => `<th scope="col"${classOf(columns, k, "")}>${escapeMarkup(text)}</th>`);
  return `<h2>${escapeMarkup(title)}</h2>
<div class="scroll" tabindex="0" role="region" aria-label="${escapeMarkup(title)}"><table>
<thead><tr>${heads.join("")}</tr></thead>
<tbody>${rows.slice(0, MAX_ROWS).map((row) => rowHtml(row)).join("")}</tbody></table></div>${more}`;
}

function rowHtml(row: readonly string[]): string {
  return `<tr>${row.map((text, k) => `<td${classOf(row, k, "name")}>${escapeMarkup(text)}</td>`).join("")}</tr>`;
}

function classOf({ length }: readonly string[], k: number, name: string): string {
  const found = k < length - 1 ? "number" : name;
  return found === "" ? "" : ` class="${found}"`;
}
