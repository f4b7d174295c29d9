/** Follows the pages of the tools: runs their commands and compares the output with the next block. */
import assert from "node:assert/strict";
import { followPage } from "./documented_commands.ts";

Deno.test("docs/inspecting.md shows the output of its commands", () => {
  assert.equal(followPage("inspecting.md", ["divide.wat"]), 4);
});

Deno.test("docs/exploring.md shows the output of its commands", () => {
  assert.equal(followPage("exploring.md", ["norm.wat"]), 1);
});

Deno.test("docs/recording.md shows the output of its commands", () => {
  assert.equal(followPage("recording.md", ["roll.wat"]), 1);
});

Deno.test("docs/debugging.md shows the output of its commands", () => {
  assert.equal(followPage("debugging.md", []), 2);
});
