/**
 * The decoders and validators as a ModuleInspector.
 *
 * In: the bytes of a module or component. Out: its imports and exports with types, or its world; InspectionError
 * for invalid bytes. Loads only the front end, no code generator, and runs no code.
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
      const { params, results } = valid.funcTypes[index];
      return { type: { params: params.map(valTypeName), results: results.map(valTypeName) } };
    };
    let functions = 0;
    return {
      imports: valid.imports.map(({ module, name, desc }) => ({
        module,
        name,
        kind: KINDS[desc.kind],
        ...typeOf(desc.kind, desc.kind === "func" ? functions++ : 0),
      })),
      exports: valid.exports.map(({ name, kind, index }) => ({ name, kind: KINDS[kind], ...typeOf(kind, index) })),
    };
  } catch (error) {
    if (error instanceof WaftError) throw new InspectionError(error.message);
    throw error;
  }
}

/** Whether the bytes have the header of a component: layer 1. */
function isComponent(bytes: Uint8Array): boolean {
  return bytes.length >= 8 && bytes[0] === 0 && bytes[1] === 0x61 && bytes[6] === 1;
}

/** Validates the entry of a plugin, a module or a component; the component inspector is loaded for components only. */
export async function inspectPlugin(bytes: Uint8Array): Promise<InspectedModule> {
  if (!isComponent(bytes)) return inspectModule(bytes);
  const { inspectComponent } = await import("./component_inspector.ts");
  return inspectComponent(bytes);
}

/** The binary form of a module in text form. Throws MalformedError. */
export function assemble(text: string): Uint8Array {
  parseModule(text);
  return textToBinary(text);
}
