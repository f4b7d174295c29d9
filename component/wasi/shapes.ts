/**
 * The types of WASI's functions. In: the objects of its interfaces. Out: the same objects with the shapes of the
 * functions that the specification gives them (wasi_functions.ts). Invariant: the implementations get arguments of the
 * types that they expect, and a guest reaches none of their methods that the specification does not have.
 */
import { SHAPES, type ShapesOf } from "../link/host_imports.ts";
import type { ComponentImports } from "../link/host_names.ts";
import { FUNCTIONS, TYPES } from "./wasi_functions.ts";

/** The shapes of the functions of an interface, by name. */
function readShapes(interfaceName: string): Map<string, string> {
  const rows = (FUNCTIONS[interfaceName] ?? "").split("\n").filter((row) => row !== "");
  return new Map(rows.map((row) => {
    const end = row.indexOf(" ");
    return [row.slice(0, end), withTypes(row.slice(end + 1))];
  }));
}

/** A text with the types that it refers to by number. */
function withTypes(text: string): string {
  return text.replace(/\$(\d+)/g, (_, index: string) => withTypes(TYPES[Number(index)]));
}

const KNOWN = new Map<string, ShapesOf>();

/** The shapes of several versions of an interface, which are read on first use. */
export function shapesOf(...names: readonly string[]): ShapesOf {
  const key = names.join();
  let tables: Map<string, string>[] | undefined;
  const made: ShapesOf = KNOWN.get(key) ?? ((name) => {
    tables ??= names.map(readShapes);
    return tables.flatMap((table) => table.get(name) ?? []);
  });
  KNOWN.set(key, made);
  return made;
}

/**
 * Adds the shapes to the interfaces in `imports`, whose names are those of WASI 0.2 without their version and of 0.3
 * with it. An interface without version is that of 0.3, too, unless `imports` has another.
 */
export function withShapes(imports: Readonly<Record<string, object>>): ComponentImports {
  const shaped = Object.entries(imports).map(([name, functions]) => {
    const versions = name.includes("@")
      ? [name]
      : [`${name}@0.2`, ...(`${name}@0.3.0` in imports ? [] : [`${name}@0.3.0`])];
    return [name, { ...functions, [SHAPES]: shapesOf(...versions) }];
  });
  return Object.fromEntries(shaped) as ComponentImports;
}
