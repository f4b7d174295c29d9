/**
 * The page of `waft profile`: a flame graph and a table of functions. In: a profile. Out: one self-contained page.
 * Invariant: stacks that have the same functions are one node of the graph, whatever their lines.
 */
import type { Profile, ProfileFrame } from "@waft/engine";
import { displayName } from "@waft/engine/internal/base/guest_stack";
import { escapeHostile } from "../base/diagnostic.ts";
import { FLAME_SCRIPT } from "./flame_script.ts";
import { FLAME_STYLE } from "./flame_style.ts";
import { escapeMarkup, pageHtml, scriptJson } from "./page_shell.ts";
import { PAGE_STYLE } from "./page_style.ts";

/** A node of the graph: its frame, its caller's node, and its own samples. Node 0 is the root. */
type FlameNode = [frame: number, parent: number, self: number];

/** The frames of the graph, one per function and way of being called, and its nodes. */
interface FlameGraph {
  readonly frames: readonly { readonly name: string; readonly kind: string; readonly place: string }[];
  readonly nodes: readonly FlameNode[];
}

function frameKey({ kind, module, funcIndex, name, isInlined }: ProfileFrame): string {
  return JSON.stringify([kind, module, funcIndex ?? name, isInlined]);
}

/** The graph of a profile. */
function flameGraph({ frames, stackFrames, stackCallers, sampleStacks }: Profile): FlameGraph {
  const numbers = new Map<string, number>();
  const shown: ProfileFrame[] = [];
  const ofFrame = frames.map((frame) => {
    const known = numbers.get(frameKey(frame)) ?? shown.push(frame) - 1;
    numbers.set(frameKey(frame), known);
    return known;
  });
  const nodes: FlameNode[] = [[-1, 0, 0]];
  const known = new Map<string, number>();
  const ofStack: number[] = [];
  stackFrames.forEach((frame, stack) => {
    const caller = stackCallers[stack] ?? -1;
    const parent = caller < 0 ? 0 : ofStack[caller] ?? 0;
    const key = `${parent} ${ofFrame[frame ?? 0]}`;
    const node = known.get(key) ?? nodes.push([ofFrame[frame ?? 0] ?? 0, parent, 0]) - 1;
    known.set(key, node);
    ofStack.push(node);
  });
  for (const stack of sampleStacks) {
    const node = nodes[ofStack[stack] ?? 0];
    if (node !== undefined) node[2]++;
  }
  return {
    frames: shown.map((frame) => ({ name: shownName(frame), kind: frame.kind, place: shownPlace(frame) })),
    nodes,
  };
}

function shownName({ name, isInlined }: ProfileFrame): string {
  return escapeHostile(isInlined ? `${displayName(name)} (inlined)` : displayName(name));
}

function shownPlace({ file, module }: ProfileFrame): string {
  return escapeHostile(file ?? module ?? "");
}

const KINDS: readonly (readonly [string, string])[] = [
  ["wasm", "WebAssembly"],
  ["host", "host functions"],
  ["engine", "the engine itself"],
];

function bodyHtml(title: string, { sampleStacks, interval, dropped }: Profile): string {
  const lost = dropped === 0 ? "" : `, ${dropped} more without room`;
  const key = KINDS.map(([kind, meaning]) => `<li><span class="${kind}"></span> ${meaning}</li>`).join("");
  return `<header><h1>${escapeMarkup(title)}</h1>
<span class="quiet">${sampleStacks.length} samples, one every ${interval} ms${lost}</span></header>
<main>
<form id="tools" role="search">
<label>Search <input id="search" type="search" autocomplete="off" spellcheck="false"></label>
<button id="reset" type="button">Whole profile</button>
<ul class="key">${key}</ul>
</form>
<div id="graph"><div id="rows" role="tree" aria-label="Flame graph"></div></div>
<p id="status" role="status"></p>
<h2>Functions</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Functions"><table>
<thead><tr><th class="number" scope="col">Own</th><th class="number" scope="col">With callees</th>
<th scope="col">Function</th><th scope="col">Kind</th></tr></thead>
<tbody id="functions"></tbody></table></div>
</main>`;
}

/** The text of the page for the profile of program `name`. */
export function flamePageHtml(profile: Profile, name: string): string {
  const functions = profile.functions().map(({ name, kind, self, total }) => {
    return { name: escapeHostile(displayName(name)), kind, self, total };
  });
  return pageHtml({
    title: `${name} · waft profile`,
    style: PAGE_STYLE + FLAME_STYLE,
    script: FLAME_SCRIPT,
    body: bodyHtml(name, profile),
    data: [{ id: "profile", text: scriptJson({ ...flameGraph(profile), functions, interval: profile.interval }) }],
  });
}
