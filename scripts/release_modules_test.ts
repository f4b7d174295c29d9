/**
 * What is done to the modules of a bundle: functions that are compiled at once, names that are hidden, places of files.
 */
import assert from "node:assert/strict";
import { compileAtOnce, loadLate, placeUrls } from "./release.ts";

Deno.test("functions become expressions and do what they did", async () => {
  const module = `import{sep as s}from"node:path";const a=twice(2);function twice(x){return x*k()}
async function later(){return await t}var t=1;function*many(){yield s}
function k(){return 2}class C{m(){return"function no(){}"}}export{a,twice as b,later,many,C,k};`;
  const changed = compileAtOnce(module);
  assert.match(changed, /^var twice = \(function twice\(x\)/);
  assert.equal(changed.match(/\bfunction\b/g)!.length, module.match(/\bfunction\b/g)!.length);
  const { a, b, later, many, C, k } = await import(`data:text/javascript,${encodeURIComponent(changed)}`);
  assert.deepEqual([a, b(4), await later(), [...many()], new C().m(), k.name], [
    4,
    8,
    1,
    ["/"],
    "function no(){}",
    "k",
  ]);
  assert.equal(compileAtOnce("export const x = () => 1;\n"), "export const x = () => 1;\n");
});

Deno.test("imports of the bundle's own modules cannot be foreseen, others stay", () => {
  const module = `await import("./cli-X2.js"); import("node:fs"); import { a } from "./chunk.js"; import("./" + a);`;
  const expected =
    `await import(String("./cli-X2.js")); import("node:fs"); import { a } from "./chunk.js"; import("./" + a);`;
  assert.equal(loadLate(module), expected);
});

Deno.test("files that are found by URL have a place, in minified modules, too", () => {
  assert.equal(placeUrls('new URL("../docs/",import.meta.url)', "m.js"), 'new URL("./docs/", import.meta.url)');
  assert.throws(() => placeUrls('new URL("../x", import.meta.url)', "m.js"), /m\.js has .*no place in a bundle/);
});
