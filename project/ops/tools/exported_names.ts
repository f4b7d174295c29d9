/**
 * The names of functions that `--invoke` can call, for completions of shells. In: the words of an unfinished command
 * line. Out: names. Invariant: nothing is compiled, and a file that is damaged or no program has no names.
 */
import { readdirSync, statSync } from "node:fs";
import { inspectFile } from "../inspection/inspect_file.ts";
import { readInput } from "./read_input.ts";
import { readShape } from "../run/module_shape.ts";

/** Larger files would let the shell wait. */
const MAX_BYTES = 64 << 20;
const PROGRAM = /\.(?:wasm|wat)$/;

/** The names in the program that the words name; if they name none, in the only one of the current directory. */
export async function exportedNames(words: readonly string[]): Promise<string[]> {
  const named = words.find((word) => PROGRAM.test(word) && isFile(word));
  if (named !== undefined) return await namesIn(named);
  const here = readdirSync(".").filter((name) => PROGRAM.test(name) && isFile(name));
  return here.length === 1 ? await namesIn(here[0]) : [];
}

function isFile(path: string): boolean {
  try {
    const found = statSync(path);
    return found.isFile() && found.size <= MAX_BYTES;
  } catch {
    return false;
  }
}

async function namesIn(path: string): Promise<string[]> {
  try {
    const shape = readShape(readInput(path));
    if (shape !== undefined) return shape.exports.filter(({ kind }) => kind === "func").map(({ name }) => name);
    const found = await inspectFile(path);
    if (found.kind !== "component") return [];
    const names = found.documents.flatMap(({ root }) => [...root.worlds.values()]).flatMap((world) =>
      [...world.exports].flatMap(([name, item]) => {
        if (item.kind === "func") return [name];
        return item.kind === "interface" ? [...item.interface.funcs.values()].map((func) => func.name) : [];
      })
    );
    return [...new Set(names)];
  } catch {
    return [];
  }
}
