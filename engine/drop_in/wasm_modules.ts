/**
 * Imports `.wasm` files as JavaScript modules (WebAssembly/ES Module integration). In: the file's URL. Out: the source
 * of a module that imports the file's imports by module name, instantiates the file, and exports its exports; globals
 * are exported by value. The source for a component comes from the component package (component_modules.ts).
 *
 * Invariant: waft compiles the file once for each import of it; string builtins need no module.
 */
import { decodeModule } from "../binary/decode.ts";
import { nodeModule } from "../host/process.ts";
import { WebAssembly } from "../webassembly/mod.ts";
import { componentModules, isComponent } from "./component_modules.ts";

/** Module names whose imports the compiler provides. */
const BUILTINS = "wasm:js-string";
const CONSTANTS = "wasm:js/string-constants";
/** The compile options of imported files. */
export const COMPILE_OPTIONS = { builtins: ["js-string"], importedStringConstants: CONSTANTS } as const;

/** The URL of this module, which the generated modules import. */
const SELF = import.meta.url;

/** Whether a module's URL is that of a `.wasm` file on disk. */
export function isWasmFile(url: string): boolean {
  return url.startsWith("file:") && new URL(url).pathname.endsWith(".wasm");
}

/** The bytes of the file at `url`. Throws the errors of node:fs. */
export function readModule(url: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(nodeModule("node:fs").readFileSync(new URL(url)));
}

/**
 * The source of the module for the file at `url`. Throws MalformedError if the file is not a WebAssembly module, the
 * errors of node:fs, and for a component those of its provider, or an Error if there is none.
 */
export function moduleSource(url: string): string {
  const bytes = readModule(url);
  if (isComponent(bytes)) return componentModules(url).source(url, bytes);
  const { imports, exports } = decodeModule(bytes);
  const names = [...new Set(imports.map(({ module }) => module))].filter((name) =>
    name !== BUILTINS && name !== CONSTANTS
  );
  const lines = names.map((name, k) => `import * as import${k} from ${JSON.stringify(name)};`);
  const given = names.map((name, k) => `[${JSON.stringify(name)}, import${k}]`).join(", ");
  lines.push(
    `import { instantiateFile } from ${JSON.stringify(SELF)};`,
    `const exports = await instantiateFile(${JSON.stringify(url)}, [${given}]);`,
  );
  exports.forEach(({ name }, k) => {
    lines.push(`const export${k} = exports[${JSON.stringify(name)}];`);
    lines.push(`export { export${k} as ${JSON.stringify(name)} };`);
  });
  return lines.join("\n") + "\n";
}

/**
 * The exports of a new instance of the file at `url`, linked to the given namespaces; globals by value. Rejects with
 * compile and link errors, and the errors of node:fs.
 */
export async function instantiateFile(
  url: string,
  imports: readonly (readonly [string, object])[],
): Promise<Record<string, unknown>> {
  const compile = WebAssembly.compile as (bytes: BufferSource, options: object) => Promise<WebAssembly.Module>;
  const module = await compile(readModule(url), COMPILE_OPTIONS);
  const instance = await WebAssembly.instantiate(module, Object.fromEntries(imports) as WebAssembly.Imports);
  return Object.fromEntries(
    Object.entries(instance.exports).map(([name, value]) => [
      name,
      (value as unknown) instanceof WebAssembly.Global ? (value as unknown as WebAssembly.Global).value : value,
    ]),
  );
}
