/**
 * Plots: every bar is inside of the picture and in the right place, names are text, other blocks are left alone.
 */
import assert from "node:assert/strict";
import { drawPlot, parsePlot } from "./plot.ts";
import { renderAuthorText, renderDocument } from "./markdown.ts";

const BLOCK = "Run time <b>\ncrc32 0.5\nhash table 1\nsieve & co 2.25\nslow 400\nfast 0.001\n";

/** The bars of a plot: class, start and end in percent. */
function barsOf(html: string): { kind: string; from: number; to: number }[] {
  return [...html.matchAll(/<rect class="(\S+)" x="([\d.]+)%" y="1" width="([\d.]+)%"/g)].map(([, kind, x, width]) => ({
    kind: kind!,
    from: Number(x),
    to: Number(x) + Number(width),
  }));
}

Deno.test("plots: bars grow from 1 to either side, and stay inside", () => {
  const html = drawPlot(BLOCK)!;
  const bars = barsOf(html);
  assert.deepEqual(bars.map((b) => b.kind), ["bar-a", "bar-a", "bar-b", "bar-b", "bar-a"]);
  const even = Number(/<line class="even" x1="([\d.]+)%"/.exec(html)![1]);
  assert.ok(Math.abs(bars[0].to - even) < 0.5 && Math.abs(bars[2].from - even) < 0.5);
  for (const { from, to } of bars) assert.ok(from >= 0 && to <= 100.5, `${from} ${to}`);
  // Twice as slow is as long as twice as fast is.
  const [a, b] = barsOf(drawPlot("t\na 0.5\nb 2\n")!);
  assert.ok(Math.abs((a!.to - a!.from) - (b!.to - b!.from)) < 0.2);
});

Deno.test("plots: names, numbers and titles are text, and nothing depends on the width", () => {
  const html = drawPlot(BLOCK)!;
  assert.match(html, /<figcaption>Run time &lt;b&gt;<\/figcaption>/);
  assert.match(html, /<li><span>sieve &amp; co<\/span>[\s\S]*?<b>2\.25×<\/b><\/li>/);
  assert.doesNotMatch(html, /style=|<script|viewBox/);
});

Deno.test("plots: other code blocks stay code, and authors have no plots", () => {
  for (const text of ["", "title", "title\nname", "title\na -1", "title\na 0", "title\na 1e9x"]) {
    assert.equal(parsePlot(text), undefined, text);
  }
  const markdown = `# T\n\n\`\`\`plot\n${BLOCK}\`\`\`\n`;
  assert.match(renderDocument(markdown, (link) => link).html, /<svg /);
  assert.match(renderDocument("```plot\nnothing\n```", (link) => link).html, /<pre/);
  assert.doesNotMatch(renderAuthorText(markdown), /<svg/);
});
