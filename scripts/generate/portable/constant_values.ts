/**
 * The values of a file's constants, computed as they are when the module loads. In: files. Out: of each, the values by
 * name of the constants at the top level and of the imported names that are no types; and the functions that tables may
 * contain.
 *
 * A copy of the file in a temporary folder exports the names; its imports lead to the originals.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import ts from "typescript";
import { boundNames } from "./rewrite.ts";

/** A function at the top level of a file. */
interface TopLevelFunction {
  /** The path of its file. */
  readonly file: string;
  readonly name: string;
}

interface Values {
  /** The values of the constants, by the path of the file. */
  readonly constants: ReadonlyMap<string, ReadonlyMap<string, unknown>>;
  /** The functions of the files, as tables refer to them. */
  readonly functions: ReadonlyMap<unknown, TopLevelFunction>;
}

/** The values of the constants of the files. */
export async function constantValues(sources: readonly ts.SourceFile[]): Promise<Values> {
  const folder = mkdtempSync(join(tmpdir(), "waft-constants-"));
  try {
    const found = new Map<string, ReadonlyMap<string, unknown>>();
    const functions = new Map<unknown, TopLevelFunction>();
    for (const [n, source] of sources.entries()) {
      const file = join(folder, `file${n}.ts`);
      writeFileSync(file, exportingCopy(source));
      const copy = await import(pathToFileURL(file).href) as Record<"constants" | "functions", Record<string, unknown>>;
      found.set(source.fileName, new Map(Object.entries(copy.constants)));
      const original = await import(pathToFileURL(source.fileName).href) as Record<string, unknown>;
      for (const [name, value] of [...Object.entries(copy.functions), ...Object.entries(original)]) {
        if (typeof value === "function") functions.set(value, { file: source.fileName, name });
      }
    }
    return { constants: found, functions };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The text of a module that also exports the constants and functions of `source`. */
function exportingCopy(source: ts.SourceFile): string {
  const names: string[] = [];
  const functions = source.statements.filter(ts.isFunctionDeclaration).flatMap(({ name }) => name?.text ?? []);
  let text = source.text;
  for (const node of [...source.statements].reverse()) {
    if (ts.isVariableStatement(node) && (node.declarationList.flags & ts.NodeFlags.Const) !== 0) {
      names.push(...node.declarationList.declarations.flatMap(({ name }) => boundNames(name)));
    }
    if (ts.isImportDeclaration(node)) names.push(...importedValues(node));
    else if (!ts.isExportDeclaration(node)) continue;
    const { moduleSpecifier: from } = node;
    if (from === undefined) continue;
    const target = new URL((from as ts.StringLiteral).text, pathToFileURL(source.fileName));
    text = `${text.slice(0, from.getStart(source))}"${target.href}"${text.slice(from.end)}`;
  }
  return `${text}\nexport const constants = { ${names.join(", ")} }, functions = { ${functions.join(", ")} };\n`;
}

/** The imported names that are no types. */
function importedValues({ importClause }: ts.ImportDeclaration): string[] {
  const named = importClause?.namedBindings;
  if (importClause === undefined || importClause.isTypeOnly || !named || !ts.isNamedImports(named)) return [];
  return named.elements.filter(({ isTypeOnly }) => !isTypeOnly).map(({ name }) => name.text);
}
