/**
 * Folding for x64, the choice of values that their users compute instead of reading them from a register: loads as
 * memory operands, compares at their branch, address arithmetic in address modes, arithmetic of read-modify-write
 * stores.
 *
 * The fold rules of the backward sweep of codegen/folding.ts. A load may move down to its user past pure operations and
 * other loads only; past a trap only if it cannot trap itself. The selection rules (select_*.ts) check `folded` and
 * match the same shapes again.
 */
import { canMoveTo, foldLoad, isLowHalf, keepsWidth } from "./fold_loads.ts";
import { foldRules, operationRange } from "../codegen/fold_rules.ts";
import { applyFoldRules, type FoldRule } from "../codegen/folding.ts";
import { fold, foldPure, isCompare, isIntegerCompare } from "../codegen/folding.ts";
import { commutes, OP } from "../ir/ops.ts";
import { TY, TY_BANK } from "../ir/types.ts";
import { FOLD, type X64Lowering } from "./lowering_context.ts";
import { foldAddress } from "./addressing.ts";
import { foldStoredLane, foldVector } from "./fold_simd.ts";
import { scaleOfFactor } from "./source_operands.ts";

/** Folds load `id` of type `ty` into `user`, a float operation, as a memory operand (key vex-float-mem with AVX). */
function foldFloatLoad(s: X64Lowering, id: number, user: number, ty: number): boolean {
  if (!s.floatMemory || !foldLoad(s, id, user, ty)) return false;
  if (s.avx) s.options.counts.floatMemory++;
  return true;
}

/** Folds a WRAP whose user needs only the low half of a register. */
function foldWrap(s: X64Lowering, id: number, user: number): void {
  if (s.op[id] === OP.WRAP && s.uses[id] === 1 && s.blockOf[id] === s.blockOf[user] && s.folded[id] === 0) {
    s.folded[id] = FOLD.ONCE;
  }
}

/** Folds the condition `id` of a branch, select or trap. */
function foldCondition(s: X64Lowering, id: number, user: number): void {
  const o = s.op[id];
  if (o === OP.AND) {
    foldPure(s, id, user);
  } else if (isCompare(o)) {
    if (s.uses[id] === 1) foldPure(s, id, user);
    else if (s.flags && s.uses[id] === s.conditionUses[id] && s.uses[id] <= 3 && s.blockOf[id] === s.blockOf[user]) {
      if (s.folded[id] === 0) {
        s.folded[id] = FOLD.REPEATED;
        s.options.counts.reusedFlags++;
      }
    }
  } else if (o === OP.VANY_TRUE || o === OP.VALL_TRUE) {
    foldPure(s, id, user);
  } else if (o >= OP.LOAD && o <= OP.LOAD16_U) {
    // cmp [m], 0
    if (s.uses[id] === 1 && s.folded[id] === 0 && canMoveTo(s, id, user)) fold(s, id, user, FOLD.ONCE);
  } else {
    foldWrap(s, id, user);
  }
}

function foldTrapCondition(s: X64Lowering, id: number): void {
  s.trapUser[id] = id;
  foldCondition(s, s.a[id], id);
}

/** Whether the compare `id` of narrow load `load` with constant `bound` means the same in the load's own width. */
function narrowCompare(s: X64Lowering, id: number, load: number, bound: number): boolean {
  if (!s.isImmediate(bound)) return false;
  const value = s.imm[bound];
  const o = s.op[id];
  switch (s.op[load]) {
    case OP.LOAD8_U:
      return value >= 0 && value <= 0xff;
    case OP.LOAD16_U:
      return value >= 0 && value <= 0xffff;
    case OP.LOAD8_S:
      return value >= -128 && value <= 127 && (o <= OP.LT_S || o === OP.GT_S || o === OP.LE_S || o === OP.GE_S);
    case OP.LOAD16_S:
      return value >= -32768 && value <= 32767 && (o <= OP.LT_S || o === OP.GT_S || o === OP.LE_S || o === OP.GE_S);
  }
  return false;
}

