/**
 * Terminal input and paging for prompts.
 *
 * Input: text to show on stderr. Output: the same text page by page, so a prompt never follows text that has scrolled
 * away; pending input is discarded. A terminal in raw mode under another program's control is refused.
 */
import process from "node:process";
import { fail } from "../base/diagnostic.ts";
import { endProgress } from "../base/progress.ts";

/** Shows text on stderr; waits for a key after each screenful. */
export async function showWhole(text: string): Promise<void> {
  endProgress();
  const rows = Math.max(5, (process.stderr.rows ?? 24) - 2);
  const columns = Math.max(20, process.stderr.columns ?? 80);
  let used = 0;
  for (const line of text.split("\n")) {
    const needs = Math.max(1, Math.ceil(line.length / columns));
    if (used > 0 && used + needs > rows) {
      process.stderr.write("-- more: press a key --");
      await pressedKey();
      process.stderr.write("\r\u001b[K");
      used = 0;
    }
    process.stderr.write(`${line}\n`);
    used += needs;
  }
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
