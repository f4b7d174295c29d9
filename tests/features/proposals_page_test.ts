/** docs/proposals.md has a row for each feature of a proposal, with its default. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { PROPOSAL_ROWS } from "../../engine/settings/features.ts";

Deno.test("docs/proposals.md lists the features of proposals and their defaults", () => {
  const page = readFileSync(new URL("../../docs/proposals.md", import.meta.url), "utf8");
  const rows = [...page.matchAll(/^\| .*? \| `([\w-]+)` *\| (on|off) /gm)].map(([, name, state]) => [name, state]);
  assert.deepEqual(
    Object.fromEntries(rows),
    Object.fromEntries(PROPOSAL_ROWS.map((row) => [row.name, row.default ? "on" : "off"])),
  );
});
