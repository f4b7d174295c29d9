/**
 * Findings as text and as exit codes.
 */
import assert from "node:assert/strict";
import {
  escapeHostile,
  exitOf,
  formatDiagnostic,
  jsonLine,
  ProjectError,
  readablePointer,
  redirectPlace,
  stepInto,
} from "./diagnostic.ts";

Deno.test("diagnostic: exit codes follow from codes", () => {
  const rows: readonly (readonly [string, number])[] = [
    ["usage.plugin-id", 2],
    ["manifest.type", 3],
    ["range.syntax", 3],
    ["lock.stale", 3],
    ["lock.digest", 5],
    ["lock.review", 4],
    ["review.needed", 4],
    ["policy.denied", 4],
    ["authority.denied", 4],
    ["integrity.artifact", 5],
    ["archive.path", 5],
    ["resolve.conflict", 6],
    ["binding.choice", 6],
    ["registry.unreachable", 7],
    ["registry.not-found", 6],
    ["registry.untrusted", 4],
    ["registry.exists", 1],
    ["registry.rejected", 3],
    ["auth.missing", 8],
    ["incompatible.engine", 9],
    ["system.failed", 1],
    ["publish.dirty", 1],
    ["anything", 1],
  ];
  for (const [code, exit] of rows) assert.equal(exitOf(code), exit, code);
  assert.equal(
    new ProjectError([{ code: "a", severity: "warning", message: "" }, {
      code: "lock.stale",
      severity: "error",
      message: "",
    }]).exitCode,
    3,
  );
});

Deno.test("diagnostic: places, levels, help, pointers", () => {
  const d = { code: "lock.value", message: "wrong", file: "f.json", line: 4, column: 2 } as const;
  assert.equal(
    formatDiagnostic({ ...d, severity: "error", help: "do it" }),
    "f.json:4:2: lock.value: wrong\n  help: do it",
  );
  assert.equal(formatDiagnostic({ code: "x", message: "y", severity: "warning" }), "warning: x: y");
  assert.equal(readablePointer(stepInto(stepInto(stepInto("", "plugins"), "a.b/c~d"), 0)), 'plugins["a.b/c~d"][0]');
  assert.equal(readablePointer(""), "the top level");
  assert.equal(readablePointer(stepInto("", "\u202e")), '["\\u{202e}"]');
});

Deno.test("diagnostic: no character that hides, reorders or moves text stays as it is", () => {
  const hidden = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;
  for (let code = 0; code <= 0x10ffff; code++) {
    const character = String.fromCodePoint(code);
    if (!hidden.test(character)) continue;
    assert.equal(escapeHostile(`a${character}b`), `a\\u{${code.toString(16)}}b`);
    const line = jsonLine({ text: `a${character}b` });
    assert.match(line, /^[ -~]*$/);
    assert.deepEqual(JSON.parse(line), { text: `a${character}b` });
  }
  assert.equal(escapeHostile("plain text, äöü 漢字"), "plain text, äöü 漢字");
  assert.equal(escapeHostile("e\u0301\u0323\u0301\u0323!"), "e\u0301\u0323\u0301\u0323!");
  assert.equal(escapeHostile(`e${"\u0301".repeat(6)}`), `e${"\u0301".repeat(4)}\\u{301}\\u{301}`);
});

Deno.test("the place of a redirect is an origin, or the target where it has none", () => {
  const place = (target: string) => redirectPlace(URL.canParse(target) ? new URL(target) : undefined, target);
  assert.equal(place("https://other.example/x?y"), '"https://other.example"');
  assert.equal(place("file:///etc/passwd"), '"file:///etc/passwd"');
  assert.equal(place("data:text/plain,x"), '"data:text/plain,x"');
  assert.equal(place("http://[broken"), '"http://[broken"');
});
