/**
 * Curves: ratios over time, both on logarithmic scales, drawn on the server, readable at any width.
 *
 * In: the text of a `curve` block of the documentation: a title, then lines of a time in milliseconds and a ratio,
 * where 1 is even, ascending by time. Out: SVG whose horizontal positions are percentages, so that text keeps its size
 * on a phone. Colours come from the style sheet (no inline styles). The picture is hidden from assistive technology; a
 * page has the numbers in a table beside it.
 */
import { escapeText } from "./markup.ts";

interface Point {
  readonly ms: number;
  readonly ratio: number;
}

const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20];
/** Height of the curve, and of the labels below it, in pixels. */
const HEIGHT = 160;
const LABELS = 18;
/** Room left of the curve for the labels of ratios, and right of it for half a label, in percent. */
const LEFT = 9;
const RIGHT = 4;

/** The title and the points of a block; undefined if it is not a curve. */
export function parseCurve(text: string): { readonly title: string; readonly points: readonly Point[] } | undefined {
  const [title, ...lines] = text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  const points: Point[] = [];
  for (const line of lines) {
    const match = /^([0-9]+)\s+([0-9]+(?:\.[0-9]+)?)$/.exec(line);
    const [ms, ratio] = [Number(match?.[1]), Number(match?.[2])];
    if (match === null || !(ratio > 0) || !(ms > (points.at(-1)?.ms ?? 0))) return undefined;
    points.push({ ms, ratio });
  }
  return title === undefined || points.length < 2 ? undefined : { title, points };
}

/** Draws a block; undefined when it is not a curve. */
export function drawCurve(text: string): string | undefined {
  const curve = parseCurve(text);
  if (curve === undefined) return undefined;
  const { title, points } = curve;
  const ratios = points.map(({ ratio }) => ratio);
  const low = STEPS.findLast((step) => step <= Math.min(0.5, ...ratios)) ?? STEPS[0];
  const high = STEPS.find((step) => step >= Math.max(2, ...ratios)) ?? STEPS.at(-1)!;
  const [first, last] = [points[0].ms, points.at(-1)!.ms];
  const x = (ms: number) => round(LEFT + (100 - LEFT - RIGHT) * Math.log(ms / first) / Math.log(last / first));
  const inside = (ratio: number) => Math.min(high, Math.max(low, ratio));
  const y = (ratio: number) => round(6 + (HEIGHT - 12) * (1 - Math.log(inside(ratio) / low) / Math.log(high / low)));
  const grid = STEPS.filter((step) => step >= low && step <= high).map((step) =>
    `<line class="${step === 1 ? "even" : "grid"}" x1="${LEFT}%" x2="${100 - RIGHT}%" y1="${y(step)}" y2="${
      y(step)
    }"/>` +
    `<text class="scale" x="0" y="${y(step) + 4}">${step}×</text>`
  );
  const times = points.map(({ ms }) =>
    `<text class="scale" x="${x(ms)}%" y="${HEIGHT + 13}" text-anchor="middle">${
      ms < 1000 ? ms : `${ms / 1000} s`
    }</text>`
  );
  const lines = points.slice(1).map((to, k) => {
    const from = points[k];
    return `<line class="curve" x1="${x(from.ms)}%" y1="${y(from.ratio)}" x2="${x(to.ms)}%" y2="${y(to.ratio)}"/>`;
  });
  return `<figure class="plot"><figcaption>${escapeText(title)}</figcaption>` +
    `<svg width="100%" height="${HEIGHT + LABELS}" aria-hidden="true">${
      [...grid, ...times, ...lines].join("")
    }</svg></figure>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
