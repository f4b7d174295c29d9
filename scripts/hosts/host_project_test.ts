/**
 * Sources placed beside installed packages: imports of this tree's folders become those of the packages' files.
 */
import assert from "node:assert/strict";
import { importInstalled } from "./host_project.ts";

Deno.test("placed sources import the installed files by one path, not through links", () => {
  const rows: readonly (readonly [path: string, before: string, after: string])[] = [
    ["tests/wasi/a_test.ts", '"../../engine/mod.js"', '"../../node_modules/@waft/engine/mod.js"'],
    ["tests/wasi/a_test.ts", '"../../project/base/paths.js"', '"../../node_modules/@waft/cli/project/base/paths.js"'],
    ["tests/wasi/a_test.ts", '"../../component/mod.js"', '"../../node_modules/@waft/component/mod.js"'],
    ["tests/plugins/support/a.ts", '"../../../engine/mod.js"', '"../../../node_modules/@waft/engine/mod.js"'],
    ["scripts/spec.ts", '"../engine/mod.js"', '"../node_modules/@waft/engine/mod.js"'],
    // Folders of the tests with the same names stay.
    ["tests/wasi/a_test.ts", '"../engine/support.js"', '"../engine/support.js"'],
    ["tests/wasi/a_test.ts", '"../../tests/engine/support.js"', '"../../tests/engine/support.js"'],
  ];
  for (const [path, before, after] of rows) {
    assert.equal(importInstalled(`import ${before};`, path), `import ${after};`);
  }
});
