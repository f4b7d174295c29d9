/**
 * The JavaScript API of waft against the host's: every row runs with both namespaces and must have the same outcome, or be listed here with the
 * reason why not.
 */
import { WebAssembly } from "@waft/engine/webassembly";
import assert from "node:assert/strict";
import { ASYNC_ROWS } from "./async_rows.ts";
import { BORDER_ROWS } from "./border_rows.ts";
import { INTERFACE_ROWS } from "./interface_rows.ts";
import { MODULE_ROWS } from "./module_rows.ts";
import { OBJECT_ROWS } from "./object_rows.ts";
import { STRING_ROWS } from "./string_rows.ts";
import { describe, describeError, type Namespace, type Row } from "./subject.ts";

/** Outcomes that differ from V8's: what waft's is, and why. */
const DIFFERENCES: Readonly<Record<string, readonly [outcome: unknown, reason: string]>> = {
  "bytes in a DataView": [true, "Web IDL: a BufferSource is an ArrayBuffer or any view; V8 takes typed arrays only"],
  "a buffer that a program transfers": [
    [65536, 0, 1, 131072, 5],
    "JavaScript API: the buffer's detach key forbids it; JavaScript has no way to set one",
  ],
  "the buffer of a shared memory that grows": [
    [1, true, 131072, 131072, false],
    "pages shared between Workers are those of one growable SharedArrayBuffer; views of it stay good",
  ],
  "an empty table with a first value of another type": [
    "TypeError",
    "JavaScript API, Table(): the value is converted, however many elements there are; V8 converts it for each",
  ],
  "a tag with an iterable of parameters": [
    "no error: [object WebAssembly.Tag]",
    "Web IDL: a sequence is anything iterable; V8 reads length and elements",
  ],
  "a payload with a length that is not iterable": ["TypeError", "the same"],
};

async function outcome(W: Namespace, [, run]: Row): Promise<unknown> {
  try {
    return describe(W, await run(W));
  } catch (error) {
    return describeError(W, error);
  }
}

const GROUPS = { INTERFACE_ROWS, MODULE_ROWS, OBJECT_ROWS, BORDER_ROWS, STRING_ROWS, ASYNC_ROWS };

for (const [group, rows] of Object.entries(GROUPS)) {
  Deno.test(`${group.toLowerCase().replace("_", " ")} have the same outcome as with the host's WebAssembly`, async (t) => {
    assert.equal(new Set(rows.map(([name]) => name)).size, rows.length, "names are different");
    for (const row of rows) {
      const expected = await outcome(globalThis.WebAssembly, row);
      const actual = await outcome(WebAssembly, row);
      const difference = DIFFERENCES[row[0]];
      await t.step(row[0], () => {
        if (difference === undefined) return assert.deepEqual(actual, expected);
        assert.deepEqual(actual, difference[0]);
        assert.notDeepEqual(actual, expected, "the difference is gone: delete its row");
      });
    }
  });
}
