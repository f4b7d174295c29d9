/**
 * The script of the page of `waft explore`, as text: it runs in browsers, not here. In: the data blocks of
 * explore_page.ts. Out: a list of functions with a filter, and three panes, each with one stage of a function. Lines of
 * the same wasm instruction are linked.
 *
 * Invariant: names and code enter the document as text nodes only. A body is decompressed when it is opened.
 */

/** JavaScript of a classic script. */
export const EXPLORE_SCRIPT = String.raw`"use strict";
const byId = (id) => document.getElementById(id);
const index = JSON.parse(byId("index").textContent);
const panes = [...document.querySelectorAll("#panes section")].map((section) => ({
  section, choice: section.querySelector("select"), lines: section.querySelector(".lines"), stage: 0, at: -1, rows: [],
}));
const PAGE = 300;
let shown = PAGE;
let matches = index.functions;
let current;
let sources;

const make = (name, text, className) => {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (className !== undefined) element.className = className;
  return element;
};

async function unpack(id) {
  const bytes = Uint8Array.from(atob(byId(id).textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return await new Response(stream).json();
}

function listFunctions() {
  const words = byId("filter").value.toLowerCase().split(/\s+/).filter((word) => word !== "");
  matches = index.functions.filter(([at, name]) => {
    const text = name.toLowerCase();
    return words.every((word) => text.includes(word)) || words.join() === String(at);
  });
  const items = matches.slice(0, shown).map(([at, name, bytes, included]) => {
    const item = make("li", undefined, included ? undefined : "absent");
    const link = item.appendChild(make("a"));
    link.href = "#f" + at;
    link.append(make("span", name), make("span", bytes.toLocaleString("en"), "quiet"));
    if (current !== undefined && current.at === at) link.setAttribute("aria-current", "true");
    return item;
  });
  byId("functions").replaceChildren(...items);
  const rest = matches.length - items.length;
  byId("more").hidden = rest <= 0;
  byId("more").textContent = "Show " + Math.min(rest, PAGE) + " more";
  byId("count").textContent = matches.length.toLocaleString("en") + (matches.length === 1 ? " function" : " functions");
}

/** The stages of a function from their packed form. */
function readStages({ texts, stages }) {
  return stages.map(({ group, name, lines, positions, notes }) => {
    const rows = [];
    let [line, pos] = [0, 0];
    for (let k = 0; k < lines.length; k++) {
      line += lines[k];
      pos += positions[k];
      rows.push({ text: texts[line], pos, note: notes[k] === undefined || notes[k] < 0 ? undefined : texts[notes[k]] });
    }
    return { group, name, rows };
  });
}

async function sourceStages(places) {
  const files = [...new Set(Object.values(places).map(([file]) => file))];
  if (index.hasSources) sources ??= await unpack("sources");
  const stages = [];
  for (const file of files) {
    const text = sources?.[file];
    if (text === undefined) continue;
    stages.push({ group: "source", name: index.files[file], file, rows: text.split("\n").map((line, k) => ({
      text: String(k + 1).padStart(4) + "  " + line, pos: 0, line: k + 1,
    })) });
  }
  return stages;
}

async function open(at) {
  const row = index.functions.find(([each]) => each === at);
  if (row === undefined) return;
  const [, name, , included] = row;
  if (!included) {
    current = { at, stages: [], places: {} };
    byId("name").textContent = name;
    byId("panes").hidden = true;
    byId("absent").hidden = false;
    byId("absent").textContent = index.absent.replace("INDEX", at);
    listFunctions();
    return;
  }
  const body = await unpack("f" + at);
  const stages = [...readStages(body), ...await sourceStages(body.places)];
  current = { at, stages, places: body.places };
  byId("name").textContent = name;
  byId("absent").hidden = true;
  byId("panes").hidden = false;
  const last = stages.findLastIndex(({ group }) => group === "ir");
  const code = stages.findIndex(({ group, name }) => group === "code" && name.startsWith(index.machine + " optimizing"));
  const source = stages.findIndex(({ group }) => group === "source");
  [source < 0 ? 0 : source, source < 0 ? last : 0, code].forEach((stage, k) => {
    const wanted = panes[k].wanted;
    const kept = wanted === undefined ? -1 : stages.findIndex((s) => s.group === wanted.group && s.name === wanted.name);
    fillChoice(panes[k], stages);
    showStage(panes[k], kept < 0 ? stage : kept);
  });
  listFunctions();
  byId("status").textContent = name;
}

const GROUPS = { source: "Source", text: "WebAssembly text", ir: "IR", code: "Machine code" };

function fillChoice(pane, stages) {
  const groups = Object.entries(GROUPS).map(([group, label]) => {
    const element = make("optgroup");
    element.label = label;
    stages.forEach((stage, k) => {
      if (stage.group !== group) return;
      const option = element.appendChild(make("option", group === "ir" && stage.name !== "translated" ? "after " + stage.name : stage.name));
      option.value = String(k);
    });
    return element;
  });
  pane.choice.replaceChildren(...groups.filter((group) => group.childElementCount > 0));
}

function showStage(pane, number) {
  const stage = current.stages[number];
  if (stage === undefined) return;
  pane.stage = number;
  pane.choice.value = String(number);
  pane.rows = stage.rows;
  pane.at = -1;
  const id = pane.lines.id;
  const chunks = [];
  let place = "";
  for (let from = 0; from < stage.rows.length; from += 200) {
    const chunk = make("div");
    chunk.setAttribute("role", "presentation");
    const part = stage.rows.slice(from, from + 200);
    chunk.style.containIntrinsicHeight = "auto " + part.length * 1.5 + "em";
    part.forEach((row, k) => {
      const line = make("div", row.text, "line");
      line.id = id + "-" + (from + k);
      line.setAttribute("role", "option");
      line.setAttribute("aria-selected", "false");
      const where = stage.group === "text" ? placeText(row.pos) : "";
      const note = [row.note, where !== place ? where : ""].filter((text) => text).join("  ");
      if (where !== "") place = where;
      if (note !== "") line.append(make("span", "  ;; " + note, "note"));
      chunk.append(line);
    });
    chunks.push(chunk);
  }
  pane.lines.replaceChildren(...chunks);
  pane.lines.setAttribute("aria-label", GROUPS[stage.group] + ": " + stage.name);
  pane.lines.removeAttribute("aria-activedescendant");
  pane.lines.scrollTop = 0;
  if (current.selected !== undefined) link(pane);
}

function placeText(pos) {
  const place = current.places[pos];
  return place === undefined ? "" : index.files[place[0]] + ":" + place[1];
}

/** Whether a row of the stage is linked with the selection. */
function isLinked(stage, row) {
  const { selected } = current;
  if (stage.group !== "source") return selected.line === undefined
    ? row.pos !== 0 && row.pos === selected.pos
    : row.pos !== 0 && current.places[row.pos]?.[0] === selected.file && current.places[row.pos][1] === selected.line;
  if (selected.line !== undefined) return selected.file === stage.file && selected.line === row.line;
  const place = current.places[selected.pos];
  return place !== undefined && place[0] === stage.file && place[1] === row.line;
}

const lineOf = (pane, k) => byId(pane.lines.id + "-" + k);

function scrollTo(pane, k) {
  const line = lineOf(pane, k);
  if (line !== null) line.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function link(pane, mayScroll = true) {
  const stage = current.stages[pane.stage];
  for (const line of pane.lines.querySelectorAll(".linked")) line.classList.remove("linked");
  let first = -1;
  pane.rows.forEach((row, k) => {
    if (!isLinked(stage, row)) return;
    if (first < 0) first = k;
    lineOf(pane, k).classList.add("linked");
  });
  if (mayScroll && first >= 0) scrollTo(pane, first);
}

function select(pane, k) {
  const row = pane.rows[k];
  if (row === undefined) return;
  for (const each of panes) {
    if (each.at >= 0) lineOf(each, each.at)?.setAttribute("aria-selected", "false");
    each.at = -1;
  }
  pane.at = k;
  lineOf(pane, k).setAttribute("aria-selected", "true");
  pane.lines.setAttribute("aria-activedescendant", pane.lines.id + "-" + k);
  const stage = current.stages[pane.stage];
  current.selected = { pos: row.pos, line: row.line, file: stage.file };
  for (const each of panes) link(each, each !== pane);
  scrollTo(pane, k);
  const words = [row.pos === 0 ? "" : "0x" + row.pos.toString(16), row.text.trim(), row.note ?? "", placeText(row.pos)];
  byId("status").textContent = words.filter((word) => word !== "").join("  ·  ");
}

function isHidden(pane) {
  return pane.section.offsetParent === null;
}

const MOVES = {
  ArrowDown: (pane) => pane.at + 1, j: (pane) => pane.at + 1,
  ArrowUp: (pane) => pane.at - 1, k: (pane) => pane.at - 1,
  PageDown: (pane) => Math.min(pane.at + 25, pane.rows.length - 1), PageUp: (pane) => Math.max(pane.at - 25, 0),
  Home: () => 0, End: (pane) => pane.rows.length - 1,
};

for (const pane of panes) {
  pane.choice.addEventListener("change", () => choose(pane, Number(pane.choice.value)));
  pane.lines.addEventListener("click", ({ target }) => {
    const line = target.closest(".line");
    if (line !== null && getSelection().isCollapsed) select(pane, Number(line.id.slice(pane.lines.id.length + 1)));
  });
  pane.lines.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const move = MOVES[event.key];
    if (move !== undefined) select(pane, Math.max(0, Math.min(move(pane), pane.rows.length - 1)));
    else if (event.key === "[" || event.key === "]") step(pane, event.key === "]" ? 1 : -1);
    else return;
    event.preventDefault();
  });
}

function choose(pane, number) {
  const { group, name } = current.stages[number];
  pane.wanted = { group, name };
  showStage(pane, number);
}

/** Shows the next or previous stage, in the order of the list of choices. */
function step(pane, by) {
  const order = [...pane.choice.options].map(({ value }) => Number(value));
  const next = order[order.indexOf(pane.stage) + by];
  if (next !== undefined) choose(pane, next);
}

byId("filter").addEventListener("input", () => {
  shown = PAGE;
  listFunctions();
});
byId("filter").addEventListener("keydown", (event) => {
  const first = byId("functions").querySelector("a");
  if (event.key === "Enter" && first !== null) location.hash = first.hash;
  else if (event.key === "ArrowDown" && first !== null) first.focus();
  else return;
  event.preventDefault();
});
byId("functions").addEventListener("keydown", (event) => {
  const item = event.target.closest("li");
  if (item === null || (event.key !== "ArrowDown" && event.key !== "ArrowUp")) return;
  const next = event.key === "ArrowDown" ? item.nextElementSibling : item.previousElementSibling;
  (next === null ? byId("filter") : next.querySelector("a")).focus();
  event.preventDefault();
});
byId("more").addEventListener("click", () => {
  shown += PAGE;
  listFunctions();
});
byId("help").addEventListener("click", () => byId("keys").showModal());
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, dialog") !== null || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "/") byId("filter").focus();
  else if (event.key === "?") byId("keys").showModal();
  else if (/^[123]$/.test(event.key)) panes[Number(event.key) - 1].lines.focus();
  else return;
  event.preventDefault();
});

function follow() {
  const at = /^#f(\d+)$/.exec(location.hash)?.[1];
  if (at !== undefined) open(Number(at));
}
addEventListener("hashchange", follow);
listFunctions();
if (/^#f\d+$/.test(location.hash)) follow();
else if (index.functions.length > 0) open((index.functions.find(([at]) => at === index.first) ?? index.functions[0])[0]);
`;
