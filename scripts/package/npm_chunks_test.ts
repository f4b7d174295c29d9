/**
 * Bundling of the npm package's modules, on small packages: shared classes, chunks that `require` may load, URLs.
 * scripts/hosts/test_hosts.ts tests the real packages.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { bundleModules, chunkNames, placeModuleUrls, withoutAwaits } from "./npm_chunks.ts";

/** A package with the modules that the table of chunks names, and all kinds of imports between them. */
const SOURCES: Readonly<Record<string, string>> = {
  "mod.js": `export { Thing } from "./base/thing.js"; export { later, urls } from "./late.js";`,
  "base/thing.js": `export class Thing { static made = 0; constructor() { Thing.made++; } }
    export const home = new URL("../", import.meta.url).href;
    export const self = import.meta.url;
    export const unused = 1;`,
  "host/late_module.js": `import { createRequire } from "node:module"; import { fileURLToPath } from "node:url";
    const given = {};
    export class LateModule {
      static provide(modules) { Object.assign(given, modules); }
      constructor(url) { this.url = url; }
      get() {
        const path = Object.keys(given).find((name) => this.url.href.endsWith(name));
        return given[path] ?? createRequire(import.meta.url)(fileURLToPath(this.url));
      }
      async prepare() { throw new Error("not in packages"); }
    }`,
  "late.js": `import { home, self } from "./base/thing.js";
    import { LateModule } from "./host/late_module.js";
    const parts = new LateModule(new URL("./parts/late.js", import.meta.url), () => import("./parts/late.js"));
    await parts.prepare();
    export const part = () => parts.get().part;
    const suffix = import.meta.url.endsWith(".ts") ? "ts" : "js";
    export const worker = new URL(\`./parts/worker.\${suffix}\`, import.meta.url).href;
    export const parser = new URL("./text/parse_module.js", import.meta.url).href;
    export const later = await import("./text/parse_module.js");
    export const urls = { home, self, worker };`,
  "parts/late.js": "export const part = 7;",
  "text/parse_module.js": `import { Thing } from "../base/thing.js"; export const parsed = new Thing();`,
  "parts/worker.js": `import { Thing } from "../base/thing.js"; export const mine = Thing;`,
  "compile/body_compiler_x64.js": `export * from "../common.js";`,
  "compile/body_compiler_arm64.js": `export * from "../common.js";`,
  "portable/portable_compiler.js": `export * from "../common.js";`,
  "translate/body_analysis.js": `export * from "../common.js";`,
  "common.js": `export const common = 1;`,
  "validate/constant_rules.js": `export const rules = 1;`,
  "validate/clauses.js": `export const clauses = 1;`,
  "webassembly/js_prototypes.js": `export const prototypes = 1;`,
  "backend_x64/target.js": "export const target = 1;",
  "backend_arm64/target.js": "export const target = 2;",
  "webassembly/mod.js": `export * from "../mod.js";`,
  "wasi/mod.js": `export const wasi = 1;`,
  "base/numbers.js": `export const numbers = 1;`,
  "base/errors.js": `export class Fault extends Error {}`,
  "settings/features.js": `export { Fault } from "../base/errors.js";`,
  "host/files.js": `export const files = 1;`,
  "host/process.js": `export const process = 1;`,
};

const EXPORTS: Record<string, unknown> = {
  ".": { default: "./mod.js" },
  "./thing": "./base/thing.js",
  "./wasi": "./wasi/mod.js",
};

const PROGRAM = `
const { Thing, later, urls } = await import("./mod.js");
const { Thing: exported, unused } = await import("./base/thing.js");
const { mine } = await import(urls.worker);
const { createRequire } = await import("node:module");
const required = createRequire(import.meta.url)("./text/parse_module.js");
const place = new URL(".", import.meta.url).href;
console.log(JSON.stringify({
  same: Thing === exported && Thing === mine && later.parsed instanceof Thing && required.parsed === later.parsed,
  made: Thing.made, unused, urls: Object.values(urls).map((url) => url.replace(place, "")),
}));`;

async function bundled(sources = SOURCES): Promise<Map<string, Uint8Array>> {
  const files = new Map(Object.entries(sources).map(([path, text]) => [path, new TextEncoder().encode(text)]));
  await bundleModules(files, structuredClone(EXPORTS));
  return files;
}

