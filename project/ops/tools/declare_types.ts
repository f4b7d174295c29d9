/**
 * TypeScript declarations of worlds and of the exports of core modules, in files. In: a component, a core module, or
 * WIT, and a folder. Out: the paths written. Invariant: nothing is written if the input is refused; a file is replaced
 * as a whole.
 */
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { WitWorld } from "@waft/component/internal/wit/document";
import { declareWorld } from "@waft/component/internal/wit/typescript";
import { replaceFile } from "../../base/replace_file.ts";
import { declareModule } from "./declare_module.ts";
import { chosenWorlds } from "./chosen_worlds.ts";
import { inspectFile, type Inspection } from "../inspection/inspect_file.ts";

/** The name of a component's world, which has none of its own (component/wit/from_component.ts). */
const ROOT_WORLD = "root";

/**
 * Writes the declarations of the worlds in the file or directory `path`, or of the one called `world`; those of its
 * exports for a core module without a world.
 */
export async function declareTypes(path: string, folder: string, world: string | undefined): Promise<string[]> {
  const files = new Map<string, string>();
  const inspection = await inspectFile(path);
  const worlds = worldsOf(inspection);
  if (inspection.kind === "core module" && worlds.length === 0 && world === undefined) {
    files.set("module.d.ts", declareModule(inspection.module));
  }
  for (const found of files.size > 0 ? [] : chosenWorlds(worlds, path, world)) {
    const name = found.name === ROOT_WORLD ? "component" : found.name;
    for (const [file, text] of declareWorld(found, name)) files.set(file, text);
  }
  for (const [file, text] of files) {
    const path = join(folder, file);
    mkdirSync(dirname(path), { recursive: true });
    replaceFile(path, text);
  }
  return [...files.keys()].map((file) => join(folder, file));
}

function worldsOf(inspection: Inspection): WitWorld[] {
  if (!("documents" in inspection)) return [];
  return inspection.documents.flatMap(({ root }) => [...root.worlds.values()]);
}
