/**
 * Curves: every point is inside of the picture, later ones are further right, slower ones higher; other blocks are left
 * alone.
 */
import assert from "node:assert/strict";
import { drawCurve, parseCurve } from "./curve.ts";
import { renderAuthorText, renderDocument } from "./markdown.ts";
import { performancePage } from "./performance_page.ts";

const BLOCK = "Time <b>\n20 3.5\n100 1\n1000 0.5\n4000 0.001\n";

/** The segments of a curve. */
function segmentsOf(html: string): { x1: number; y1: number; x2: number; y2: number }[] {
  const pattern = /<line class="curve" x1="([\d.]+)%" y1="([\d.]+)" x2="([\d.]+)%" y2="([\d.]+)"/g;
  return [...html.matchAll(pattern)].map(([, ...numbers]) => {
    const [x1, y1, x2, y2] = numbers.map(Number);
    return { x1, y1, x2, y2 };
  });
}

Deno.test("curves: segments join the points from left to right, within the picture", () => {
  const html = drawCurve(BLOCK)!;
  const segments = segmentsOf(html);
  assert.equal(segments.length, 3);
  for (const [k, { x1, y1, x2, y2 }] of segments.entries()) {
    assert.ok(x1 >= 0 && x1 < x2 && x2 <= 100 && Math.min(y1, y2) >= 0 && y1 < y2 && y2 <= 160);
    if (k > 0) assert.deepEqual([x1, y1], [segments[k - 1].x2, segments[k - 1].y2]);
  }
  const even = Number(/<line class="even"[^>]* y1="([\d.]+)"/.exec(html)![1]);
  assert.equal(segments[0].y2, even);
  assert.match(html, /<figcaption>Time &lt;b&gt;<\/figcaption>/);
  assert.match(html, />20<\/text>.*>100<\/text>.*>1 s<\/text>.*>4 s<\/text>/);
  assert.doesNotMatch(html, /style=|<script|viewBox/);
});

Deno.test("curves: other code blocks stay code, and authors have no curves", () => {
  for (const text of ["", "title", "t\n10 1", "t\n10 1\n10 2", "t\n20 1\n10 2", "t\n10 0\n20 1", "t\n10 1\n20 x"]) {
    assert.equal(parseCurve(text), undefined, text);
  }
  const markdown = `# T\n\n\`\`\`curve\n${BLOCK}\`\`\`\n`;
  assert.match(renderDocument(markdown, (link) => link).html, /<line class="curve"/);
  assert.match(renderDocument("```curve\nnothing\n```", (link) => link).html, /<pre/);
  assert.doesNotMatch(renderAuthorText(markdown), /<svg/);
});

Deno.test("the page about performance draws the curve of figures that have one", () => {
  const figures = { machine: "m", summary: [], programs: [], boundary: [], compile: [] };
  const program = { name: "sieve", firstRatio: 1.25, workRatios: [1, 0.875, 0.5], waftNearMs: 250, v8NearMs: 1500 };
  const page = performancePage({ ...figures, warmUp: { times: [20, 2000], curve: [2, 0.5], programs: [program] } });
  assert.match(renderDocument(page, (link) => link).html, /<line class="curve"/);
  assert.match(page, /^\| sieve \| 1\.25 \| 1\.00 \| 0\.88 \| 0\.50 \| 0\.25 s \| 1\.50 s \|$/m);
  assert.doesNotMatch(performancePage(figures), /Warm-up/);
});
