/**
 * Instances of components that JavaScript imports. In: the file's URL and the names of the component's imports. Out:
 * the exports of a new instance.
 *
 * Invariant: a component reaches what the program gives it, and WASI without grants; the names of its imports are never
 * resolved to modules.
 */
import { LinkError } from "@waft/engine";
import { readModule } from "@waft/engine/internal/drop_in/wasm_modules";
import { DEFAULT_LIMITS } from "@waft/engine/internal/runtime/instance/instantiate";
import { configuredLimits, theEngine } from "@waft/engine/internal/webassembly/module";
import { compileBinary } from "../component.ts";
import type { HostExports } from "../link/host_exports.ts";
import { type ComponentImports, lookUpName } from "../link/host_names.ts";
import { ComponentWasi, type ComponentWasiOptions } from "../wasi/mod.ts";

/** The options of {@linkcode configureComponents}. */
export interface ImportedComponentOptions {
  /** Imports by name, as for `Component.instantiate`; they come before WASI. */
  imports?: ComponentImports;
  /** What each component has of WASI: by default the standard streams, clocks and random bytes. */
  wasi?: ComponentWasiOptions;
}

let options: ImportedComponentOptions = {};

/** Sets the options for components that are imported from now on. */
export function setOptions(wanted: ImportedComponentOptions): void {
  options = wanted;
}

/** The remedy for missing imports. */
const REMEDY = "Give them to configureComponents of @waft/component/install before the file is imported.";

/**
 * The exports of a new instance of the component at `url`. Throws compile errors, LinkError that names all missing
 * imports, TrapError if a start function traps, and the errors of node:fs.
 */
export function instantiateFile(url: string, names: readonly string[]): HostExports {
  const { imports: given = {}, wasi } = options;
  const component = compileBinary(theEngine(), readModule(url));
  const host = names.some((name) => name.startsWith("wasi:")) ? new ComponentWasi(wasi).imports : {};
  const imports = Object.fromEntries(
    names.map((name) => [name, lookUpName(given, name) ?? lookUpName(host, name)]),
  );
  const { maxMemoryPages = DEFAULT_LIMITS.maxMemoryPages } = configuredLimits();
  try {
    return component.instantiate({ limits: { maxMemoryPages } }, imports).exports;
  } catch (error) {
    if (error instanceof LinkError) throw new LinkError(`${url}: ${error.message}\n${REMEDY}`);
    throw error;
  }
}
