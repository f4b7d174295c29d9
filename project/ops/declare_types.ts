/**
 * TypeScript declarations of worlds, in files. In: a component, a core module with an embedded world, or WIT, and a
 * folder. Out: the paths written. Invariant: nothing is written if the input is refused; a file is replaced as a whole.
 */
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { WitWorld } from "../../component/wit/document.ts";
import { declareWorld } from "../../component/wit/typescript.ts";
import { replaceFile } from "../base/replace_file.ts";
import { chosenWorlds } from "./chosen_worlds.ts";
import { inspectFile } from "./inspection/inspect_file.ts";

/** The name of a component's world, which has none of its own (component/wit/from_component.ts). */
const ROOT_WORLD = "root";

/** Writes the declarations of the worlds in the file or directory `path`, or of the one called `world`. */
export async function declareTypes(path: string, folder: string, world: string | undefined): Promise<string[]> {
  const files = new Map<string, string>();
  for (const found of chosenWorlds(await worldsOf(path), path, world)) {
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

async function worldsOf(path: string): Promise<WitWorld[]> {
  const inspection = await inspectFile(path);
  if (!("documents" in inspection)) return [];
  return inspection.documents.flatMap(({ root }) => [...root.worlds.values()]);
}
