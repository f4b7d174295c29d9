/**
 * The inspector of components: the imports and exports of their worlds.
 *
 * In: the bytes of a component. Out: its interfaces, with the functions of each in the notation of WIT and the
 * core types with which modules import them; InspectionError for an invalid component, or one that cannot be a plugin.
 * Loads the decoder and validator of components, and runs no code of the component.
 */
import { WaftError } from "@waft/engine/internal/errors";
import { signature } from "@waft/component/internal/abi/type_name";
import { decodeComponent } from "@waft/component/internal/binary/decode";
import { coreSignature } from "@waft/component/internal/link/core_caller";
import { featuresOf } from "@waft/component/internal/link/component_features";
import type { Component } from "@waft/component/internal/model/definitions";
import type { Extern, FuncType } from "@waft/component/internal/model/types";
import { type ComponentOptions, validateComponent } from "@waft/component/internal/validate/validate_component";
import {
  type InspectedFunction,
  type InspectedModule,
  type InspectedWorld,
  InspectionError,
  type WorldItem,
} from "./module_inspector.ts";

/** Validates a component for a plugin and lists the imports and exports of its world. */
export function inspectComponent(bytes: Uint8Array): InspectedModule {
  try {
    const component = decodeComponent(bytes);
    if (featuresOf(component).usesAsync) {
      throw new InspectionError("it uses the async functions of WASI 0.3, which plugins cannot use yet");
    }
    return { imports: [], exports: [], world: worldOf(component) };
  } catch (error) {
    if (error instanceof WaftError) throw new InspectionError(error.message);
    throw error;
  }
}

/** Validates a component, except for the bodies of its functions with `bodies: false`, and lists its world. */
export function worldOf(component: Component, options: ComponentOptions = {}): InspectedWorld {
  const { type } = validateComponent(component, options);
  return { imports: items(type.imports), exports: items(type.exports) };
}

function items(side: ReadonlyMap<string, Extern>): WorldItem[] {
  return [...side].map(([name, extern]) => {
    if (extern.kind !== "instance") return { name, kind: extern.kind, functions: [] };
    const functions = [...extern.type.exports].flatMap(([label, item]) =>
      item.kind === "func" ? [inspectFunction(label, item.type)] : []
    );
    return { name, kind: "interface", functions };
  });
}

function inspectFunction(name: string, type: FuncType): InspectedFunction {
  const core = coreSignature(type);
  const signed = signature(type);
  if (typeof core === "string") return { name, signature: signed, fault: core };
  const { params, results, needsMemory, needsRealloc } = core;
  return { name, signature: signed, type: { params, results }, needsMemory, needsRealloc };
}
