/**
 * The engine's decoder and validator as a ModuleInspector.
 *
 * Input: the bytes of a module. Output: its imports and exports with types; InspectionError for an invalid module.
 * Loads only the front end, no code generator, and runs no code of the module.
 */
import { decodeModule } from "@waft/engine/internal/binary/decode";
import { WaftError } from "@waft/engine/internal/errors";
import { featureSet } from "@waft/engine/internal/features";
import { parseModule, textToBinary } from "@waft/engine/internal/text/parse_module";
import { validateModule } from "@waft/engine/internal/validate/module";
import { valTypeName } from "@waft/engine/internal/wasm/types";
import { type ExternKind, type FunctionType, type InspectedModule, InspectionError } from "./module_inspector.ts";

const KINDS: { readonly [kind: string]: ExternKind } = {
  func: "function",
  table: "table",
  memory: "memory",
  global: "global",
  tag: "tag",
};

/** Validates a module and lists its imports and exports. */
export function inspectModule(bytes: Uint8Array): InspectedModule {
  try {
    const valid = validateModule(decodeModule(bytes), featureSet());
    const typeOf = (kind: string, index: number): { type?: FunctionType } => {
      if (kind !== "func") return {};
      const { params, results } = valid.funcTypes[index]!;
      return { type: { params: params.map(valTypeName), results: results.map(valTypeName) } };
    };
    let functions = 0;
    return {
      imports: valid.imports.map(({ module, name, desc }) => ({
        module,
        name,
        kind: KINDS[desc.kind]!,
        ...typeOf(desc.kind, desc.kind === "func" ? functions++ : 0),
      })),
      exports: valid.exports.map(({ name, kind, index }) => ({ name, kind: KINDS[kind]!, ...typeOf(kind, index) })),
    };
  } catch (error) {
    if (error instanceof WaftError) throw new InspectionError(error.message);
    throw error;
  }
}

/** A module in text form as its binary form. */
export function assemble(text: string): Uint8Array {
  parseModule(text);
  return textToBinary(text);
}
