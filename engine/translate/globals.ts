/**
 * Globals (specification, 4.4.5). In: operands on the translator's stack. Out: accesses of the global's slot in the VM
 * context, or of the cell whose address the slot holds, or the value if it is known.
 */
import { CLASS_CONSTANT, REGION, region } from "../ir/regions.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { GLOBAL } from "./module_facts.ts";
import { funcRef } from "./references.ts";
import type { Translation } from "./translation.ts";

const CONSTANT_CONTEXT = region(REGION.CONTEXT, CLASS_CONSTANT);

/** `global.get` */
export function translateGlobalGet(t: Translation, index: number): void {
  const { b, env } = t;
  const ty = env.globalTy[index];
  switch (env.globalKind[index]) {
    case GLOBAL.KNOWN: {
      const value = env.globalValues[index]!;
      t.push(value.func >= 0 ? funcRef(t, value.func) : b.constant(ty, value.lo, value.hi));
      return;
    }
    case GLOBAL.POINTER:
      t.push(b.emit(OP.LOAD, ty, cellPointer(t, index), 0, env.globalRegion[index], 0));
      return;
    default:
      t.push(b.emit(OP.LOAD, ty, 0, 0, env.globalRegion[index], env.globalOffset[index]));
  }
}

/** `global.set` */
export function translateGlobalSet(t: Translation, index: number): void {
  const { b, env } = t;
  const value = t.pop();
  if (env.globalKind[index] === GLOBAL.POINTER) {
    b.emit(OP.STORE, TY.NONE, cellPointer(t, index), value, env.globalRegion[index], 0);
  } else {
    b.emit(OP.STORE, TY.NONE, 0, value, env.globalRegion[index], env.globalOffset[index]);
  }
}

/** Address of the cell of an imported mutable global. */
function cellPointer(t: Translation, index: number): number {
  return t.b.emit(OP.LOAD, TY.I64, 0, 0, CONSTANT_CONTEXT, t.env.globalOffset[index]);
}
