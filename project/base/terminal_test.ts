/**
 * Text for terminals: hostile text is made visible, tables align, prompts and colours only where they belong.
 */
import assert from "node:assert/strict";
import { stripVTControlCharacters } from "node:util";
import { escapeHostile, quote } from "./diagnostic.ts";
import { canPrompt, layoutTable, palette, safe, safeHint, safeProse, wantsColor, wrapLine } from "./terminal.ts";

Deno.test("terminal: control, bidi, zero-width and tag characters become visible", () => {
  for (
    const point of [
      0x00,
      0x07,
      0x08,
      0x0a,
      0x0d,
      0x1b,
      0x7f,
      0x9b,
      0xad,
      0x200b,
      0x200d,
      0x200e,
      0x200f,
      0x2028,
      0x202a,
      0x202e,
      0x2060,
      0x2066,
      0x2069,
      0xfeff,
      0xfe0f,
      0xe0041,
      0x2800,
      0x1d159,
    ]
  ) {
    const text = `a${String.fromCodePoint(point)}b`;
    assert.equal(escapeHostile(text), `a\\u{${point.toString(16)}}b`);
    assert.equal(safe(text), escapeHostile(text));
  }
  assert.equal(escapeHostile("Grüße, 世界 é 😀"), "Grüße, 世界 é 😀");
  assert.equal(escapeHostile("\ud800x"), "\\u{d800}x");
  assert.equal(quote('a"b'), '"a\\"b"');
  assert.equal(safe("x".repeat(10_000)).length, 10_000, "text of a decision is never cut");
  assert.equal(safeProse(" one\n\ttwo\u00a0\u3000 three\u2800"), "one two three\\u{2800}");
  assert.equal(safeHint("x".repeat(10_000), 100).length, 100);
});

Deno.test("terminal: tables align by cells, not by code units", () => {
  assert.deepEqual(layoutTable([["a", "b"], ["世界", "c"], ["e\u0301e", "d"]]), [
    "a     b",
    "世界  c",
    "e\u0301e    d",
  ]);
  const { green } = palette(true);
  assert.deepEqual(layoutTable([[green("ok"), "x"], ["failed", "y"]]).map((l) => stripVTControlCharacters(l)), [
    "ok      x",
    "failed  y",
  ]);
  assert.deepEqual(layoutTable([["a", ""], ["b", "c"]]), ["a", "b  c"]);
  const text = "what is too long for the line goes on below";
  assert.deepEqual(layoutTable([["name", text], ["n", "short"]], 30), [
    "name  what is too long for the",
    "      line goes on below",
    "n     short",
  ]);
  assert.deepEqual(layoutTable([["a longer name", text], ["n", "short"]], 30), [
    "a longer name",
    "        what is too long for",
    "        the line goes on below",
    "n              short",
  ]);
  assert.deepEqual(wrapLine("  short", 30), ["  short"]);
  assert.deepEqual(wrapLine(`  ${text}`, 30), ["  what is too long for the", "        line goes on below"]);
  assert.deepEqual(layoutTable([["name", "x".repeat(40) + " y"]], 30), [`name  ${"x".repeat(40)}`, "      y"]);
});

Deno.test("terminal: colours and prompts", () => {
  assert.deepEqual([
    wantsColor(undefined, true, {}),
    wantsColor(undefined, false, {}),
    wantsColor(undefined, true, { NO_COLOR: "1" }),
  ], [true, false, false]);
  assert.deepEqual([
    wantsColor("always", false, { NO_COLOR: "1" }),
    wantsColor("never", true, {}),
    wantsColor("auto", true, { TERM: "dumb" }),
  ], [true, false, false]);
  const tty = { input: true, output: true };
  const flags = { input: true, json: false };
  assert.equal(canPrompt(tty, {}, flags), true);
  assert.equal(canPrompt(tty, { CI: "true" }, flags), false);
  assert.equal(canPrompt(tty, { CI: "false" }, flags), true);
  assert.equal(canPrompt({ input: false, output: true }, {}, flags), false);
  assert.equal(canPrompt(tty, {}, { input: false, json: false }), false);
  assert.equal(canPrompt(tty, {}, { input: true, json: true }), false);
});
