/** Failures as text for people: traps of modules with hostile names. */
import assert from "node:assert/strict";
import { TrapError } from "@waft/engine";
import { describe, FileFailure } from "./failure.ts";

Deno.test("a trap's frames have short names without control characters", () => {
  const frames = Array.from({ length: 64 }, (_, funcIndex) => ({
    funcIndex,
    offset: 16,
    funcName: `\u001b[2J${"n".repeat(1 << 20)}`,
  }));
  const text = describe(new FileFailure("long.wasm", new TrapError("unreachable", frames)));
  assert.ok(text.length < 64 * 300, `${text.length} characters`);
  assert.ok(!text.includes("\u001b"));
  assert.equal(text.split("\n").length, 65);
});
