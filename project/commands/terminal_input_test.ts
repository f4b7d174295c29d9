/** Paging of reviews: all of a text is shown before a question, for all kinds of characters and sizes of screens. */
import assert from "node:assert/strict";
import { CONTINUED, screenPages } from "./terminal_input.ts";

/** The rows of a page. */
function rowsOf({ text }: { readonly text: string }): string[] {
  return text.split("\n").slice(0, -1);
}

const TEXTS: readonly string[] = [
  "a".repeat(12_800),
  "\u6f22".repeat(1000),
  "\u231a".repeat(1000),
  "e\u0301".repeat(1000),
  "short\n".repeat(200),
  `${"a".repeat(300)}\n${"\u{1f600}".repeat(300)}`,
  "",
];

/** The cells of a row in a terminal that shows pictures and Chinese characters in two, and marks in none. */
function cellsOf(row: string): number {
  return [...row.replace(/\p{M}/gu, "")].reduce((sum, c) => sum + (c > "\u10ff" ? 2 : 1), 0);
}

Deno.test("pages: every row fits, every page leaves the screen only after a key", () => {
  for (const text of TEXTS) {
    for (const [rows, columns] of [[24, 80], [50, 160], [4, 10], [2, 3], [1, 1]] as const) {
      const pages = screenPages(text, rows, columns);
      const shown = pages.map(({ text }) => text).join("").replaceAll(`\n${CONTINUED}`, "");
      assert.equal(shown.replaceAll("\n", ""), text.replaceAll("\n", ""));
      for (const [k, page] of pages.entries()) {
        const shown = rowsOf(page);
        assert.ok(shown.length <= Math.max(1, rows - 2));
        for (const row of shown) assert.ok(cellsOf(row) <= Math.max(columns, 2), `${columns}: ${row}`);
        if (k < pages.length - 1) assert.ok(page.needsKey);
      }
    }
  }
});

Deno.test("pages: no text begins at the left edge of a row that waft does not begin", () => {
  for (const columns of [20, 80, 120, 200]) {
    for (const character of ["a", " ", "\u3000", "\u6f22"]) {
      const rows = screenPages(`  ${character.repeat(5 * columns)}`, 24, columns).flatMap(rowsOf);
      assert.ok(rows.length >= 5);
      for (const row of rows.slice(1)) assert.ok(row.startsWith(CONTINUED), row);
    }
  }
});

Deno.test("pages: a question does not move the last rows away unread, and colours take no room", () => {
  assert.deepEqual(screenPages("one\ntwo", 24, 80), [{ text: "one\ntwo\n", needsKey: false }]);
  assert.equal(screenPages("a\n".repeat(13), 24, 80)[0]?.needsKey, false);
  assert.equal(screenPages("a\n".repeat(14), 24, 80)[0]?.needsKey, true);
  const colored = `\u001b[31m${"a".repeat(80)}\u001b[39m`;
  assert.deepEqual(screenPages(colored, 24, 80), [{ text: `${colored}\n`, needsKey: false }]);
});
