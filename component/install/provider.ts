/**
 * Provides components for imports of `.wasm` files (engine/drop_in/), in the realm or hook thread that imports this
 * module. In: nothing. Out: the registered provider.
 */
import { provideComponents } from "@waft/engine/internal/drop_in/component_modules";
import { theEngine } from "@waft/engine/internal/webassembly/module";
import { compileBinary } from "../component.ts";
import { componentSource } from "./module_source.ts";

/** The URL of another module of this folder. */
function sibling(name: string): string {
  return import.meta.url.replace("/provider.", `/${name}.`);
}

provideComponents({
  entry: sibling("mod"),
  source: (url, bytes) => componentSource(url, bytes, sibling("instantiate_file")),
  compile: (bytes) => compileBinary(theEngine(), bytes),
});
