/**
 * Compares waft's JavaScript API with V8's: every row must have the same outcome, or be listed here with a reason. On
 * Deno the rows also run with the host's namespace; elsewhere they are compared with its recorded outcomes
 * (outcomes.ts).
 */
import { WebAssembly } from "@waft/engine/webassembly";
import assert from "node:assert/strict";
import { GROUPS, outcome, recordedOutcomes } from "./outcomes.ts";

/** Outcomes that differ from V8's: waft's outcome, and the reason. */
const DIFFERENCES: Readonly<Record<string, readonly [outcome: unknown, reason: string]>> = {
  "bytes in a DataView": [true, "Web IDL: a BufferSource is an ArrayBuffer or any view; V8 takes typed arrays only"],
  ...(Object.getPrototypeOf(globalThis.WebAssembly.Module) !== Function.prototype ? {} : {
    "modules inherit from the class of module sources": [["", false, ""], "the host has no such class"] as const,
  }),
  ...(typeof ArrayBuffer.prototype.transfer !== "function" ? {} : { // as on Node 20
    "a buffer that a program transfers": [
      [65536, 0, 1, 131072, 5],
      "JavaScript API: the buffer's detach key forbids it; one that a program could set would keep growing from detaching it, too",
    ] as const,
  }),
  "the buffer of a shared memory that grows": [
    [1, true, 131072, 131072, true],
    "pages shared between Workers are those of one growable SharedArrayBuffer; views of it stay good",
  ],
  "a shared memory has another buffer after growth": [[true, 131072, 131072, 42, true, true], "the same"],
  "a shared memory that code grows": [[1, 196608, 196608, true], "the same"],
  "an empty table with a first value of another type": [
    "TypeError",
    "JavaScript API, Table(): the value is converted, however many elements there are; V8 converts it for each",
  ],
  "a tag with an iterable of parameters": [
    "no error: [object WebAssembly.Tag]",
    "Web IDL: a sequence is anything iterable; V8 reads length and elements",
  ],
  "a payload with a length that is not iterable": ["TypeError", "the same"],
  "setters without an argument": ["TypeError", "Web IDL: the function of a setter requires its argument"],
};

/** Whether the host's own namespace defines the expected outcomes. */
const isOracle = (globalThis as { Deno?: unknown }).Deno !== undefined;
const recorded = recordedOutcomes();

Deno.test("names of rows are different, and each has an outcome", () => {
  const names = Object.values(GROUPS).flatMap((rows) => rows.map(([name]) => name));
  assert.equal(new Set(names).size, names.length);
  assert.deepEqual(Object.keys(recorded).toSorted(), names.toSorted(), "run outcomes.ts");
});

for (const [group, rows] of Object.entries(GROUPS)) {
  Deno.test(`${group.toLowerCase().replace("_", " ")} have the same outcome as with V8's WebAssembly`, async (t) => {
    for (const row of rows) {
      const expected = recorded[row[0]];
      const own = isOracle ? await outcome(globalThis.WebAssembly, row) : expected;
      const actual = await outcome(WebAssembly, row);
      const difference = DIFFERENCES[row[0]];
      await t.step(row[0], () => {
        assert.deepEqual(own, expected, "V8 has changed: run outcomes.ts");
        if (difference === undefined) return assert.deepEqual(actual, expected, row[0]);
        assert.deepEqual(actual, difference[0], row[0]);
        assert.notDeepEqual(actual, expected, "the difference is gone: delete its row");
      });
    }
  });
}
