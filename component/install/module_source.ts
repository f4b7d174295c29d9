/**
 * Component → the source of a JavaScript module with its exports. In: the bytes of a `.wasm` file. Out: a module that
 * instantiates the component (instantiate_file.ts) and exports what `ComponentInstance.exports` has, under the same
 * names.
 */
import { ALL_FEATURE_ROWS } from "@waft/engine/internal/features";
import { decodeComponent } from "../binary/decode.ts";
import { exportNames } from "../link/host_exports.ts";
import { validateComponent } from "../validate/validate_component.ts";

/** Types of components do not depend on features; compilation refuses those that are off. */
const FEATURES = Object.fromEntries(ALL_FEATURE_ROWS.map(({ name }) => [name, true]));

/**
 * The source of the module for the component in the file at `url`, which imports `instantiateFile` from the module
 * `instantiator`. Throws MalformedError or InvalidError with the place in the file.
 */
export function componentSource(url: string, bytes: Uint8Array, instantiator: string): string {
  const { type } = validateComponent(decodeComponent(bytes), { features: FEATURES, bodies: false });
  // The host makes imported types.
  const imports = [...type.imports].flatMap(([name, { kind }]) => kind === "type" ? [] : [name]);
  const lines = [
    `import { instantiateFile } from ${JSON.stringify(instantiator)};`,
    `const exports = instantiateFile(${JSON.stringify(url)}, ${JSON.stringify(imports)});`,
  ];
  exportNames(type).forEach((name, k) => {
    lines.push(`const export${k} = exports[${JSON.stringify(name)}];`);
    lines.push(`export { export${k} as ${JSON.stringify(name)} };`);
  });
  return lines.join("\n") + "\n";
}