Deno.test("bundled modules share their classes, keep their exports, and find their neighbours", async () => {
  const folder = mkdtempSync(join(tmpdir(), "waft-chunks-"));
  try {
    for (const [path, bytes] of await bundled()) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), bytes);
    }
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    writeFileSync(join(folder, "program.js"), PROGRAM);
    const { stdout, stderr } = spawnSync(process.execPath, ["run", "-A", "--quiet", join(folder, "program.js")], {
      encoding: "utf8",
    });
    assert.notEqual(stdout, "", stderr);
    assert.deepEqual(JSON.parse(stdout), {
      same: true,
      made: 1,
      unused: 1,
      urls: ["", "base/thing.js", "parts/worker.js"],
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

/** The files that a module of a bundle imports statically, and itself. */
function importsOf(files: ReadonlyMap<string, Uint8Array>, path: string): Map<string, string> {
  const texts = new Map([[path, ""]]);
  for (const member of texts.keys()) {
    const text = new TextDecoder().decode(files.get(member));
    texts.set(member, text);
    for (const [, name] of text.matchAll(/(?:from|^import) ['"]([^'"]+)['"]/gm)) {
      texts.set(join(dirname(member), name), "");
    }
  }
  return texts;
}

Deno.test("a bundle has no file for other modules, and no module awaits at its top level", async () => {
  const files = await bundled();
  assert.ok(!files.has("common.js") && !files.has("late.js"));
  assert.ok(importsOf(files, "text/parse_module.js").size > 1, "the parser shares a class");
  for (const [path, bytes] of files) assert.doesNotMatch(new TextDecoder().decode(bytes), /await (?!\()/, path);
});

Deno.test("only awaits that load late modules in advance are removed; others are refused", () => {
  const kept = "const late = 1;\nasync function f() { await late; }\n";
  assert.equal(withoutAwaits("a.js", kept), kept);
  const prepared = [
    "await A.load();",
    "await (x ? A : B).prepare();",
    "await all[f()]?.load();",
    "await prepareRules(f());",
  ];
  for (const statement of prepared) assert.equal(withoutAwaits("a.js", `${kept}${statement}`), kept);
  for (const statement of ["await fetch(url);", "const a = await f();", "for await (const a of b) f(a);"]) {
    assert.throws(() => withoutAwaits("a.js", statement), /a\.js awaits at its top level/);
  }
});

Deno.test("bundlers get entries that give late modules before the engine is evaluated", async () => {
  const files = new Map(Object.entries(SOURCES).map(([path, text]) => [path, new TextEncoder().encode(text)]));
  const exports = structuredClone(EXPORTS);
  await bundleModules(files, exports);
  assert.deepEqual(exports["."], { module: "./bundled/mod.js", default: "./mod.js" });
  assert.equal(exports["./thing"], "./base/thing.js");
  const text = (path: string) => new TextDecoder().decode(files.get(path));
  assert.match(text("bundled/mod.js"), /^import '\.\/parts\.js';/);
  assert.match(text("bundled/parts.js"), /^import '\.\/leaves\.js';/);
  assert.match(text("bundled/leaves.js"), /LateModule\.provide\(\{ "parts\/late\.js": /);
});

Deno.test("chunks are closed under imports", () => {
  const module = (imports: string[], hasAwait = false) => ({ source: "", imports, hasAwait });
  const leaves = Object.keys(SOURCES).filter((path) => path !== "mod.js");
  const names = chunkNames(
    new Map([
      ...leaves.map((path) => [path, module([])] as const),
      ["mod.js", module(["a.js", "b.js"])],
      ["a.js", module(["c.js"])],
      ["b.js", module(["c.js"], true)],
      ["c.js", module([])],
    ]),
  );
  const chunksOf = ["a.js", "c.js", "b.js", "mod.js", "wasi/mod.js", "base/errors.js"].map((path) => names.get(path));
  assert.deepEqual(chunksOf, ["core", "core", "engine", "engine", "wasi", "base"]);
});

Deno.test("imports and URLs that a bundle cannot resolve are refused", async () => {
  assert.throws(() => placeModuleUrls("a.js", "new URL(`./${name}.js`, import.meta.url)", new Set()), /cannot know/);
  await assert.rejects(bundled({ ...SOURCES, "wasi/mod.js": `import "./absent.js";` }), /"wasi\/absent\.js"/);
  await assert.rejects(
    bundled({ ...SOURCES, "wasi/mod.js": `export const u = new URL("./absent.js", import.meta.url);` }),
    /"wasi\/absent\.js"/,
  );
});
