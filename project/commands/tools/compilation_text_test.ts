/** The lines of `waft run --explain-compile`. */
import assert from "node:assert/strict";
import { compilationText } from "./compilation_text.ts";

Deno.test("a compilation as text", () => {
  const row = { index: 3, name: "a\u001b[31m", tier: "baseline", bodyBytes: 7, codeBytes: 24, ms: 0.5 } as const;
  const made = { tier: "baseline", kernel: "wasm", origin: "compile", ms: 12.34, codeBytes: 4000 } as const;
  const parts = { ...made, part: "module", afterMs: undefined } as const;
  const [headline, , line, ...rest] = compilationText({ ...parts, functions: [row] }).split("\n");
  assert.equal(
    headline,
    "compiled by the baseline compiler (as WebAssembly of the host) in 12.3 ms: 1 function, 4000 bytes of code",
  );
  assert.match(line, /^ +3 {2}baseline +7 +24 +0\.500 {2}a/);
  assert.ok(!line.includes("\u001b"), "names cannot control the terminal");
  assert.deepEqual(rest, [""]);
  const background = { ...parts, tier: "optimizing", kernel: undefined, origin: "background", functions: [] } as const;
  assert.match(compilationText(background), /^compiled by the optimizing compiler in a helper thread in/);
  const [first] = compilationText({ ...background, part: "functions", afterMs: 120.4 }).split("\n");
  assert.match(first, / in 12\.3 ms: hot functions first: 0 functions, .*, in use 120 ms after the first instance$/);
  assert.match(compilationText({ ...background, part: "loop" }), /: a loop of 0 functions/);
  assert.match(compilationText({ ...background, origin: "cache" }), /^loaded from the cache in 12\.3 ms: 0 functions/);
});