function foldIntegerCompare(s: X64Lowering, id: number): void {
  const x = s.a[id];
  const y = s.b[id];
  const ty = s.ty[x] === TY.REF ? TY.I64 : s.ty[x];
  foldWrap(s, x, id);
  foldWrap(s, y, id);
  if (s.isZero(y) && (s.op[id] === OP.EQ || s.op[id] === OP.NE)) {
    // test x, y; or a compare that this one inverts.
    if (s.op[x] === OP.AND && foldPure(s, x, id)) return;
    if (isCompare(s.op[x]) && foldPure(s, x, id)) return;
  }
  if (s.isImmediate(y)) {
    if (foldLoad(s, x, id, ty)) return;
    if (s.op[x] > OP.LOAD && s.op[x] <= OP.LOAD16_U && s.uses[x] === 1 && s.folded[x] === 0) {
      if (narrowCompare(s, id, x, y) && canMoveTo(s, x, id)) fold(s, x, id, FOLD.ONCE);
    }
  } else if (s.isImmediate(x)) {
    foldLoad(s, y, id, ty);
  } else if (!foldLoad(s, y, id, ty)) {
    foldLoad(s, x, id, ty);
  }
}

/** Folds the load and the arithmetic of `*p = *p op y` into the store. */
function foldReadModifyWrite(s: X64Lowering, store: number): void {
  const { op, a, b, c, imm, ty, uses, folded } = s;
  const value = b[store];
  const o = op[value];
  if (o !== OP.ADD && o !== OP.SUB && o !== OP.AND && o !== OP.OR && o !== OP.XOR) return;
  if (uses[value] !== 1 || folded[value] !== 0 || s.blockOf[value] !== s.blockOf[store]) return;
  const width = op[store];
  for (let side = 0; side < (o === OP.SUB ? 1 : 2); side++) {
    const load = side === 0 ? a[value] : b[value];
    const lo = op[load];
    const fits = width === OP.STORE
      ? lo === OP.LOAD && ty[load] === ty[value]
      : width === OP.STORE8
      ? lo === OP.LOAD8_U || lo === OP.LOAD8_S
      : width === OP.STORE16
      ? lo === OP.LOAD16_U || lo === OP.LOAD16_S
      : lo === OP.LOAD32_U || lo === OP.LOAD32_S;
    if (!fits || uses[load] !== 1 || folded[load] !== 0) continue;
    if (a[load] !== a[store] || imm[load] !== imm[store] || c[load] !== c[store]) continue;
    if (!canMoveTo(s, load, store)) continue;
    fold(s, value, store, FOLD.MEMORY);
    fold(s, load, store, FOLD.MEMORY);
    uses[a[load]]--;
    return;
  }
}

/**
 * Folds the compare whose result a store of a byte stores. The address's offset must fit a displacement, since adding
 * it would change the flags.
 */
function foldStoredCompare(s: X64Lowering, store: number): void {
  const value = s.b[store];
  if (!s.storeFlags || s.op[store] !== OP.STORE8 || !isIntegerCompare(s.op[value]) || s.imm[store] < 0) return;
  if (s.uses[value] !== 1 || s.folded[value] !== 0 || s.blockOf[value] !== s.blockOf[store]) return;
  fold(s, value, store, FOLD.CONDITION);
  s.options.counts.storedConditions++;
}

function foldWraps(s: X64Lowering, id: number): void {
  foldWrap(s, s.a[id], id);
  foldWrap(s, s.b[id], id);
}

function foldDifference(s: X64Lowering, id: number): void {
  foldWraps(s, id);
  foldLoad(s, s.b[id], id, s.ty[id]);
}

function foldShift(s: X64Lowering, id: number): void {
  foldWraps(s, id);
  if (s.bmi2 && s.op[s.b[id]] !== OP.CONST) foldLoad(s, s.a[id], id, s.ty[id]);
}

function foldRotation(s: X64Lowering, id: number): void {
  foldWraps(s, id);
  if (s.rorx && s.op[s.b[id]] === OP.CONST) foldLoad(s, s.a[id], id, s.ty[id]);
}

/** Folds a load of the result's type into an operation of one operand. */
function foldOwnLoad(s: X64Lowering, id: number): void {
  foldLoad(s, s.a[id], id, s.ty[id]);
}

