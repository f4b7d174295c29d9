/**
 * Runs an npm package written for the global `WebAssembly`, with the host's namespace or waft's. In: the arguments
 * `folder` (which holds its node_modules), `package` and `host` or `waft`. Out: the results of the package on stdout,
 * as JSON.
 */
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";

const [folder, name, whose] = process.argv.slice(2) as [string, string, string];
const require = createRequire(join(folder, "package.json"));

/** A file of a package. */
function fileOf(path: string): string {
  return join(folder, "node_modules", path);
}

function load<T>(path: string): Promise<T> {
  return import(pathToFileURL(fileOf(path)).href) as Promise<T>;
}

interface SqlDatabase {
  run(sql: string): void;
  prepare(sql: string): { run(values: unknown[]): void; free(): void };
  exec(sql: string): unknown;
  create_function(name: string, f: (...args: never[]) => unknown): void;
  export(): Uint8Array;
}

async function sql(): Promise<unknown> {
  const start = require("sql.js/dist/sql-wasm.js") as () => Promise<
    { Database: new (bytes?: Uint8Array) => SqlDatabase }
  >;
  const { Database } = await start();
  const db = new Database();
  db.run("create table t(a integer primary key, b text, c real)");
  const insert = db.prepare("insert into t values(?, ?, ?)");
  for (let i = 0; i < 500; i++) insert.run([i, `name ${i % 7} é`, i / 3]);
  insert.free();
  const bytes = db.export();
  db.create_function("twice", (x: number) => x * 2); // after the export, which forgets functions
  let message = "";
  try {
    db.exec("select nonsense");
  } catch (error) {
    message = String(error);
  }
  return [
    db.exec("select b, count(*), sum(c) from t group by b order by b"),
    db.exec("select sum(twice(a)), group_concat(b) from t where a < 9"),
    bytes.length,
    new Database(bytes).exec("select max(c) from t"),
    // A memory that grows under the package's views.
    db.exec(
      "with recursive n(i) as (select 1 union all select i + 1 from n where i < 40000) select count(*), max(length(x)) from (select hex(randomblob(200)) || i as x from n order by i)",
    ),
    message,
  ];
}

interface QuickJs {
  evalCode(code: string): unknown;
  newContext(): QuickJsContext;
}
interface QuickJsContext {
  global: unknown;
  newFunction(name: string, f: (value: unknown) => unknown): { dispose(): void };
  newNumber(value: number): unknown;
  getNumber(value: unknown): number;
  setProp(target: unknown, name: string, value: unknown): void;
  evalCode(code: string): { error?: unknown };
  unwrapResult(result: unknown): unknown;
  dump(value: unknown): unknown;
}

async function quickjs(): Promise<unknown> {
  const { newQuickJSWASMModuleFromVariant } = require("quickjs-emscripten") as {
    newQuickJSWASMModuleFromVariant(variant: object): Promise<QuickJs>;
  };
  const variant = "@jitl/quickjs-wasmfile-release-sync";
  const quickjs = await newQuickJSWASMModuleFromVariant({
    type: "sync",
    importFFI: () => Promise.resolve((require(`${variant}/ffi`) as { QuickJSFFI: unknown }).QuickJSFFI),
    importModuleLoader: () => {
      const loader = require(`${variant}/emscripten-module`) as { default?: unknown };
      return Promise.resolve(loader.default ?? loader);
    },
  });
  const context = quickjs.newContext();
  const twice = context.newFunction("twice", (value) => context.newNumber(context.getNumber(value) * 2));
  context.setProp(context.global, "twice", twice);
  twice.dispose();
  const sum = context.unwrapResult(context.evalCode("let s = 0; for (let i = 0; i < 300; i++) s += twice(i); s"));
  return [
    quickjs.evalCode("[3, 1, 2].sort().map((x) => x ** 2).join() + JSON.stringify({ a: /b+/.exec('abbb') })"),
    quickjs.evalCode("const fib = (n) => n < 2 ? n : fib(n - 1) + fib(n - 2); fib(17)"),
    context.dump(sum),
    context.dump(context.evalCode("null.x").error),
  ];
}

