/** Merging the chunks of a bundle: fewer files, the same instances, and no `await` where modules are required. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { mergeChunks } from "./merge_chunks.ts";

const CHUNKS: Readonly<Record<string, string>> = {
  "entry.js": `import{n}from"./chunk-N.js";import{loaded}from"./chunk-LOADED.js";import{only}from"./chunk-ONLY.js";
    import{both}from"./chunk-BOTH.js";export const later=()=>import("./later-1.js");export{n,loaded,only,both};`,
  "chunk-N.js": `import{list}from"./chunk-LIST.js";var n=list.length;list.push("n");export{n};`,
  "chunk-LIST.js": `var list=["list"];export{list};`,
  "chunk-ONLY.js": `var only="only";export{only};`,
  "chunk-LOADED.js": `import{list}from"./chunk-LIST.js";var loaded=await Promise.resolve(list.length);export{loaded};`,
  "chunk-BOTH.js": `import{loaded}from"./chunk-LOADED.js";var both=loaded+1;export{both};`,
  "later-1.js":
    `import{list}from"./chunk-LIST.js";import{both}from"./chunk-BOTH.js";var late=list.length+both;export{late};`,
  "required.js": `import{list}from"./chunk-LIST.js";import{n}from"./chunk-N.js";var size=list.length+n;export{size};`,
};

/** The modules that a module's text imports statically. */
function importsOf(text: string): string[] {
  return [...text.matchAll(/\bfrom\s*['"]([^'"]+)['"]|\bimport\s*['"]([^'"]+)['"]/g)].map(([, a, b]) => a ?? b).sort();
}

Deno.test("mergeChunks() leaves an entry with at most two other modules, which behave as before", async () => {
  const merged = await mergeChunks(new Map(Object.entries(CHUNKS)), "entry.js", ["required.js"]);
  const names = ["entry.js", "entry_base.js", "entry_shared.js", "later-1.js", "required.js"];
  assert.deepEqual([...merged.keys()].sort(), names);
  assert.deepEqual(importsOf(merged.get("entry.js")!), ["./entry_base.js", "./entry_shared.js"]);
  assert.deepEqual(importsOf(merged.get("required.js")!), ["./entry_base.js"]);
  assert.doesNotMatch(merged.get("entry_base.js")!, /await/);
  assert.match(merged.get("entry.js")!, /only/, "a chunk of the entry alone is part of it");
  const folder = mkdtempSync(join(tmpdir(), "waft-merged-"));
  try {
    for (const [name, text] of merged) writeFileSync(join(folder, name), text);
    writeFileSync(join(folder, "package.json"), '{"type":"module"}');
    const { later, ...values } = await import(pathToFileURL(join(folder, "entry.js")).href);
    assert.deepEqual({ ...values }, { n: 1, loaded: 2, only: "only", both: 3 });
    assert.deepEqual({ ...await later() }, { late: 5 });
    assert.equal(createRequire(import.meta.url)(join(folder, "required.js")).size, 3);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

Deno.test("mergeChunks() refuses modules that are not in the bundle", async () => {
  const chunks = new Map([["entry.js", `export*from"./absent.js";`]]);
  await assert.rejects(mergeChunks(chunks, "entry.js", []), /"absent\.js" is imported, but not in the package/);
});
