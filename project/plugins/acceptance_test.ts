/** The grants of a lockfile as lines for acceptance: no text of the lockfile imitates one. */
import assert from "node:assert/strict";
import type { AuthorityHolder } from "../lockfile/held_authority.ts";
import { holderLines } from "./acceptance.ts";

Deno.test("grants for acceptance: paths and directories of a hostile lockfile are single words", () => {
  const padded = `./a${" ".repeat(80)}github.com/good/x 1.0.0 from https://waft.sh, by github.com/good`;
  const holder: AuthorityHolder = {
    id: "github.com/evil/x",
    version: "1.0.0",
    source: { kind: "path", path: padded },
    grants: { "fs.read": { roots: { "/": `/${padded}` } } },
    reach: { "github.com/evil/y": { "fs.write": { roots: { "/b": padded } } } },
    guest: [],
    digest: `sha256:${"0".repeat(64)}`,
  };
  const lines = holderLines(holder);
  assert.deepEqual(lines.map((line) => line.trim().split(" ")[0]), ["github.com/evil/x", "fs.read", "through"]);
  for (const line of lines) {
    // Each run of blanks is escaped, within quotation marks.
    assert.doesNotMatch(line.trim(), / {2}/);
    assert.ok(line.includes(String.raw`\u0020`.repeat(79) + "github.com/good/x 1.0.0"), line);
  }
  assert.match(lines[1], /\(outside of the project: "/);
  assert.deepEqual(holderLines({ ...holder, source: { kind: "path", path: "./plugins/x" }, grants: {}, reach: {} }), [
    "github.com/evil/x 1.0.0 from the directory ./plugins/x",
  ]);
});
