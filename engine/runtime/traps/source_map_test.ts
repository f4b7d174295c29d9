/** Source maps of modules: places by offset, contents, malformed input. */
import assert from "node:assert/strict";
import { readSourceMap, sourceMapOf } from "./source_map.ts";

/** Columns 10, 14 (unmapped) and 20; lines 1 and 3 of two sources. */
const MAP = { version: 3, sources: ["a.ts", "b.ts"], names: [], mappings: "UAAA,I,MCEC" };

Deno.test("offsets have the places of the last segment before them", () => {
  const map = readSourceMap(JSON.stringify({ ...MAP, sourcesContent: [null, "text"] }));
  assert.ok(map);
  assert.deepEqual([9, 10, 13, 14, 19, 20, 1e9].map((at) => map.placeOf(at)), [
    undefined,
    { file: "a.ts", line: 1, column: 1 },
    { file: "a.ts", line: 1, column: 1 },
    undefined,
    undefined,
    { file: "b.ts", line: 3, column: 2 },
    { file: "b.ts", line: 3, column: 2 },
  ]);
  assert.deepEqual([...map.contents], [["b.ts", "text"]]);
});

Deno.test("an offset without a place has one of its own function nearby", () => {
  const map = readSourceMap(JSON.stringify(MAP));
  const lineNear = (offset: number, from: number, to: number, prefer: "before" | "after" = "after") =>
    map?.placeNear(offset, from, to, prefer)?.line;
  assert.deepEqual([lineNear(12, 10, 30), lineNear(15, 10, 30), lineNear(9, 5, 30)], [1, 3, 1]);
  assert.deepEqual([lineNear(15, 10, 19), lineNear(15, 12, 19), lineNear(25, 21, 30)], [1, undefined, undefined]);
  assert.deepEqual([lineNear(15, 10, 30, "before"), lineNear(15, 12, 30, "before")], [1, 3]);
});

Deno.test("a slash separates the root from the names of sources", () => {
  for (const [sourceRoot, file] of [["", "a.ts"], ["src", "src/a.ts"], ["src/", "src/a.ts"]]) {
    assert.equal(readSourceMap(JSON.stringify({ ...MAP, sourceRoot }))?.placeOf(10)?.file, file);
  }
});

Deno.test("malformed maps are ignored", () => {
  const texts = ["", "null", "[]", "{}", '{"mappings":1,"sources":[]}', '{"mappings":"A","sources":[1]}'];
  const mappings = ["UAAA,V", "U!AA", "UAAA,H", "g".repeat(50)];
  for (const text of [...texts, ...mappings.slice(1).map((each) => JSON.stringify({ ...MAP, mappings: each }))]) {
    assert.equal(readSourceMap(text), undefined, text);
  }
});

Deno.test("maps with negative or too large numbers are ignored", () => {
  const largest = "+/////D"; // 2³¹ − 1
  const fits = readSourceMap(JSON.stringify({ ...MAP, mappings: "AA8/////DA" }));
  assert.equal(fits?.placeOf(0)?.line, 0x7fffffff);
  for (const mappings of ["AADA", "AAAD", "ADAA", `AA${largest}A`, `AAA${largest}`, `${largest},${largest}`]) {
    assert.equal(readSourceMap(JSON.stringify({ ...MAP, mappings })), undefined, mappings);
  }
});

Deno.test("the custom section names the file", () => {
  const section = (
    bytes: number[],
  ) => [{ name: "sourceMappingURL", bytes: Uint8Array.from(bytes), after: 0, offset: 0 }];
  const asked: string[] = [];
  const read = (url: string) => {
    asked.push(url);
    return JSON.stringify(MAP);
  };
  assert.ok(sourceMapOf(section([3, 0x61, 0x2e, 0x62]), read));
  assert.equal(sourceMapOf(section([9, 0x61]), read), undefined);
  assert.equal(sourceMapOf([], read), undefined);
  assert.deepEqual(asked, ["a.b"]);
});
