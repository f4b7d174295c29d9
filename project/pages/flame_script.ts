/**
 * The script of the page of `waft profile`, as text: it runs in browsers, not here. In: the data block of
 * flame_page.ts. Out: a flame graph, root at the top, and a table of functions. Invariant: names enter the document as
 * text nodes only, and frames are made only for the part that is visible at the chosen zoom.
 */

/** JavaScript of a classic script. */
export const FLAME_SCRIPT = String.raw`"use strict";
const byId = (id) => document.getElementById(id);
const { frames, nodes, functions, interval } = JSON.parse(byId("profile").textContent);
const ROW = 22;
const MIN_PIXELS = 2;
// Nodes are [frame, parent, own samples]; parents come first.
const tree = nodes.map(([frame, parent, self]) => ({ frame, parent, self, total: self, children: [], depth: 0 }));
for (let k = tree.length - 1; k > 0; k--) tree[tree[k].parent].total += tree[k].total;
tree.forEach((node, k) => {
  if (k === 0) return;
  node.depth = tree[node.parent].depth + 1;
  tree[node.parent].children.push(k);
});
for (const node of tree) node.children.sort((a, b) => tree[b].total - tree[a].total);
let zoomed = 0;
let focused = 0;

const percent = (count, whole = tree[0].total) => whole === 0 ? "0 %" : (100 * count / whole).toFixed(1) + " %";
const nameOf = (k) => k === 0 ? "all" : frames[tree[k].frame].name;

function describe(k) {
  const { self, total, frame } = tree[k];
  const place = k === 0 ? "" : frames[frame].place;
  const time = (total * interval).toFixed(0) + " ms";
  return [nameOf(k), place, percent(total) + " in it and its callees", percent(self) + " its own", time]
    .filter((text) => text !== "").join(" · ");
}

function around(k) {
  const found = [];
  for (let at = k; at !== 0; at = tree[at].parent) found.push(tree[at].parent);
  return found.reverse();
}

function draw() {
  const width = byId("graph").clientWidth;
  const words = byId("search").value.toLowerCase();
  const parts = [];
  let rows = 0;
  const box = (k, left, size, className) => {
    const { depth, frame } = tree[k];
    const element = document.createElement("div");
    const name = nameOf(k);
    element.className = "frame " + (k === 0 ? "engine" : frames[frame].kind) + className +
      (words !== "" && k !== 0 && name.toLowerCase().includes(words) ? " found" : "");
    element.setAttribute("role", "treeitem");
    element.setAttribute("aria-level", String(depth + 1));
    element.setAttribute("aria-label", describe(k));
    element.setAttribute("aria-selected", String(k === focused));
    element.tabIndex = k === focused ? 0 : -1;
    element.id = "n" + k;
    element.textContent = size > 24 ? name : "";
    element.style.left = left + "px";
    element.style.width = Math.max(size, 1) + "px";
    element.style.top = depth * ROW + "px";
    rows = Math.max(rows, depth + 1);
    parts.push(element);
  };
  const outer = around(zoomed);
  if (![...outer, zoomed].includes(focused) && !isBelow(focused, zoomed)) focused = zoomed;
  for (const k of outer) box(k, 0, width, " around");
  const waiting = [[zoomed, 0, width]];
  while (waiting.length > 0) {
    const [k, left, size] = waiting.pop();
    box(k, left, size, "");
    let at = left;
    for (const child of tree[k].children) {
      const part = size * tree[child].total / tree[k].total;
      if (part >= MIN_PIXELS) waiting.push([child, at, part]);
      at += part;
    }
  }
  byId("rows").replaceChildren(...parts);
  byId("rows").style.height = rows * ROW + "px";
  byId("reset").disabled = zoomed === 0;
}

function isBelow(k, top) {
  for (let at = k; ; at = tree[at].parent) {
    if (at === top) return true;
    if (at === 0) return false;
  }
}

function focus(k) {
  if (byId("n" + k) === null) return;
  byId("n" + focused)?.setAttribute("tabindex", "-1");
  byId("n" + focused)?.setAttribute("aria-selected", "false");
  focused = k;
  const element = byId("n" + k);
  element.tabIndex = 0;
  element.setAttribute("aria-selected", "true");
  element.focus({ preventScroll: true });
  element.scrollIntoView({ block: "nearest" });
  byId("status").textContent = describe(k);
}

function zoom(k) {
  zoomed = k;
  focused = k;
  draw();
  focus(k);
}

function sibling(k, by) {
  if (k === 0) return 0;
  const { children } = tree[tree[k].parent];
  return children[children.indexOf(k) + by] ?? k;
}

const MOVES = {
  ArrowUp: (k) => k === 0 ? 0 : tree[k].parent,
  ArrowDown: (k) => tree[k].children[0] ?? k,
  ArrowLeft: (k) => sibling(k, -1),
  ArrowRight: (k) => sibling(k, 1),
  Home: () => 0,
};

byId("rows").addEventListener("keydown", (event) => {
  const move = MOVES[event.key];
  if (move !== undefined) focus(move(focused));
  else if (event.key === "Enter" || event.key === " ") zoom(focused);
  else if (event.key === "Escape") zoom(0);
  else return;
  event.preventDefault();
});
byId("rows").addEventListener("click", ({ target }) => {
  const frame = target.closest(".frame");
  if (frame !== null) zoom(Number(frame.id.slice(1)));
});
byId("rows").addEventListener("mouseover", ({ target }) => {
  const frame = target.closest(".frame");
  if (frame !== null) byId("status").textContent = describe(Number(frame.id.slice(1)));
});
byId("reset").addEventListener("click", () => zoom(0));
byId("tools").addEventListener("submit", (event) => event.preventDefault());
byId("search").addEventListener("input", () => {
  draw();
  listFunctions();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest("input") !== null) return;
  byId("search").focus();
  event.preventDefault();
});

function listFunctions() {
  const words = byId("search").value.toLowerCase();
  const shown = functions.filter(({ name }) => name.toLowerCase().includes(words)).slice(0, 200);
  byId("functions").replaceChildren(...shown.map(({ name, kind, self, total }) => {
    const row = document.createElement("tr");
    for (const [text, className] of [
      [percent(self), "number"], [percent(total), "number"], [name, "name"], [kind, ""],
    ]) {
      const cell = row.appendChild(document.createElement("td"));
      cell.className = className;
      cell.textContent = text;
    }
    return row;
  }));
}

addEventListener("resize", draw);
draw();
listFunctions();
byId("status").textContent = describe(0);
`;