/** Folds a load of the operand's type into a conversion. */
function foldOperandLoad(s: X64Lowering, id: number): void {
  foldLoad(s, s.a[id], id, s.ty[s.a[id]]);
}

/** Either operand may be the folded load if the operation commutes. */
function foldCommutingFloat(s: X64Lowering, id: number): void {
  if (!foldFloatLoad(s, s.b[id], id, s.ty[id]) && commutes(s.f.keepsNans, s.op[id])) {
    foldFloatLoad(s, s.a[id], id, s.ty[id]);
  }
}

/**
 * The right operand of a float comparison may be in memory; for FLT and FLE, whose operands are exchanged, the left
 * one.
 */
function foldFloatCompare(s: X64Lowering, id: number): void {
  if (s.folded[id] === FOLD.REPEATED) return;
  const operand = s.op[id] === OP.FLT || s.op[id] === OP.FLE ? s.a[id] : s.b[id];
  foldFloatLoad(s, operand, id, s.ty[operand]);
}

function foldStore(s: X64Lowering, id: number): void {
  foldReadModifyWrite(s, id);
  foldStoredCompare(s, id);
  foldStoredLane(s, id);
  if (TY_BANK[s.ty[s.b[id]]] === 1) foldWrap(s, s.b[id], id);
  foldAddress(s, id, true);
}

function foldAccess(s: X64Lowering, id: number): void {
  foldAddress(s, id, true);
}

function foldClz(s: X64Lowering, id: number): void {
  if (s.lzcnt) foldOwnLoad(s, id);
}

function foldCtz(s: X64Lowering, id: number): void {
  if (s.bmi1) foldOwnLoad(s, id);
}

function foldPopcnt(s: X64Lowering, id: number): void {
  if (s.popcnt) foldOwnLoad(s, id);
}

function foldOperandWrap(s: X64Lowering, id: number): void {
  foldWrap(s, s.a[id], id);
}

function foldSignExtension(s: X64Lowering, id: number): void {
  if (!foldLoad(s, s.a[id], id, TY.I32)) foldWrap(s, s.a[id], id);
}

function foldTruncation(s: X64Lowering, id: number): void {
  if (s.folded[id] === FOLD.NO && !keepsWidth(s, s.a[id])) foldLoad(s, s.a[id], id, TY.I64);
}

function foldComparison(s: X64Lowering, id: number): void {
  if (s.folded[id] !== FOLD.REPEATED) foldIntegerCompare(s, id);
}

function foldFloatRight(s: X64Lowering, id: number): void {
  foldFloatLoad(s, s.b[id], id, s.ty[id]);
}

function foldFloatUnary(s: X64Lowering, id: number): void {
  foldFloatLoad(s, s.a[id], id, s.ty[id]);
}

/** Folds a load of the other float type into a conversion between them. */
function foldFloatConversion(s: X64Lowering, id: number): void {
  foldFloatLoad(s, s.a[id], id, s.op[id] === OP.FDEMOTE ? TY.F64 : TY.F32);
}

function foldSelect(s: X64Lowering, id: number): void {
  foldCondition(s, s.c[id], id);
}

function foldBranch(s: X64Lowering, id: number): void {
  foldCondition(s, s.a[id], id);
}

