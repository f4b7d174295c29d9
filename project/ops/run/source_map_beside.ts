/**
 * The source map beside a program, for the places of its traps. In: the program's file, and the address in the module,
 * which is untrusted. Out: the text of the map, read at the first trap. Invariant: only a regular file in the folder of
 * the program is read, of a bounded size; loads no Node module.
 */
import type { Module } from "@waft/engine";
import { readFile } from "@waft/engine/internal/host/files";
import { fileStatus } from "../../base/file_status.ts";
import { parentOf } from "../../base/system_path.ts";

/** Largest map that is read, in bytes. */
const MAX_BYTES = 64 << 20;

/** Gives the traps of a module the places of the map beside its file. */
export function useMapBeside(file: string, module: Module): void {
  module.setSourceMap(mapBeside(file));
}

/** Reads source maps beside a file. */
export function mapBeside(file: string): (url: string) => string | undefined {
  return (url) => {
    const name = url.replace(/^\.\//, "");
    if (name === "" || /[\\/:\0]/.test(name)) return undefined;
    const path = `${parentOf(file)}/${name}`;
    try {
      const status = fileStatus(path);
      // A pipe beside a module would never end.
      if (status?.kind !== "file" || status.size > MAX_BYTES) return undefined;
      return new TextDecoder().decode(readFile(path));
    } catch {
      return undefined;
    }
  };
}
