/**
 * The imports and exports of a module, read before compilation.
 *
 * In: the bytes of a module, binary or text. Out: its imports with their types and, for text, their positions,
 * and its exports; undefined for an invalid module, whose error the compiler reports with its position. Function bodies
 * are not examined.
 */
import { decodeModule } from "@waft/engine/internal/binary/decode";
import { WaftError } from "@waft/engine/internal/errors";
import type { Module } from "@waft/engine";
import { parseModule } from "@waft/engine/internal/text_format";
import { TextPlaces } from "@waft/engine/internal/text/text_places";
import { type FuncType, funcTypeName, valTypeName } from "@waft/engine/internal/wasm/types";

/** The part of a module that running it is planned with. */
export type ModuleShape = Pick<Module, "imports" | "exports" | "functionType">;

/** An import with its place in a text. */
export type PlacedImport = Module["imports"][number] & { readonly line?: number; readonly column?: number };

/** A shape whose imports carry source positions. */
export interface PlacedShape extends ModuleShape {
  readonly imports: PlacedImport[];
}

/** Reads the shape of a module. */
export function readShape(bytes: Uint8Array): PlacedShape | undefined {
  const places = new TextPlaces();
  try {
    const isBinary = bytes.length === 0 || bytes[0] === 0;
    return shapeOf(isBinary ? decodeModule(bytes) : parseModule(bytes, { places }), places);
  } catch (error) {
    // The validator reports unknown types, like all other errors.
    if (error instanceof WaftError || error instanceof MissingType) return undefined;
    throw error;
  }
}

class MissingType extends Error {}

type Parsed = ReturnType<typeof decodeModule>;

function shapeOf(module: Parsed, places: TextPlaces): PlacedShape {
  const typeAt = (index: number): FuncType => {
    const composite = module.types[index]?.composite;
    if (composite?.kind !== "func") throw new MissingType();
    return composite;
  };
  const imported = module.imports.flatMap(({ desc }) => desc.kind === "func" ? [typeAt(desc.typeIndex)] : []);
  const functions = [...imported, ...module.funcs.map(({ typeIndex }) => typeAt(typeIndex))];
  const functionAt = (index: number): FuncType => {
    const type = functions[index];
    if (type === undefined) throw new MissingType();
    return type;
  };
  const exported = new Map(
    module.exports.filter(({ kind }) => kind === "func").map(({ name, index }) => [name, functionAt(index)]),
  );
  return {
    imports: module.imports.map(({ module: namespace, name, desc, offset }) => {
      const place = places.placeOf(offset);
      return {
        module: namespace,
        name,
        kind: desc.kind,
        type: importType(desc, typeAt),
        ...(place?.line === undefined ? {} : { line: place.line, column: place.column ?? 1 }),
      };
    }),
    exports: module.exports.map(({ name, kind }) => ({
      name,
      kind,
      type: kind === "func" ? funcTypeName(exported.get(name)!) : "",
    })),
    functionType: (name) => exported.get(name),
  };
}

function importType(desc: Parsed["imports"][number]["desc"], typeAt: (index: number) => FuncType): string {
  switch (desc.kind) {
    case "func":
      return funcTypeName(typeAt(desc.typeIndex));
    case "tag":
      return funcTypeName(typeAt(desc.type.typeIndex));
    case "table":
      return valTypeName(desc.type.element);
    case "memory":
      return `${desc.type.limits.min} pages`;
    case "global":
      return `${desc.type.mutable ? "mut " : ""}${valTypeName(desc.type.type)}`;
  }
}
