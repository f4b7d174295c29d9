/** Folding of loads into their users as memory operands, where no effect in between forbids the move. */
import { fold } from "../codegen/folding.ts";
import { REGION, regionKind } from "../ir/regions.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { FOLD, type X64Lowering } from "./lowering_context.ts";

/**
 * Whether folding must keep the width of load `id`: with guard pages, only an access of all its bytes is certain to
 * fault where the load must trap, because a narrower one may end in front of the guard pages.
 */
export function keepsWidth(s: X64Lowering, id: number): boolean {
  return regionKind(s.c[id]) === REGION.MEMORY0 && !s.explicit;
}

/** Whether `id` is the constant 0xffffffff of 64 bits. */
export function isLowHalf(s: X64Lowering, id: number): boolean {
  return s.op[id] === OP.CONST && s.ty[id] === TY.I64 && s.imm[id] === -1 && s.c[id] === 0;
}

/** Whether load `id` may trap. */
function mayTrap(s: X64Lowering, id: number): boolean {
  const kind = regionKind(s.c[id]);
  return kind === REGION.MEMORY0 ? !s.explicit : kind !== REGION.CONTEXT && s.b[id] !== 0;
}

/**
 * Whether a load that can trap may be part of the instruction that `user` becomes. An instruction has one wasm
 * position, so the load must have that of the explicit trap into which `user` is folded, if there is one.
 */
function sharesPosition(s: X64Lowering, id: number, user: number): boolean {
  const { f: { pos, site } } = s;
  const trap = s.trapUser[user];
  return trap === 0 || (pos[id] === pos[trap] && site[id] === site[trap]);
}

/** Whether load `id` may be executed at `user` (or at the instruction into which `user` is folded). */
export function canMoveTo(s: X64Lowering, id: number, user: number): boolean {
  if (!mayTrap(s, id)) return s.writeGroup[id] === s.writeGroup[user];
  return s.trapGroup[id] === s.trapGroup[user] && sharesPosition(s, id, user);
}

/** Folds `id` into `user` as a memory operand if it is a full load of type `ty`. */
export function foldLoad(s: X64Lowering, id: number, user: number, ty: number): boolean {
  if (s.op[id] !== OP.LOAD || s.uses[id] !== 1 || s.folded[id] !== 0) return false;
  const own = s.ty[id];
  if (own !== ty && !(own === TY.REF && ty === TY.I64)) return false;
  if (!canMoveTo(s, id, user)) return false;
  fold(s, id, user, FOLD.ONCE);
  return true;
}
