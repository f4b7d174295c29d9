/**
 * TypeScript declarations of worlds and of the exports of core modules, in files. In: a component, a core module, or
 * WIT, and a folder. Out: the paths written. Invariant: nothing is written if the input is refused; a file is replaced
 * as a whole.
 */
import { mkdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { WitWorld } from "@waft/component/internal/wit/document";
import { declaredExports, declareWorld } from "@waft/component/internal/wit/typescript";
import { replaceFile } from "../../base/replace_file.ts";
import { declareImportedFile } from "./declare_imported_file.ts";
import { declareModule, importedExports } from "./declare_module.ts";
import { chosenWorlds } from "./chosen_worlds.ts";
import { inspectFile, type Inspection } from "../inspection/inspect_file.ts";

/** The name of a component's world, which has none of its own (component/wit/from_component.ts). */
const ROOT_WORLD = "root";

/** The ending of files that programs import. */
const WASM = ".wasm";

/** The file of a component's declarations, without the ending. */
const COMPONENT = "component";

/**
 * Writes the declarations of the worlds in the file or directory `path`, or of the one called `world`; those of its
 * exports for a core module without a world; and those of imports of the file, if its name ends with `.wasm`.
 */
export async function declareTypes(path: string, folder: string, world: string | undefined): Promise<string[]> {
  const files = new Map<string, string>();
  const inspection = await inspectFile(path);
  const worlds = worldsOf(inspection);
  if (inspection.kind === "core module" && worlds.length === 0 && world === undefined) {
    files.set("module.d.ts", declareModule(inspection.module));
  }
  for (const found of files.size > 0 ? [] : chosenWorlds(worlds, path, world)) {
    const name = found.name === ROOT_WORLD ? COMPONENT : found.name;
    for (const [file, text] of declareWorld(found, name)) files.set(file, text);
  }
  if (path.endsWith(WASM) && world === undefined) {
    const name = basename(path);
    const text = declareImports(name, inspection, worlds);
    if (text !== undefined) files.set(name.replace(/\.wasm$/, ".d.wasm.ts"), text);
  }
  for (const [file, text] of files) {
    const path = join(folder, file);
    mkdirSync(dirname(path), { recursive: true });
    replaceFile(path, text);
  }
  return [...files.keys()].map((file) => join(folder, file));
}

/** The declarations of a module or a component that programs import; undefined if it is neither. */
function declareImports(file: string, inspection: Inspection, worlds: readonly WitWorld[]): string | undefined {
  if (inspection.kind === "core module") return declareImportedFile(file, "", importedExports(inspection.module));
  if (inspection.kind !== "component") return undefined;
  const root = worlds.find(({ name }) => name === ROOT_WORLD);
  if (root === undefined) return undefined;
  const head = `import type { Exports } from "./${COMPONENT}.d.ts";\n`;
  return declareImportedFile(
    file,
    head,
    declaredExports(root).map((name) => [name, `Exports[${JSON.stringify(name)}]`]),
  );
}

function worldsOf(inspection: Inspection): WitWorld[] {
  if (!("documents" in inspection)) return [];
  return inspection.documents.flatMap(({ root }) => [...root.worlds.values()]);
}
