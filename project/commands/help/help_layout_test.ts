/** Help in narrow terminals: descriptions below their terms. */
import assert from "node:assert/strict";
import { Command } from "commander";
import { HELP_LAYOUT } from "./help_layout.ts";

function helpOf(width: number): string {
  return new Command("waft").configureHelp({ ...HELP_LAYOUT, helpWidth: width })
    .option("--something <value>", "What it is and what it is not, at some length").helpInformation();
}

Deno.test("a description stands beside its term, or below it where there is no room", () => {
  assert.match(helpOf(80), /\n {2}--something <value> {2}What it is and what it is not, at some length\n/);
  assert.match(helpOf(40), /\n {2}--something <value>\n {6}What it is and what it is not, at\n {6}some length\n/);
});
