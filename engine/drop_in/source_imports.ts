/**
 * Source phase imports (proposal "ESM Integration"): `import source m from "./a.wasm"` and `import.source("./a.wasm")`.
 * In: the source of a JavaScript module. Out: the same, line by line, with calls of `importSource` instead, because no
 * host tells its hooks the phase of an import, and hosts that know the phase refuse it for files that hooks load.
 *
 * The statements are found by their form, at the beginning of a line or after a semicolon, not by a parser: one in a
 * template literal is changed, too.
 */
import { WebAssembly } from "../webassembly/mod.ts";
import { componentModules, isComponent } from "./component_modules.ts";
import { COMPILE_OPTIONS, isWasmFile, readModule } from "./wasm_modules.ts";

/** The URL of this module, which the changed modules import. */
const SELF = import.meta.url;

/** The name of `importSource` in a changed module. */
const NAME = "__waft_import_source";

const STATEMENT =
  /(^|;)([ \t]*)import\s+source\s+([\p{ID_Start}$_][\p{ID_Continue}$]*)\s+from\s+("[^"\n]*"|'[^'\n]*')/gmu;
const CALL = /(?<![\p{ID_Continue}$.#])import\s*\.\s*source\s*\(/gu;

/** The source without source phase imports, which `importSource` makes instead; undefined if it has none. */
export function withoutSourceImports(source: string): string | undefined {
  if (!/import\s+source\s|import\s*\.\s*source/.test(source)) return undefined;
  const changed = source
    .replace(
      STATEMENT,
      (_, before, space, name, specifier) =>
        `${before}${space}const ${name} = await ${NAME}(import.meta, ${specifier})`,
    )
    .replace(CALL, `${NAME}(import.meta, `);
  if (changed === source) return undefined;
  const head = `import { importSource as ${NAME} } from ${JSON.stringify(SELF)}; `;
  const first = changed.startsWith("#!") ? changed.indexOf("\n") + 1 : 0;
  return changed.slice(0, first) + head + changed.slice(first);
}

/** Modules by URL: all imports of a file have the same module. */
const MODULES = new Map<string, Promise<object>>();

/** The module of the file at `url`, or the component. */
async function compileFile(url: string): Promise<object> {
  const bytes = readModule(url);
  if (isComponent(bytes)) return componentModules(url).compile(bytes);
  const compile = WebAssembly.compile as (bytes: BufferSource, options: object) => Promise<WebAssembly.Module>;
  return await compile(bytes, COMPILE_OPTIONS);
}

/**
 * The module, or the component, of the file that `specifier` names in the module of `meta`. Rejects with a SyntaxError
 * for anything but a `.wasm` file on disk, and with compile errors and those of node:fs.
 */
export async function importSource(meta: ImportMeta, specifier: unknown): Promise<object> {
  const url = meta.resolve(String(specifier));
  if (!isWasmFile(url)) throw new SyntaxError(`Source phase imports are possible for .wasm files on disk, not ${url}`);
  let module = MODULES.get(url);
  if (module === undefined) {
    module = compileFile(url);
    MODULES.set(url, module);
  }
  return await module;
}
