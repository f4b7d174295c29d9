/**
 * Pictures of a terminal: every line is there, as text, in the color of its kind.
 */
import { equal, match } from "node:assert/strict";
import { terminalPicture } from "./terminal_picture.ts";

Deno.test("lines are text, markup is escaped, long lines are cut, prompts have another color", () => {
  const svg = terminalPicture(["$ waft <a> & b", "  1 < 2", "x".repeat(100)], ["$ "]);
  const rows = [...svg.matchAll(/<text [^>]*fill="([^"]*)"[^>]*>([^<]*)<\/text>/g)];
  equal(rows.length, 3);
  equal(rows[0][2], "$ waft &lt;a&gt; &amp; b");
  equal(rows[1][2], "  1 &lt; 2");
  equal(rows[2][2], `${"x".repeat(87)}…`);
  equal(rows[0][1] !== rows[1][1] && rows[1][1] === rows[2][1], true);
  match(svg, /^<svg [^>]*width="774" height="92" /);
});
