/**
 * TypeScript declarations of a `.wasm` file that programs import. In: its exports, by name, with their types. Out: the
 * text of `NAME.d.wasm.ts`, which TypeScript reads for `NAME.wasm` with `allowArbitraryExtensions`. Invariant: names
 * from the file are names of exports only, in quotes unless they are identifiers.
 */

const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;

/** The declarations of the file called `file`; `head` declares what the types refer to. */
export function declareImportedFile(
  file: string,
  head: string,
  exports: readonly (readonly [string, string])[],
): string {
  const lines = exports.map(([name, type], k) => {
    const exported = IDENTIFIER.test(name) ? name : JSON.stringify(name);
    return `declare const export${k}: ${type};\nexport { export${k} as ${exported} };\n`;
  });
  return `/** The exports of ${
    file.replaceAll("*/", "* /")
  }, for programs that import it. Written by \`waft types\`. */\n${head}\n` +
    `${lines.join("")}${lines.length === 0 ? "export {};\n" : ""}`;
}
