/**
 * Text for terminals: tables, colours, and whether prompts are possible.
 *
 * In: cells that may come from registries. Out: aligned lines in which no text can move the cursor, reorder or
 * hide other text. The use of colours and prompts is decided once, from flags, environment and the types of the
 * streams.
 */
import process from "node:process";
import { stripVTControlCharacters } from "node:util";
import { escapeHostile } from "./diagnostic.ts";

/** Colours, or none. */
export interface Palette {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
}

/** The output that a text is made for. */
export interface TextOutput {
  readonly colors: Palette;
  /** Columns of the terminal; absent when it is not a terminal. */
  readonly columns?: number | undefined;
}

/** Standard output. `color` is the flag `--color`. */
export function standardOutput(color?: string): TextOutput {
  const { stdout, env } = process;
  const isTerminal = stdout.isTTY === true;
  return {
    colors: palette(wantsColor(color, isTerminal, env)),
    ...(isTerminal ? { columns: stdout.columns } : {}),
  };
}

/** Decides whether to colour: by flag, then NO_COLOR, then whether the stream is a terminal. */
export function wantsColor(
  flag: string | undefined,
  isTerminal: boolean,
  env: { readonly [name: string]: string | undefined },
): boolean {
  if (flag === "always") return true;
  if (flag === "never" || (env.NO_COLOR ?? "") !== "" || env.TERM === "dumb") return false;
  return isTerminal;
}

/** A palette that colours or does not. */
export function palette(on: boolean): Palette {
  const paint = (code: number, end: number) => (text: string): string =>
    on ? `\u001b[${code}m${text}\u001b[${end}m` : text;
  return { bold: paint(1, 22), dim: paint(2, 22), red: paint(31, 39), green: paint(32, 39), yellow: paint(33, 39) };
}

/** Escapes untrusted text. The text is never shortened: a user must see the full basis of a decision. */
export function safe(text: string): string {
  return escapeHostile(text);
}

/**
 * Escapes untrusted prose, and makes one space of each run of white space: text that is padded to the terminal's width
 * would look like lines of waft's own.
 */
export function safeProse(text: string): string {
  return escapeHostile(text.trim().replace(/\s+/gu, " "));
}

/** Escapes and truncates untrusted text, for hints that repeat text shown in full elsewhere. */
export function safeHint(text: string, limit: number): string {
  const clean = escapeHostile(text);
  return clean.length > limit ? `${clean.slice(0, limit - 1)}…` : clean;
}

/** Columns between two cells. */
const GAP = 2;
/** A last column narrower than this wraps onto lines below the others, with this indent. */
const MIN_WIDTH = 20;
/** Farther right than any line of a review begins, so that wrapped text of a plugin does not look like one. */
const INDENT = 8;

/**
 * Columns on a terminal. The caller escapes cells from outside. The last column wraps at `columns`, or continues below
 * the others where it would be too narrow.
 */
export function layoutTable(rows: readonly (readonly string[])[], columns?: number): string[] {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, i) => widths[i] = Math.max(widths[i] ?? 0, widthOf(cell)));
  return rows.flatMap((row) => {
    const last = row.at(-1) ?? "";
    const before = row.slice(0, -1).map((cell, i) => cell + " ".repeat(widths[i] - widthOf(cell) + GAP)).join("");
    const room = (columns ?? Infinity) - widthOf(before);
    if (widthOf(last) <= room) return [(before + last).trimEnd()];
    const isNarrow = room < MIN_WIDTH;
    const indent = " ".repeat(isNarrow ? INDENT : widthOf(before));
    const lines = wordsWithin(last, isNarrow ? columns! - INDENT : room);
    if (isNarrow) return [before.trimEnd(), ...lines.map((line) => indent + line)];
    return lines.map((line, i) => (i === 0 ? before : indent) + line);
  });
}

/** A line, wrapped at `columns`. */
export function wrapLine(line: string, columns?: number): string[] {
  if (columns === undefined || widthOf(line) <= columns) return [line];
  const [first, ...rest] = wordsWithin(line, columns);
  return [first, ...wordsWithin(rest.join(" "), columns - INDENT).map((more) => " ".repeat(INDENT) + more)];
}

/** Breaks text into lines of words; a word longer than a line gets a separate line. */
function wordsWithin(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const line = lines.at(-1);
    if (line === undefined || widthOf(line) + 1 + widthOf(word) > width) lines.push(word);
    else lines[lines.length - 1] = `${line} ${word}`;
  }
  return lines;
}

/** Cells of a text: wide characters count two, our own colours none. */
function widthOf(text: string): number {
  let width = 0;
  for (const c of stripVTControlCharacters(text)) width += /\p{M}/u.test(c) ? 0 : isWide(c.codePointAt(0)!) ? 2 : 1;
  return width;
}

function isWide(point: number): boolean {
  return point >= 0x1100 &&
    (point <= 0x115f || (point >= 0x2e80 && point <= 0xa4cf) || (point >= 0xac00 && point <= 0xd7a3) ||
      (point >= 0xf900 && point <= 0xfaff) || (point >= 0xfe30 && point <= 0xfe6f) ||
      (point >= 0xff00 && point <= 0xff60) ||
      (point >= 0x1f300 && point <= 0x1faff) || (point >= 0x20000 && point <= 0x3fffd));
}

/** True when a person can be asked: a terminal on both sides, not CI, not told otherwise. */
export function canPrompt(
  streams: { readonly input: boolean; readonly output: boolean },
  env: { readonly [name: string]: string | undefined },
  flags: { readonly input: boolean; readonly json: boolean },
): boolean {
  const ci = (env.CI ?? "") !== "" && env.CI !== "false" && env.CI !== "0";
  return streams.input && streams.output && !ci && flags.input && !flags.json;
}
