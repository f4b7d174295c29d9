/**
 * Runs endless work of npm packages that know nothing of limits, under `limit`, and then more work. In: the arguments
 * `folder` (which holds the packages' node_modules) and `package`. Out: one line of JSON: the error's name and code,
 * the shares of the deadline at which it came, results before and after it, and what a count in the package's state is
 * each time that a checkpoint has been restored.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";

const DEADLINE_MS = 400;

const [folder, name] = process.argv.slice(2) as [string, string];
const require = createRequire(join(folder, "package.json"));
const fileOf = (path: string) => join(folder, "node_modules", path);

const { checkpoint, collectInstances, configure, limit, WebAssembly: ours } = await import(
  "../../engine/webassembly/mod.ts"
);
configure({ interruptible: true, cache: { directory: join(folder, "..", "compiled-limited") } });
globalThis.WebAssembly = ours;

/** A package: work that ends, and work that does not. */
interface Subject {
  work(): unknown;
  endless(): unknown;
  /** Adds one to a number in the state of the package, and returns it. */
  count?(): unknown;
}

async function quickjs(): Promise<Subject> {
  const { newQuickJSWASMModuleFromVariant } = require("quickjs-emscripten") as {
    newQuickJSWASMModuleFromVariant(variant: object): Promise<
      { newContext(): { evalCode(code: string): object; dump(value: unknown): unknown } }
    >;
  };
  const variant = "@jitl/quickjs-wasmfile-release-sync";
  const module = await newQuickJSWASMModuleFromVariant({
    type: "sync",
    importFFI: () => Promise.resolve((require(`${variant}/ffi`) as { QuickJSFFI: unknown }).QuickJSFFI),
    importModuleLoader: () => {
      const loader = require(`${variant}/emscripten-module`) as { default?: unknown };
      return Promise.resolve(loader.default ?? loader);
    },
  });
  const counting = module.newContext();
  const run = (code: string, context = module.newContext()) => {
    const result = context.evalCode(code) as { error?: unknown; value?: unknown };
    return context.dump(result.error ?? result.value);
  };
  return {
    work: () => run("[1, 2, 3].map((x) => x ** 2).join()"),
    endless: () => run("for (;;);"),
    count: () => run("globalThis.n = (globalThis.n ?? 0) + 1", counting),
  };
}

async function sql(): Promise<Subject> {
  const start = require("sql.js/dist/sql-wasm.js") as () => Promise<
    { Database: new () => { exec(sql: string): unknown } }
  >;
  const { Database } = await start();
  const run = (text: string) => new Database().exec(text);
  return {
    work: () => run("select 6 * 7"),
    endless: () => run("with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"),
  };
}

/** A plugin whose function `run` counts to the number that is its input's length, or for ever without input. */
const PLUGIN = `(module
  (import "extism:host/env" "input_length" (func $length (result i64)))
  (func (export "run") (result i32) (local $n i64)
    (loop $l
      (local.set $n (i64.add (local.get $n) (i64.const 1)))
      (br_if $l (i64.ne (local.get $n) (call $length))))
    (i32.const 0)))`;

async function extism(): Promise<Subject> {
  const { encodeModule } = await import("../../engine/binary/encode.ts");
  const { parseModule } = await import("../../engine/text/parse_module.ts");
  const { createPlugin } = await import(pathToFileURL(fileOf("@extism/extism/dist/esm/mod.js")).href) as {
    createPlugin(
      manifest: object,
      options: object,
    ): Promise<{ call(name: string, input: string): Promise<unknown>; close(): Promise<void> }>;
  };
  const data = new Uint8Array(encodeModule(parseModule(PLUGIN)));
  const plugin = () => createPlugin({ wasm: [{ data }] }, { useWasi: false });
  const run = async (input: string) => {
    const made = await plugin();
    await made.call("run", input);
    return "done";
  };
  return { work: () => run("12345"), endless: () => run("") };
}

async function resvg(): Promise<Subject> {
  const { initWasm, Resvg } = await import(pathToFileURL(fileOf("@resvg/resvg-wasm/index.mjs")).href) as {
    initWasm(bytes: Uint8Array): Promise<void>;
    Resvg: new (svg: string) => { render(): { width: number } };
  };
  await initWasm(readFileSync(fileOf("@resvg/resvg-wasm/index_bg.wasm")));
  const blurred = (size: number, count: number) =>
    `<svg xmlns="http://www.w3.org/2000/svg" width="${size}" height="${size}"><filter id="f">
      <feTurbulence baseFrequency="0.01" numOctaves="${count}"/></filter>
      ${`<rect width="${size}" height="${size}" filter="url(#f)"/>`.repeat(count)}</svg>`;
  return {
    work: () => new Resvg(blurred(8, 1)).render().width,
    endless: () => new Resvg(blurred(3000, 20)).render().width,
  };
}

const SUBJECTS: Readonly<Record<string, () => Promise<Subject>>> = {
  "quickjs-emscripten": quickjs,
  "sql.js": sql,
  "@extism/extism": extism,
  "@resvg/resvg-wasm": resvg,
};

const { result: { work, endless, count }, instances } = await collectInstances(() => SUBJECTS[name]());
const before = await work();
const loaded = count && checkpoint(...instances);
const counts = [count?.()];
const begun = performance.now();
let failure: unknown;
try {
  await limit({ deadline: DEADLINE_MS }, endless);
} catch (error) {
  failure = error;
}
const { name: kind, code } = failure as { name: string; code: string };
const share = (performance.now() - begun) / DEADLINE_MS;
const after = await limit({ deadline: 60_000 }, work);
for (let k = 0; k < 2; k++) {
  loaded?.restore();
  counts.push(count?.());
}
const result = { kind, code, share, before, after, counts };
process.stdout.write(JSON.stringify(result), () => process.exit(0));
