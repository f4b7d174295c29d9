/**
 * The table of docs/proposals.md: a row for each feature of a proposal, with its default, and a state of each engine in
 * the words that the text below the table explains.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { PROPOSAL_ROWS } from "../../engine/settings/features.ts";
import { SUITES } from "../support/suites.ts";

/** The table as cells, without the line below its header. */
function tableOf(page: string): string[][] {
  const lines = page.split("\n").filter((line) => line.startsWith("|"));
  return lines.filter((_, k) => k !== 1).map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()));
}

const PAGE = readFileSync(new URL("../../docs/proposals.md", import.meta.url), "utf8");
const [header, ...rows] = tableOf(PAGE);

Deno.test("docs/proposals.md compares waft with four engines", () => {
  const names = ["Proposal", "Phase", "Switch", "waft", "V8", "SpiderMonkey", "JSC", "Wasmtime"];
  assert.deepEqual(header.map((cell) => cell.split(" ")[0]), names);
  for (const [name, phase, , state, ...engines] of rows) {
    assert.match(phase, /^[1-5]$/, name);
    assert.match(state, /^(on|off|no)$/, name);
    for (const engine of engines) assert.match(engine, /^(yes|no|flag|option|–)$/, name);
    assert.equal(engines.length, 4, name);
  }
});

Deno.test("docs/proposals.md lists the switches of proposals and their defaults", () => {
  const switches = rows.flatMap(([, , name, state]) => name === "–" ? [] : [[name, state]]);
  assert.deepEqual(
    switches.toSorted(),
    PROPOSAL_ROWS.map((row) => [`\`${row.name}\``, row.default ? "on" : "off"]).toSorted(),
  );
});

Deno.test("every proposal with a suite has a switch", () => {
  const names: readonly string[] = PROPOSAL_ROWS.map(({ name }) => name);
  for (const { name, proposal } of SUITES) if (proposal) assert.ok(names.includes(name), name);
});
