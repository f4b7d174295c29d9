/**
 * Calls of WIT functions as core functions: their signatures, and the options that they need. In: functions and types
 * of resolved WIT. Out: flat types, and whether a memory and an allocator take part.
 */
import {
  type CoreType,
  flattenAll,
  hasRanges,
  liftShape,
  lowerShape,
  MAX_FLAT_PARAMS,
  resultTypes,
} from "../abi/layout.ts";
import { type FuncType, mapValueType, type ResourceType, type ValType } from "../model/types.ts";
import type { WitFunc, WitType, WitTypeDef } from "../wit/document.ts";
import { funcParts } from "./type_text.ts";

/** The signature of a core function, and the parts of the core module that a call uses. */
export interface CallShape {
  readonly params: readonly CoreType[];
  readonly results: readonly CoreType[];
  readonly usesMemory: boolean;
  readonly usesRealloc: boolean;
}

/** Ways to lift a function: synchronously, with a callback, or with a stack of its own. */
export type LiftMode = "sync" | "callback" | "stackful";

/** The layout of a handle does not depend on its resource type. */
const RESOURCE: ResourceType = { kind: "resource", id: { origin: "imported" } };

const definitions = new WeakMap<WitTypeDef, ValType>();

/** A type without names. */
function valueType(type: WitType): ValType {
  if (type.kind === "named") return definitionOf(type.def);
  return mapValueType(type, valueType, () => RESOURCE);
}

function definitionOf(def: WitTypeDef): ValType {
  let found = definitions.get(def);
  if (found === undefined) definitions.set(def, found = resolveDefinition(def));
  return found;
}

function resolveDefinition({ type }: WitTypeDef): ValType {
  if (type.kind === "use") return definitionOf(type.target);
  if (type.kind === "alias") return valueType(type.type);
  if (type.kind === "resource") return { kind: "own", resource: RESOURCE };
  return mapValueType(type, valueType, () => RESOURCE);
}

function funcType(func: WitFunc): FuncType {
  const { params, result } = funcParts(func);
  return {
    kind: "func",
    async: func.async,
    params: params.map(({ name, type }) => ({ name, type: valueType(type) })),
    ...(result === undefined ? {} : { result: valueType(result) }),
  };
}

/** The call of an imported function by a core module. */
export function loweredShape(func: WitFunc, isAsync: boolean): CallShape {
  const type = funcType(func);
  const { params, results, flatParams, flatResults } = lowerShape(type, {
    pointer: "i32",
    isAsync,
    hasCallback: false,
  });
  const lists = hasRanges(resultTypes(type));
  const isIndirect = flatParams === undefined || flatResults === undefined;
  const usesMemory = isIndirect || lists || hasRanges(type.params.map((param) => param.type));
  return { params, results, usesMemory, usesRealloc: lists };
}

/** The call of an exported function of a core module. */
export function liftedShape(func: WitFunc, mode: LiftMode): CallShape {
  const type = funcType(func);
  const options = { pointer: "i32", isAsync: mode !== "sync", hasCallback: mode === "callback" } as const;
  const { params, results, flatParams, flatResults } = liftShape(type, options);
  const usesRealloc = flatParams === undefined || hasRanges(type.params.map((param) => param.type));
  const returned = mode === "sync" ? flatResults === undefined : !isFlat(resultTypes(type));
  return { params, results, usesMemory: usesRealloc || returned || hasRanges(resultTypes(type)), usesRealloc };
}

function isFlat(types: readonly ValType[]): boolean {
  return flattenAll(types, "i32", MAX_FLAT_PARAMS) !== undefined;
}

/** `task.return` of an exported function. */
export function taskReturnUsesMemory(func: WitFunc): boolean {
  const types = resultTypes(funcType(func));
  return !isFlat(types) || hasRanges(types);
}

/** Whether elements of a stream or future contain strings or lists. */
export function elementHasRanges(element: WitType | undefined): boolean {
  return element !== undefined && hasRanges([valueType(element)]);
}
