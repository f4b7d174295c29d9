/**
 * Plugins of Extism: modules for `extism:host/env` and manifests, unchanged, with the shape of Extism's js-sdk.
 * Timeouts work in this thread, host functions and HTTP requests may wait, and pools reset plugins.
 *
 * @example
 * ```ts
 * import { createPlugin } from "@waft/engine/extism";
 * import { NewEngine } from "@waft/engine";
 *
 * // Returns its input.
 * const data = new Uint8Array(NewEngine().parse(`(module
 *   (import "extism:host/env" "input_offset" (func $offset (result i64)))
 *   (import "extism:host/env" "input_length" (func $length (result i64)))
 *   (import "extism:host/env" "output_set" (func $output (param i64 i64)))
 *   (func (export "echo") (result i32) (call $output (call $offset) (call $length)) (i32.const 0)))`).bytes);
 * const plugin = await createPlugin({ wasm: [{ data }], timeoutMs: 1000 });
 * const output = await plugin.call("echo", "hello");
 * if (output?.text() !== "hello") throw new Error("wrong output");
 * plugin.close();
 * ```
 *
 * @module
 */
export type { Manifest, ManifestMemory, ManifestSettings, ManifestWasm } from "./manifest.ts";
export {
  CallContext,
  CompiledPlugin,
  compilePlugin,
  createPlugin,
  type Logger,
  type LogLevel,
  Plugin,
  type PluginFunction,
  type PluginOptions,
  PluginOutput,
} from "./plugin.ts";
