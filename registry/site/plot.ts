/**
 * Plots: bars of ratios on a logarithmic scale, as SVG in the page, drawn on the server.
 *
 * In: the text of a `plot` block of our own Markdown: a title, then lines of a name and a number, the ratio to the other side,
 * where 1 is even. Out: an SVG whose colours come from the site's style sheet (no inline styles), with the same content as
 * text for those who do not see it. The Markdown beside it holds the numbers as a table.
 */
import { escapeText } from "./markup.ts";

/** One bar. */
export interface Bar {
  readonly name: string;
  readonly value: number;
}

const ROW = 24;
const LEFT = 150;
const WIDTH = 720;
const RIGHT = 60;
const TOP = 28;
const STEPS = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100];

/** The title and the bars of a block; undefined when it is none. */
export function parsePlot(text: string): { readonly title: string; readonly bars: readonly Bar[] } | undefined {
  const [title, ...lines] = text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  const bars: Bar[] = [];
  for (const line of lines) {
    const match = /^(.+?)\s+([0-9]+(?:\.[0-9]+)?)$/.exec(line);
    const value = Number(match?.[2]);
    if (match === null || !(value > 0)) return undefined;
    bars.push({ name: match[1]!, value });
  }
  return title === undefined || bars.length === 0 ? undefined : { title, bars };
}

/** Draws a block; undefined when it is no plot. */
export function drawPlot(text: string): string | undefined {
  const plot = parsePlot(text);
  if (plot === undefined) return undefined;
  const { title, bars } = plot;
  const values = bars.map((bar) => bar.value);
  const low = STEPS.findLast((s) => s <= Math.min(1, ...values)) ?? STEPS[0]!;
  const high = STEPS.find((s) => s >= Math.max(1, ...values)) ?? STEPS.at(-1)!;
  const range = Math.log(high / low) || 1;
  const x = (value: number): number =>
    round(LEFT + (WIDTH - LEFT - RIGHT) * Math.log(Math.min(high, Math.max(low, value)) / low) / range);
  const height = TOP + bars.length * ROW + 8;
  const grid = STEPS.filter((s) => s >= low && s <= high).map((s) =>
    `<line class="${s === 1 ? "even" : "grid"}" x1="${x(s)}" x2="${x(s)}" y1="${TOP - 6}" y2="${height - 6}"/>` +
    `<text class="scale" x="${x(s)}" y="14" text-anchor="middle">${s}×</text>`
  );
  const even = x(1);
  const drawn = bars.map(({ name, value }, i) => {
    const y = TOP + i * ROW;
    const to = x(value);
    const [from, width] = to < even ? [to, even - to] : [even, to - even];
    return `<text x="${LEFT - 10}" y="${y + 14}" text-anchor="end">${escapeText(name)}</text>` +
      `<rect class="${value <= 1 ? "bar-a" : "bar-b"}" x="${from}" y="${y + 3}" width="${
        Math.max(1.5, round(width))
      }" ` +
      `height="${ROW - 9}" rx="3"/>` +
      `<text class="scale" x="${Math.max(to, even) + 6}" y="${y + 14}">${value}</text>`;
  });
  const label = `${title}. ${bars.map((bar) => `${bar.name} ${bar.value}`).join(", ")}`;
  return `<figure class="plot"><figcaption>${escapeText(title)}</figcaption>` +
    `<svg viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${
      escapeText(label)
    }">` +
    `${grid.join("")}${drawn.join("")}</svg></figure>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
