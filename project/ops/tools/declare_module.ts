/**
 * TypeScript declarations of the exports of a core module. In: its facts. Out: the text of a module that exports the
 * type `Exports`, for `module.instantiate<Exports>()`. Invariant: names from the module are string literals.
 */
import type { ModuleFacts } from "../inspection/inspect_module.ts";

/** The types of values in JavaScript; references are what the host passes. */
const VALUES: Readonly<Record<string, string>> = {
  i32: "number",
  i64: "bigint",
  f32: "number",
  f64: "number",
};

function valueType(type: string): string {
  return VALUES[type] ?? "unknown";
}

/** The type of a function that the text format writes as `func [i32 i64] -> [f64]`. */
function functionType(type: string): string | undefined {
  const [, params, results] = /\[([^\]]*)\] -> \[([^\]]*)\]/.exec(type) ?? [];
  if (params === undefined || results === undefined) return undefined;
  const list = (text: string) => splitTypes(text).map(valueType);
  const given = list(params).map((name, k) => `p${k}: ${name}`).join(", ");
  const returned = list(results);
  const result = returned.length === 0 ? "void" : returned.length === 1 ? returned[0] : `[${returned.join(", ")}]`;
  return `(${given}) => ${result}`;
}

/** The types of a list, in which those of references have parentheses. */
function splitTypes(text: string): string[] {
  return text.match(/\((?:[^()]|\([^()]*\))*\)|[^\s()]+/g) ?? [];
}

const KINDS: Readonly<Record<string, string>> = {
  memory: "Memory",
  table: "ExternTable",
  global: "ExternGlobal",
  tag: "Tag",
};

/** The types of exports of an imported file, whose memories and tables are those of the namespace. */
const IMPORTED_KINDS: Readonly<Record<string, string>> = {
  memory: "WebAssembly.Memory",
  table: "WebAssembly.Table",
};

/** The types of the exports of a file that programs import, by name; globals are exported by value. */
export function importedExports({ exports }: ModuleFacts): [name: string, type: string][] {
  return exports.map(({ name, kind, type }) => {
    if (kind === "func") return [name, functionType(type) ?? "(...args: unknown[]) => unknown"];
    if (kind === "global") return [name, valueType(type.replace(/^\(?mut |\)$/g, ""))];
    return [name, IMPORTED_KINDS[kind] ?? "unknown"];
  });
}

/** The declarations of the module's exports. */
export function declareModule({ exports }: ModuleFacts): string {
  const used = new Set<string>();
  const lines = exports.map(({ name, kind, type }) => {
    const declared = kind === "func"
      ? functionType(type) ?? "(...args: unknown[]) => unknown"
      : KINDS[kind] ?? "unknown";
    if (KINDS[kind] !== undefined) used.add(declared);
    return `  readonly ${JSON.stringify(name)}: ${declared};\n`;
  });
  const imported = used.size === 0 ? "" : `import type { ${[...used].sort().join(", ")} } from "@waft/engine";\n\n`;
  return `${imported}/** The exports, for \`module.instantiate<Exports>()\` and \`module.pool<Exports>()\`. */\n` +
    `export interface Exports {\n${lines.join("")}}\n`;
}
