/**
 * Edits keep everything but the changed line: each row is text, change, expected text.
 */
import assert from "node:assert/strict";
import { editRequirements, removeRequirement, setRequirement } from "./manifest_edit.ts";

const ROWS: readonly (readonly [string, string, string])[] = [
  ["empty plugins", '{\n  "plugins": {}\n}\n', '{\n  "plugins": {\n    "a.b/m": "^1.0.0"\n  }\n}\n'],
  ["no plugins", '{\n  "settings": {}\n}\n', '{\n  "plugins": {\n    "a.b/m": "^1.0.0"\n  },\n  "settings": {}\n}\n'],
  [
    "sorted keys: in its place",
    '{\n  "plugins": {\n    "a.b/a": "1.0.0",\n    "a.b/z": "1.0.0"\n  }\n}\n',
    '{\n  "plugins": {\n    "a.b/a": "1.0.0",\n    "a.b/m": "^1.0.0",\n    "a.b/z": "1.0.0"\n  }\n}\n',
  ],
  [
    "unsorted keys: at the end",
    '{\n  "plugins": {\n    "a.b/z": "1.0.0",\n    "a.b/a": "1.0.0"\n  }\n}\n',
    '{\n  "plugins": {\n    "a.b/z": "1.0.0",\n    "a.b/a": "1.0.0",\n    "a.b/m": "^1.0.0"\n  }\n}\n',
  ],
  [
    "changed in place",
    '{"plugins":{"a.b/m":"1.0.0","a.b/a":"2.0.0"}}',
    '{"plugins":{"a.b/m":"^1.0.0","a.b/a":"2.0.0"}}',
  ],
  [
    "tabs and CRLF",
    '{\r\n\t"plugins": {\r\n\t\t"a.b/a": "1.0.0"\r\n\t}\r\n}',
    '{\r\n\t"plugins": {\r\n\t\t"a.b/a": "1.0.0",\r\n\t\t"a.b/m": "^1.0.0"\r\n\t}\r\n}',
  ],
  [
    "four spaces",
    '{\n    "plugins": {\n        "a.b/a": "1.0.0"\n    },\n    "settings": {}\n}\n',
    '{\n    "plugins": {\n        "a.b/a": "1.0.0",\n        "a.b/m": "^1.0.0"\n    },\n    "settings": {}\n}\n',
  ],
];

for (const [name, before, after] of ROWS) {
  Deno.test(`manifest edit: ${name}`, () => {
    const text = setRequirement(before, "a.b/m", "^1.0.0");
    assert.equal(text, after);
    assert.equal(setRequirement(text, "a.b/m", "^1.0.0"), text);
  });
}

Deno.test("manifest edit: removing an addition restores the text", () => {
  for (const [name, before] of ROWS.slice(2)) {
    if (name === "changed in place") continue;
    assert.equal(removeRequirement(setRequirement(before, "a.b/m", "^1.0.0"), "a.b/m"), before);
  }
});

Deno.test("manifest edit: several changes do not depend on the order they are given in", () => {
  const text = '{\n  "plugins": {\n    "a.b/a": "1.0.0"\n  }\n}\n';
  const one = editRequirements(text, new Map([["a.b/c", "^1.0.0"], ["a.b/a", undefined], ["a.b/b", "~2.0.0"]]));
  const two = editRequirements(text, new Map([["a.b/b", "~2.0.0"], ["a.b/c", "^1.0.0"], ["a.b/a", undefined]]));
  assert.equal(one, two);
  assert.deepEqual(JSON.parse(one), { plugins: { "a.b/b": "~2.0.0", "a.b/c": "^1.0.0" } });
});
