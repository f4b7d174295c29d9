/**
 * Plots: bars of ratios on a logarithmic scale, drawn on the server, readable at any width.
 *
 * In: the text of a `plot` block of the documentation: a title, then lines of a name and a number, the ratio to the
 * other side, where 1 is even. Out: one row for each bar, with the name and the number as text and the bar as SVG whose
 * positions are percentages, so that text keeps its size on a phone. Colours come from the style sheet (no inline
 * styles). The bars are hidden from assistive technology; the names and numbers are text.
 */
import { escapeText } from "./markup.ts";

/** One bar. */
interface Bar {
  readonly name: string;
  readonly value: number;
}

const STEPS = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100];

/** The title and the bars of a block; undefined if it is not a plot. */
export function parsePlot(text: string): { readonly title: string; readonly bars: readonly Bar[] } | undefined {
  const [title, ...lines] = text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  const bars: Bar[] = [];
  for (const line of lines) {
    const match = /^(.+?)\s+([0-9]+(?:\.[0-9]+)?)$/.exec(line);
    const value = Number(match?.[2]);
    if (match === null || !(value > 0)) return undefined;
    bars.push({ name: match[1], value });
  }
  return title === undefined || bars.length === 0 ? undefined : { title, bars };
}

/** Draws a block; undefined when it is not a plot. */
export function drawPlot(text: string): string | undefined {
  const plot = parsePlot(text);
  if (plot === undefined) return undefined;
  const { title, bars } = plot;
  const scale = makeScale(bars.map((bar) => bar.value));
  const rows = bars.map((bar) => drawBar(bar, scale)).join("");
  return `<figure class="plot"><figcaption>${escapeText(title)}</figcaption>${
    drawSteps(scale)
  }<ul>${rows}</ul></figure>`;
}

/** The range of a plot, and the positions of values in it, in percent. */
interface Scale {
  readonly steps: readonly number[];
  readonly x: (value: number) => number;
}

function makeScale(values: readonly number[]): Scale {
  const low = STEPS.findLast((s) => s <= Math.min(1, ...values)) ?? STEPS[0];
  const high = STEPS.find((s) => s >= Math.max(1, ...values)) ?? STEPS.at(-1)!;
  const range = Math.log(high / low) || 1;
  const x = (value: number): number => round(100 * Math.log(Math.min(high, Math.max(low, value)) / low) / range);
  return { steps: STEPS.filter((s) => s >= low && s <= high), x };
}

function drawSteps({ steps, x }: Scale): string {
  const labels = steps.map((step) => {
    const anchor = step === steps[0] ? "start" : step === steps.at(-1) ? "end" : "middle";
    return `<text class="scale" x="${x(step)}%" y="12" text-anchor="${anchor}">${step}×</text>`;
  });
  return `<svg class="steps" width="100%" height="16" aria-hidden="true">${labels.join("")}</svg>`;
}

function drawBar({ name, value }: Bar, { x }: Scale): string {
  const [even, to] = [x(1), x(value)];
  const width = Math.max(0.4, round(Math.abs(to - even)));
  return `<li><span>${escapeText(name)}</span>` +
    `<svg width="100%" height="14" aria-hidden="true"><line class="even" x1="${even}%" x2="${even}%" y1="0" y2="14"/>` +
    `<rect class="${value <= 1 ? "bar-a" : "bar-b"}" x="${
      Math.min(even, to)
    }%" y="1" width="${width}%" height="12"/></svg>` +
    `<b>${value}×</b></li>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
