/**
 * Components as JavaScript modules: `@waft/engine/install`, and imports of `.wasm` files that are components. In:
 * nothing; importing this module before the program installs both (`node --import`, `deno run --preload`,
 * `bun --preload`). Out: `import { greet } from "./greeter.wasm"` gives the exports of an instance, and
 * `import source component from "./greeter.wasm"` the compiled component; in Workers, too.
 *
 * Invariant: components have the engine and the limits of `configure` of `@waft/engine/webassembly`.
 *
 * @module
 */
import "@waft/engine/install";
import { importInHookThread } from "@waft/engine/internal/drop_in/loader_hooks";
import { requireKnownNames, requireRecord } from "@waft/engine/internal/base/arguments";
import { type ImportedComponentOptions, setOptions } from "./instantiate_file.ts";
import "./provider.ts";

export type { ImportedComponentOptions };
export type { ComponentImports } from "../link/host_names.ts";
export type { ComponentWasiOptions, NetworkOptions, WasiOptions } from "../wasi/mod.ts";

importInHookThread(import.meta.url.replace("/mod.", "/provider."));

/**
 * Sets the imports and the WASI of components that are imported from now on, in this realm. They reach nothing else:
 * the names of imports are not resolved to modules.
 *
 * Throws TypeError for unknown options. The options of WASI are checked when a component imports WASI.
 *
 * @example
 * ```ts
 * import { configureComponents } from "@waft/component/install";
 *
 * configureComponents({
 *   imports: { "test:host/log": { write: (text: string) => console.log(text) } },
 *   wasi: { args: ["greeter"], env: [["LANG", "C"]] },
 * });
 * ```
 */
export function configureComponents(options: ImportedComponentOptions): void {
  requireRecord(options, "The options of components");
  requireKnownNames("option of components", options, { imports: true, wasi: true });
  if (options.imports !== undefined) requireRecord(options.imports, "The option imports");
  setOptions({ ...options });
}