async function esbuild(): Promise<unknown> {
  const esbuild = require("esbuild-wasm/lib/browser.js") as {
    initialize(options: object): Promise<void>;
    transform(code: string, options: object): Promise<{ code: string; map: string }>;
  };
  (globalThis as { self?: unknown }).self ??= globalThis; // the form for browsers expects it, and Node has none
  const wasmModule = new WebAssembly.Module(readFileSync(fileOf("esbuild-wasm/esbuild.wasm")));
  await esbuild.initialize({ wasmModule, worker: false });
  const classes = Array.from(
    { length: 200 },
    (_, i) => `export class C${i} { x: number = ${i}; get y() { return this.x ** 2 } }`,
  );
  const options = { loader: "ts", minify: true, target: "es2015", sourcemap: true };
  const results = [
    await esbuild.transform("const f = (a?: number): number => a ?? 1; export default f;", options),
    await esbuild.transform(classes.join("\n"), options),
  ];
  const failure = await esbuild.transform("let let", options).catch(String);
  return [results, failure];
}

async function resvg(): Promise<unknown> {
  const { initWasm, Resvg } = await load<{
    initWasm(bytes: Uint8Array): Promise<void>;
    Resvg: new (svg: string) => { render(): { width: number; asPng(): Uint8Array; pixels: Uint8Array } };
  }>("@resvg/resvg-wasm/index.mjs");
  await initWasm(readFileSync(fileOf("@resvg/resvg-wasm/index_bg.wasm")));
  const image = new Resvg(
    `<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64"><defs><linearGradient id="g"><stop stop-color="red"/>
    <stop offset="1" stop-color="blue"/></linearGradient></defs><circle cx="32" cy="32" r="20" fill="url(#g)"/>
    <path d="M0 0 C 10 60 50 0 64 64" stroke="green" stroke-width="4" fill="none"/></svg>`,
  ).render();
  let message = "";
  try {
    new Resvg("<svg");
  } catch (error) {
    message = String(error);
  }
  return [image.width, [...image.asPng()], message];
}

async function sha256(): Promise<unknown> {
  const { digest, digest64, SHA256 } = await load<{
    digest(bytes: Uint8Array): Uint8Array;
    digest64(bytes: Uint8Array): Uint8Array;
    SHA256: new () => { init(): { update(bytes: Uint8Array): { final(): Uint8Array } } };
  }>("@chainsafe/as-sha256/lib/index.js");
  const bytes = Uint8Array.from({ length: 3000 }, (_, i) => i * 7);
  return [digest(bytes), digest64(bytes.subarray(0, 64)), new SHA256().init().update(bytes).final()].map((d) => [...d]);
}

interface TreeNode {
  toString(): string;
  hasError: boolean;
  descendantCount: number;
}

async function treeSitter(): Promise<unknown> {
  const { Parser, Language } = await load<{
    Parser: {
      new (): { setLanguage(language: unknown): void; parse(text: string): { rootNode: TreeNode } };
      init(): Promise<void>;
    };
    Language: { load(path: string): Promise<unknown> };
  }>("web-tree-sitter/tree-sitter.js");
  await Parser.init();
  const parser = new Parser();
  parser.setLanguage(await Language.load(fileOf("tree-sitter-json/tree-sitter-json.wasm")));
  return [`{"a": [1, 2, {"b": null}], "é": "x"}`, `{"a": tru}`, `[${"1, ".repeat(2000)}2]`].map((text) => {
    const { rootNode } = parser.parse(text);
    return [rootNode.toString(), rootNode.hasError, rootNode.descendantCount];
  });
}

const WORK: Readonly<Record<string, () => Promise<unknown>>> = {
  "sql.js": sql,
  "quickjs-emscripten": quickjs,
  "esbuild-wasm": esbuild,
  "@resvg/resvg-wasm": resvg,
  "@chainsafe/as-sha256": sha256,
  "web-tree-sitter": treeSitter,
};

if (whose === "waft") {
  const { configure, WebAssembly: ours } = await import("../../engine/webassembly/mod.ts");
  // Compiled once for each version of the compiler.
  configure({ cache: { directory: join(folder, "..", "compiled") } });
  globalThis.WebAssembly = ours;
}
const result = await WORK[name]();
process.stdout.write(JSON.stringify(result), () => process.exit(0));
