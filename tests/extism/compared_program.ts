/**
 * Runs the same plugins with Extism's JavaScript SDK on the host's WebAssembly, and with the engine. In: the argument
 * `folder`, which holds the package's node_modules. Out: one line of JSON: for each call, its name and both outcomes.
 */
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { encodeModule } from "../../engine/binary/encode.ts";
import { createPlugin } from "../../engine/extism/mod.ts";
import { parseModule } from "../../engine/text/parse_module.ts";

const [folder] = process.argv.slice(2);

/** What both SDKs have. */
interface Plugin {
  call(name: string, input: string): Promise<{ text(): string } | null>;
  reset(): unknown;
  close(): unknown;
}

type Create = (manifest: object, options: object) => Promise<Plugin>;

const ENV = `
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "length" (func $length (param i64) (result i64)))
  (import "extism:host/env" "load_u8" (func $load (param i64) (result i32)))
  (import "extism:host/env" "store_u8" (func $store (param i64 i32)))
  (import "extism:host/env" "input_length" (func $input_length (result i64)))
  (import "extism:host/env" "input_load_u8" (func $input (param i64) (result i32)))
  (import "extism:host/env" "output_set" (func $output (param i64 i64)))
  (import "extism:host/env" "error_set" (func $error (param i64)))
  (import "extism:host/env" "config_get" (func $config (param i64) (result i64)))
  (import "extism:host/env" "var_get" (func $var_get (param i64) (result i64)))
  (import "extism:host/env" "var_set" (func $var_set (param i64 i64)))`;

/** Copies of the input, and of what a block has. */
const HELPERS = `
  (func $give (param $at i64) (call $output (local.get $at) (call $length (local.get $at))))
  (func $copy (param $difference i32) (result i64) (local $at i64) (local $k i64)
    (local.set $at (call $alloc (call $input_length)))
    (block $done (loop $next
      (br_if $done (i64.eq (local.get $k) (call $input_length)))
      (call $store (i64.add (local.get $at) (local.get $k))
        (i32.add (call $input (local.get $k)) (local.get $difference)))
      (local.set $k (i64.add (local.get $k) (i64.const 1)))
      (br $next)))
    (local.get $at))
  (func $name (result i64) (local $at i64)
    (local.set $at (call $alloc (i64.const 1)))
    (call $store (local.get $at) (i32.const 110))
    (local.get $at))`;

const PLUGIN = `(module ${ENV}
  (import "extism:host/user" "greet" (func $greet (param i64) (result i64)))
  (memory (export "memory") 1) (global $calls (mut i32) (i32.const 47))
  ${HELPERS}
  (func (export "echo") (result i32) (call $give (call $copy (i32.const 0))) (i32.const 0))
  (func (export "upper") (result i32) (call $give (call $copy (i32.const -32))) (i32.const 0))
  (func (export "nothing") (result i32) (i32.const 0))
  (func (export "fail") (result i32) (call $error (call $copy (i32.const 0))) (i32.const 1))
  (func (export "trap") (result i32) unreachable)
  (func (export "config") (result i32) (call $give (call $config (call $copy (i32.const 0)))) (i32.const 0))
  (func (export "set") (result i32) (call $var_set (call $name) (call $copy (i32.const 0))) (i32.const 0))
  (func (export "get") (result i32) (call $give (call $var_get (call $name))) (i32.const 0))
  (func (export "user") (result i32) (call $give (call $greet (call $copy (i32.const 0)))) (i32.const 0))
  (func (export "count") (result i32) (local $at i64)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (local.set $at (call $alloc (i64.const 1)))
    (call $store (local.get $at) (global.get $calls))
    (call $give (local.get $at)) (i32.const 0)))`;

const bytes = (text: string) => new Uint8Array(encodeModule(parseModule(text)));

/**
 * Manifests with the calls that are made, in order. Without empty outputs: blocks of no bytes have an address in the
 * SDK, and none in Extism's own kernel, whose plugins have no output then. The SDK links no modules.
 */
const ROWS: readonly (readonly [manifest: object, calls: readonly (readonly [name: string, input: string])[]])[] = [
  [{ wasm: [{ data: bytes(PLUGIN) }] }, [
    ["echo", "Größe \u{1F600}"],
    ["echo", "x".repeat(100_000)],
    ["upper", "abc"],
    ["nothing", "abc"],
    ["fail", "reason"],
    ["echo", "after an error"],
    ["trap", ""],
    ["echo", "after a trap"],
    ["config", "color"],
    ["set", "one"],
    ["get", ""],
    ["user", "you"],
    ["count", ""],
    ["count", ""],
    ["reset", ""],
    ["echo", "after a reset"],
    ["absent", ""],
  ]],
];

interface SdkContext {
  read(at: bigint): { text(): string } | null;
  store(text: string): bigint;
}

const functions = {
  "extism:host/user": {
    greet: (context: SdkContext, at: bigint) => context.store(`Hello, ${context.read(at)?.text()}!`),
  },
};

/** The outcome of a call in words that both SDKs share. */
async function outcome(plugin: Plugin, name: string, input: string): Promise<string> {
  if (name === "reset") return `reset ${typeof await plugin.reset()}`.slice(0, 5);
  try {
    const output = await plugin.call(name, input);
    return output === null ? "null" : `text ${output.text()}`;
  } catch (error) {
    return /reason|unreachable/.exec(String(error).toLowerCase())?.[0] ?? "error"; // hosts begin with other letters
  }
}

const { createPlugin: theirs } = await import(
  pathToFileURL(join(folder, "node_modules/@extism/extism/dist/esm/mod.js")).href
) as { createPlugin: Create };
const results: object[] = [];
for (const [manifest, calls] of ROWS) {
  const plugins = [];
  for (const create of [theirs, createPlugin as Create]) {
    plugins.push(await create(manifest, { functions, config: { color: "green" } }));
  }
  const [sdk, own] = plugins;
  for (const [name, input] of calls) {
    results.push({
      name: `${name} ${input.slice(0, 20)}`,
      sdk: await outcome(sdk, name, input),
      own: await outcome(own, name, input),
    });
  }
  for (const plugin of plugins) await plugin.close();
}
console.log(JSON.stringify(results));
