/**
 * Terminal input and paging for prompts.
 *
 * In: text to show on stderr. Out: the same text page by page, so a prompt never follows text that has scrolled
 * away; pending input is discarded. A terminal in raw mode under another program's control is refused.
 */
import process from "node:process";
import { fail } from "../base/diagnostic.ts";
import { endProgress } from "../base/progress.ts";

/** The rows that a question takes. */
const QUESTION_ROWS = 10;
const MORE = "-- more: press a key --";

/** Shows text on stderr; waits for a key after each screenful, and before a question would move its last rows away. */
export async function showWhole(text: string): Promise<void> {
  endProgress();
  const { rows, columns } = process.stderr;
  for (const page of screenPages(text, rows || 24, columns || 80)) {
    process.stderr.write(page.text);
    if (page.needsKey) await waitForKey(columns || 80);
  }
}

async function waitForKey(columns: number): Promise<void> {
  process.stderr.write(MORE.slice(0, Math.max(1, columns - 1)));
  await pressedKey();
  process.stderr.write("\r\u001b[K");
}

/** A screenful of a text. */
interface Page {
  readonly text: string;
  /** Whether rows of the page would leave the screen with the next page, or with a question. */
  readonly needsKey: boolean;
}

/** The pages of a text on a screen of this size. */
export function screenPages(text: string, rows: number, columns: number): Page[] {
  const all = screenRows(text, columns);
  // One row for the wait for a key, one that remains of the last page.
  const size = Math.max(1, rows - 2);
  return Array.from({ length: Math.ceil(all.length / size) }, (_, k) => {
    const page = all.slice(k * size, (k + 1) * size);
    const isLast = (k + 1) * size >= all.length;
    return { text: page.map((row) => `${row}\n`).join(""), needsKey: !isLast || page.length + QUESTION_ROWS > rows };
  });
}

// deno-lint-ignore no-control-regex -- the colours that waft adds
const PARTS = /\u001b\[[0-9;]*m|[^]/gu;

/** The start of a row that continues the row above: without it, text that is padded could look like a line of waft. */
export const CONTINUED = "\u21b3 ";
/** Narrower screens have no room for it. */
const MIN_COLUMNS = 20;

/**
 * The rows of a text. Each fits the screen, because every character counts with the greatest width that terminals give
 * it.
 */
function screenRows(text: string, columns: number): string[] {
  const start = columns < MIN_COLUMNS ? "" : CONTINUED;
  const startCells = [...start].reduce((sum, part) => sum + mostCells(part), 0);
  return text.split("\n").flatMap((line) => {
    const rows = [""];
    let used = 0;
    for (const [part] of line.matchAll(PARTS)) {
      const cells = mostCells(part);
      if (used > 0 && used + cells > columns) {
        rows.push(start);
        used = startCells;
      }
      rows[rows.length - 1] += part;
      used += cells;
    }
    return rows;
  });
}

/** The most cells that a terminal uses for a character, or for a colour, which needs none. */
function mostCells(part: string): number {
  return part.startsWith("\u001b[") ? 0 : part.codePointAt(0)! < 0x1100 ? 1 : 2;
}

/** Waits for a key; ctrl-c ends the program as it does elsewhere. */
async function pressedKey(): Promise<void> {
  await drainInput();
  const { stdin } = process;
  stdin.setRawMode(true);
  stdin.resume();
  const key = await new Promise<Uint8Array>((resolve) => stdin.once("data", resolve));
  stdin.pause();
  stdin.setRawMode(false);
  if (key[0] === 3) throw fail("review.cancelled", "cancelled: nothing was changed");
}

/** Discards input that was typed before the question appeared. */
export async function drainInput(): Promise<void> {
  endProgress();
  const { stdin } = process;
  if (stdin.isRaw === true) {
    throw fail(
      "review.raw-terminal",
      "another program has the terminal in raw mode; a review needs exclusive use of it",
    );
  }
  stdin.setRawMode(true);
  stdin.resume();
  const drop = (): void => {};
  stdin.on("data", drop);
  await new Promise((resolve) => setTimeout(resolve, 30));
  stdin.off("data", drop);
  stdin.pause();
  stdin.setRawMode(false);
}