const RULES: readonly FoldRule<X64Lowering>[] = foldRules<X64Lowering>([
  [operationRange(OP.LOAD, OP.LOAD32_U), foldAccess],
  [operationRange(OP.ATOMIC_LOAD, OP.ATOMIC_XCHG), foldAccess],
  [[OP.STORE, OP.STORE8, OP.STORE16, OP.STORE32], foldStore],
  [[OP.ADD, OP.MUL, OP.AND, OP.OR, OP.XOR], foldArithmetic],
  [[OP.SUB], foldDifference],
  [[OP.SHL, OP.SHR_S, OP.SHR_U], foldShift],
  [[OP.ROTL, OP.ROTR], foldRotation],
  [[OP.CLZ], foldClz],
  [[OP.CTZ], foldCtz],
  [[OP.POPCNT], foldPopcnt],
  [[OP.EXTEND8_S, OP.EXTEND16_S], foldOperandWrap],
  [[OP.EXTEND_S], foldSignExtension],
  [[OP.WRAP], foldTruncation],
  [operationRange(OP.EQ, OP.GE_U), foldComparison],
  [[OP.FADD, OP.FMUL], foldCommutingFloat],
  [[OP.FSUB, OP.FDIV], foldFloatRight],
  [[OP.FSQRT, OP.FCEIL, OP.FFLOOR, OP.FTRUNC, OP.FNEAREST], foldFloatUnary],
  [[OP.FDEMOTE, OP.FPROMOTE], foldFloatConversion],
  [[OP.CONVERT_S, OP.BITCAST], foldOperandLoad],
  [[OP.FEQ, OP.FNE, OP.FGT, OP.FGE, OP.FLT, OP.FLE], foldFloatCompare],
  [[OP.SELECT], foldSelect],
  [[OP.BRANCH], foldBranch],
  [[OP.TRAP_IF], foldTrapCondition],
  [operationRange(OP.VSPLAT, OP.VBITSELECT), foldVector],
]);

/** Kinds of folding whose users have folded the operands. */
const FINISHED = (1 << FOLD.MEMORY) | (1 << FOLD.ADDRESS) | (1 << FOLD.CONDITION);

/** Folds values into their users (backward sweep). */
export function markFolds(s: X64Lowering): void {
  applyFoldRules<X64Lowering>(s, RULES, FINISHED);
}

function foldArithmetic(s: X64Lowering, id: number): void {
  const { op, a, b, ty } = s;
  const x = a[id];
  const y = b[id];
  foldWrap(s, x, id);
  foldWrap(s, y, id);
  if (op[id] === OP.ADD) {
    foldSum(s, id);
    return;
  }
  if (s.isImmediate(y)) {
    // imul r, [m], c; test [m], c.
    const test = op[id] === OP.AND && s.folded[id] === FOLD.ONCE;
    if (op[id] === OP.MUL && s.folded[id] === 0 || test) foldLoad(s, x, id, ty[id]);
    if (test && op[x] === OP.LOAD8_U && s.uses[x] === 1 && s.folded[x] === 0 && s.imm[y] >= 0 && s.imm[y] <= 0xff) {
      if (canMoveTo(s, x, id)) fold(s, x, id, FOLD.ONCE);
    }
    return;
  }
  if (s.isImmediate(x)) return;
  // A load that must keep its width takes a mask of the low half as a move between registers.
  if (op[id] === OP.AND && ty[id] === TY.I64 && isLowHalf(s, y) && keepsWidth(s, x)) return;
  if (!foldLoad(s, y, id, ty[id])) foldLoad(s, x, id, ty[id]);
}

/** Shapes that one LEA computes: x + (y << k), (x + y) + c, (x + (y << k)) + c, (y << k) + c, y × (3, 5, 9) + c. */
function foldSum(s: X64Lowering, id: number): void {
  const { op, a, b, ty } = s;
  if (s.isImmediate(b[id])) {
    const inner = a[id];
    if (!s.affineLea) return;
    if (op[inner] === OP.SHL && isShortShift(s, inner)) foldPure(s, inner, id);
    else if (op[inner] === OP.MUL && s.folded[id] === 0 && scaleOfFactor(s, b[inner]) !== 0) foldPure(s, inner, id);
    else if (op[inner] === OP.ADD && !s.isImmediate(b[inner]) && !s.isImmediate(a[inner])) foldPure(s, inner, id);
    return;
  }
  if (op[b[id]] === OP.SHL && isShortShift(s, b[id]) && foldPure(s, b[id], id)) return;
  if (op[a[id]] === OP.SHL && isShortShift(s, a[id]) && foldPure(s, a[id], id)) return;
  if (s.folded[id] !== 0) return;
  if (!foldLoad(s, b[id], id, ty[id])) foldLoad(s, a[id], id, ty[id]);
}

/** Whether `id` is a shift to the left by 1, 2 or 3. */
function isShortShift(s: X64Lowering, id: number): boolean {
  const count = s.b[id];
  return s.op[count] === OP.CONST && s.imm[count] >= 1 && s.imm[count] <= 3;
}
