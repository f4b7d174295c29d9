/**
 * The page of `waft explore`. In: a module's functions and the stages of some of them. Out: one self-contained page.
 *
 * Each body is a data block of its own: lines that several stages share are stored once, the block is compressed and in
 * base64, and the page's script unpacks it when the function is opened.
 */
import { deflateRawSync } from "node:zlib";
import { escapeHostile } from "../base/diagnostic.ts";
import { EXPLORE_SCRIPT } from "./explore_script.ts";
import { EXPLORE_STYLE } from "./explore_style.ts";
import { type DataBlock, escapeMarkup, pageHtml, scriptJson } from "./page_shell.ts";
import { PAGE_STYLE } from "./page_style.ts";

/** A line of a stage: its text, the offset of its instruction in the module (0: none), and a comment. */
interface PageLine {
  readonly text: string;
  readonly pos: number;
  readonly note?: string;
}

/** One form of a function. */
export interface PageStage {
  readonly group: string;
  readonly name: string;
  readonly lines: readonly PageLine[];
}

/** A function in the list. */
interface PageFunction {
  readonly index: number;
  readonly label: string;
  readonly bytes: number;
}

/** The content of the page. */
interface ExplorePage {
  /** Name of the file. */
  readonly title: string;
  /** The processor whose code is shown first. */
  readonly machine: string;
  readonly functions: readonly PageFunction[];
  /** The function that is shown first, by index. */
  readonly first: number | undefined;
  /** Packed bodies by function index. */
  readonly bodies: ReadonlyMap<number, string>;
  /** Source files by number. */
  readonly files: readonly string[];
  /** Texts of source files by number, as far as they are known. */
  readonly sources: ReadonlyMap<number, string>;
  /** The command that shows a function which the page lacks; INDEX is the function. */
  readonly command: string;
}

/** The number of a source file, and a line in it. */
export type PagePlace = readonly [file: number, line: number];

/** Packs a value for the page's script. */
function packed(value: unknown): string {
  return deflateRawSync(JSON.stringify(value), { level: 6 }).toString("base64");
}

/** Packs the stages of a function. `placeOf` gives the source location of an instruction. */
export function packBody(stages: readonly PageStage[], placeOf: (pos: number) => PagePlace | undefined): string {
  const numbers = new Map<string, number>();
  const numberOf = (text: string) => {
    const known = numbers.get(text);
    if (known !== undefined) return known;
    numbers.set(text, numbers.size);
    return numbers.size - 1;
  };
  const positions = new Set(stages.flatMap(({ lines }) => lines.map(({ pos }) => pos)));
  const places = [...positions].flatMap((pos) => {
    const place = pos === 0 ? undefined : placeOf(pos);
    return place === undefined ? [] : [[pos, place]];
  });
  const rows = stages.map((stage) => packStage(stage, numberOf));
  const texts = [...numbers.keys()].map(escapeHostile);
  return packed({ texts, stages: rows, places: Object.fromEntries(places) });
}

/** The columns of a stage: differences of line numbers and positions, and numbers of notes. */
function packStage({ group, name, lines }: PageStage, numberOf: (text: string) => number): object {
  let [line, pos] = [0, 0];
  const columns = { lines: [] as number[], positions: [] as number[], notes: [] as number[] };
  for (const each of lines) {
    const next = numberOf(each.text);
    columns.lines.push(next - line);
    columns.positions.push(each.pos - pos);
    columns.notes.push(each.note === undefined ? -1 : numberOf(each.note));
    [line, pos] = [next, each.pos];
  }
  while (columns.notes.at(-1) === -1) columns.notes.pop();
  return { group, name, ...columns };
}

const PANES = [1, 2, 3].map((k) =>
  `<section aria-label="Pane ${k}">
<label><span class="hidden">Stage of pane ${k}</span><select></select></label>
<div class="lines" id="pane${k}" role="listbox" tabindex="0" aria-label="Pane ${k}"></div>
</section>`
).join("\n");

const KEYS: readonly (readonly [string, string])[] = [
  ["/", "filter the functions; Enter opens the first, arrows move in the list"],
  ["1 2 3", "go to a pane"],
  ["↓ ↑ j k", "next or previous line; lines of the same instruction are marked in all panes"],
  ["[ ]", "previous or next stage in the pane"],
  ["?", "these keys"],
];

function bodyHtml({ title, functions, bodies }: ExplorePage): string {
  const keys = KEYS.map(([key, meaning]) => {
    return `<dt>${key.split(" ").map((each) => `<kbd>${each}</kbd>`).join(" ")}</dt><dd>${meaning}</dd>`;
  });
  const partial = bodies.size === functions.length
    ? ""
    : `<span class="quiet">${bodies.size} of ${functions.length} functions are in this page</span>`;
  return `<header><h1>${escapeMarkup(title)}</h1>${partial}</header>
<nav aria-label="Functions">
<label>Filter functions <input id="filter" type="search" autocomplete="off" spellcheck="false"></label>
<span class="quiet" id="count" role="status"></span>
<ul id="functions" tabindex="-1"></ul>
<button id="more" type="button" hidden>Show more</button>
</nav>
<main>
<h2 id="name">No function</h2>
<p id="absent" hidden></p>
<div id="panes">
${PANES}
</div>
</main>
<footer><span id="status" role="status"></span><button id="help" type="button">Keys</button></footer>
<dialog id="keys" aria-labelledby="keys-title"><h2 id="keys-title">Keys</h2><dl>${
    keys.join("")
  }</dl><form method="dialog"><button>Close</button></form></dialog>`;
}

/** The text of the page. */
export function explorePageHtml(page: ExplorePage): string {
  const { title, machine, functions, first, bodies, files, sources, command } = page;
  const index = {
    machine,
    functions: functions.map((f) => [f.index, escapeHostile(f.label), f.bytes, bodies.has(f.index) ? 1 : 0]),
    first,
    files: files.map(escapeHostile),
    hasSources: sources.size > 0,
    absent: escapeHostile(`This function is not in the page, which would be too large. To see it: ${command}`),
  };
  const texts = Object.fromEntries(
    [...sources].map(([file, text]) => [file, text.split("\n").map(escapeHostile).join("\n")]),
  );
  const data: DataBlock[] = [
    { id: "index", text: scriptJson(index) },
    ...(sources.size > 0 ? [{ id: "sources", text: packed(texts) }] : []),
    ...[...bodies].map(([at, text]) => ({ id: `f${at}`, text })),
  ];
  return pageHtml({
    title: `${title} · waft explore`,
    style: PAGE_STYLE + EXPLORE_STYLE,
    script: EXPLORE_SCRIPT,
    body: bodyHtml(page),
    data,
  });
}
