/**
 * Plots: every bar is inside of the picture and in the right place, names are text, other blocks are left alone.
 */
import assert from "node:assert/strict";
import { drawPlot, parsePlot } from "./plot.ts";
import { renderAuthorText, renderDocument } from "./markdown.ts";

const BLOCK = "Run time <b>\ncrc32 0.5\nhash table 1\nsieve & co 2.25\nslow 400\nfast 0.001\n";

Deno.test("plots: bars grow from 1 to either side, and stay inside", () => {
  const svg = drawPlot(BLOCK)!;
  const bars = [...svg.matchAll(/<rect class="(\S+)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"/g)];
  assert.deepEqual(bars.map((b) => b[1]), ["bar-a", "bar-a", "bar-b", "bar-b", "bar-a"]);
  const even = Number(/<line class="even" x1="([\d.]+)"/.exec(svg)![1]);
  const edges = bars.map((b) => [Number(b[2]), Number(b[2]) + Number(b[4])]);
  assert.ok(Math.abs(edges[0]![1]! - even) < 1 && Math.abs(edges[2]![0]! - even) < 1);
  for (const [from, to] of edges) assert.ok(from! >= 0 && to! <= 720);
  // Twice as slow is as long as twice as fast is.
  const [a, b] = [drawPlot("t\na 0.5\nb 2\n")!].map((s) =>
    [...s.matchAll(/width="([\d.]+)" height="15"/g)].map((m) => Number(m[1]))
  )[0]!;
  assert.ok(Math.abs(a! - b!) < 0.2, `${a} ${b}`);
});

Deno.test("plots: names and titles are text", () => {
  const svg = drawPlot(BLOCK)!;
  assert.match(svg, /aria-label="Run time &lt;b&gt;\. crc32 0\.5, hash table 1, sieve &amp; co 2\.25,/);
  assert.doesNotMatch(svg, /<b>|style=|<script/);
});

Deno.test("plots: what is none stays code, and authors have none", () => {
  for (const text of ["", "title", "title\nname", "title\na -1", "title\na 0", "title\na 1e9x"]) {
    assert.equal(parsePlot(text), undefined, text);
  }
  const markdown = `# T\n\n\`\`\`plot\n${BLOCK}\`\`\`\n`;
  assert.match(renderDocument(markdown, (link) => link).html, /<svg /);
  assert.match(renderDocument("```plot\nnothing\n```", (link) => link).html, /<pre/);
  assert.doesNotMatch(renderAuthorText(markdown), /<svg/);
});
