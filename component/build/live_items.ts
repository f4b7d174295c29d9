/**
 * The part of a world that a component needs: functions that core modules import, everything that the world exports,
 * and the types that occur in them. In: a world, and the needs of its core modules. Out: sets of functions and types.
 */
import type { WitFunc, WitType, WitTypeDef, WitWorld } from "../wit/document.ts";
import type { Need } from "./core_imports.ts";
import { funcParts, type Live, namesIn, typesUsedBy } from "./type_text.ts";

/** The functions and types that `needs` and the exports of `world` name, directly or through others. */
export function liveItems(world: WitWorld, needs: readonly Need[]): Live {
  const types = new Set<WitTypeDef>();
  const funcs = new Set<WitFunc>();
  const addType = (def: WitTypeDef): void => {
    if (types.has(def)) return;
    types.add(def);
    typesUsedBy(def).forEach(addType);
  };
  const addValue = (type: WitType) => namesIn(type).forEach(addType);
  const addFunc = (func: WitFunc): void => {
    funcs.add(func);
    if (func.resource !== undefined) addType(func.resource);
    const { params, result } = funcParts(func);
    for (const { type } of params) addValue(type);
    if (result !== undefined) addValue(result);
  };
  for (const need of needs) {
    if (need.kind === "resource") addType(need.def);
    else if (need.kind === "channel") addValue(need.type);
    else if (need.kind !== "builtin") addFunc(need.func);
  }
  for (const item of world.exports.values()) {
    if (item.kind === "func") addFunc(item.func);
    else if (item.kind === "interface") {
      for (const def of item.interface.types.values()) addType(def);
      for (const func of item.interface.funcs.values()) addFunc(func);
    }
  }
  return { types, funcs };
}
