/** Changes and reviews in narrow terminals: every line fits, and the wrapped part stays below its column. */
import assert from "node:assert/strict";
import { palette } from "../../base/terminal.ts";
import type { Change } from "../../ops/project/changes.ts";
import type { ReviewRequest } from "../../ops/project/decide.ts";
import { changeLines, reviewText } from "./change_output.ts";
import { CONTINUED, screenPages } from "../terminal_input.ts";

const GRANTS = {
  "fs.read": { roots: { "/store": "./store" } },
  "fs.write": { roots: { "/store": "./store" } },
  random: {},
};

Deno.test("the grants of a change wrap at the terminal's width", () => {
  const change: Change = {
    id: "github.com/acme/store",
    action: "add",
    to: "1.0.0",
    reasons: ["required by you"],
    skipped: [],
    authority: { added: [], removed: [], widened: [] },
    needsReview: false,
    grants: GRANTS,
    denied: [],
  };
  const options = { all: false, decided: true };
  assert.equal(changeLines([change], palette(false), options).length, 1);
  const lines = changeLines([change], palette(false), { ...options, columns: 72 });
  assert.ok(lines.length > 1 && lines.every((line) => line.length <= 72), lines.join("\n"));
  assert.match(lines[1], /^ {32}\S/);
});

Deno.test("the reach of a plugin wraps at the terminal's width", () => {
  const request = {
    plugin: {
      id: "github.com/acme/app",
      release: { version: "1.0.0" },
      definition: { kind: "wasm", description: "", authorities: [] },
    },
    reasons: [],
    requiredBy: [],
    direct: true,
    beforeRequests: [],
    reach: { "github.com/acme/store": GRANTS, "github.com/acme/log": {} },
  } as unknown as ReviewRequest;
  const lines = reviewText(request, palette(false), 0, 50).split("\n");
  const reach = lines.slice(lines.findIndex((line) => line.startsWith("  reaches:")));
  assert.ok(reach.length > 1 && reach.every((line) => line.length <= 50), lines.join("\n"));
  assert.match(reach[1], /^ {12}\S/);
});

Deno.test("a review shows release notes with a bar before each line, and escapes them", () => {
  const request = {
    plugin: {
      id: "github.com/acme/app",
      release: { version: "1.0.0" },
      definition: { kind: "wasm", description: "", authorities: [] },
      notes: `# 1.0.0\n\n  reaches: nothing else\u001b[1A\n${"word ".repeat(30)}\n${"x\n".repeat(40)}`,
    },
    reasons: [],
    requiredBy: [],
    direct: true,
    beforeRequests: [],
    reach: {},
  } as unknown as ReviewRequest;
  const lines = reviewText(request, palette(false), 0, 50).split("\n");
  const notes = lines.slice(
    lines.indexOf("  release notes:") + 1,
    lines.findIndex((line) => /^ {2}reaches:/.test(line)),
  );
  assert.ok(notes.length > 30 && notes.every((line) => line.startsWith("  |") && line.length <= 58), notes.join("\n"));
  assert.equal(notes[2], "  |   reaches: nothing else\\u{1b}[1A");
  assert.equal(notes.at(-1), "  | … 15 more lines");
});

Deno.test("a review: padded text of a plugin imitates no line", () => {
  for (const columns of [40, 80, 100, 120]) {
    const forged = [
      "  asks for no authority",
      "  + random",
      "  reaches:  nothing else",
      "    + import a;",
      "x.y/z 1.0.0",
    ];
    for (const blank of [" ", "\u00a0", "\u3000", "\u2800", "\t"]) {
      const text = forged.map((line) => `${blank.repeat(columns)}${line}${blank.repeat(columns)}`).join("");
      const request = {
        plugin: {
          id: "github.com/acme/app",
          release: { version: "1.0.0", publisher: "github.com/acme", publishedAt: "2026-08-01T00:00:00Z" },
          definition: {
            kind: "wasm",
            description: text,
            authorities: [
              { name: "caller.call", mode: "required", reason: text, scope: { exports: [text.slice(0, 200)] } },
            ],
          },
        },
        reasons: [{ rule: "asked", text: "a review was requested" }],
        requiredBy: [],
        direct: true,
        beforeRequests: [],
        reach: {},
      } as unknown as ReviewRequest;
      const shown = reviewText(request, palette(false), Date.parse("2027-01-01"), columns);
      const rows = screenPages(shown, 24, columns).flatMap((page) => page.text.split("\n"));
      // Rows of waft's own begin in the first five columns.
      const own = rows.filter((row) => /^ {0,4}[^ ]/.test(row) && !row.startsWith(CONTINUED));
      assert.deepEqual(
        own.map((row) => row.trim().split(" ")[0]),
        ["github.com/acme/app", "description:", "review", "+", "reaches:"],
        rows.join("\n"),
      );
    }
  }
});
