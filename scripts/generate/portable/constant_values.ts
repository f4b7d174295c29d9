/**
 * The values of a file's constants, computed as they are when the module loads. In: a file. Out: the values by name, of
 * the constants at the top level and of the imported names that are no types.
 *
 * A copy of the file in a temporary folder exports the names; its imports lead to the originals.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import ts from "typescript";
import { boundNames } from "./rewrite.ts";

/** The values of the constants of the files, by path. */
export async function constantValues(
  sources: readonly ts.SourceFile[],
): Promise<Map<string, ReadonlyMap<string, unknown>>> {
  const folder = mkdtempSync(join(tmpdir(), "waft-constants-"));
  try {
    const found = new Map<string, ReadonlyMap<string, unknown>>();
    for (const [n, source] of sources.entries()) {
      const file = join(folder, `file${n}.ts`);
      writeFileSync(file, exportingCopy(source));
      const { constants } = await import(pathToFileURL(file).href) as { constants: Record<string, unknown> };
      found.set(source.fileName, new Map(Object.entries(constants)));
    }
    return found;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The text of a module that also exports the constants of `source`. */
function exportingCopy(source: ts.SourceFile): string {
  const names: string[] = [];
  let text = source.text;
  for (const node of [...source.statements].reverse()) {
    if (ts.isVariableStatement(node) && (node.declarationList.flags & ts.NodeFlags.Const) !== 0) {
      names.push(...node.declarationList.declarations.flatMap(({ name }) => boundNames(name)));
    }
    if (!ts.isImportDeclaration(node)) continue;
    names.push(...importedValues(node));
    const { moduleSpecifier: from } = node;
    const target = new URL((from as ts.StringLiteral).text, pathToFileURL(source.fileName));
    text = `${text.slice(0, from.getStart(source))}"${target.href}"${text.slice(from.end)}`;
  }
  return `${text}\nexport const constants = { ${names.join(", ")} };\n`;
}

/** The imported names that are no types. */
function importedValues({ importClause }: ts.ImportDeclaration): string[] {
  const named = importClause?.namedBindings;
  if (importClause === undefined || importClause.isTypeOnly || !named || !ts.isNamedImports(named)) return [];
  return named.elements.filter(({ isTypeOnly }) => !isTypeOnly).map(({ name }) => name.text);
}
