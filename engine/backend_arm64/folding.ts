/**
 * Folding for arm64, the choice of values that their users compute instead of reading them from a register: compares at
 * their branch, shifts and extensions as operands, products that are added, conversions without code. Loads are never
 * folded: arm64 operates on registers.
 *
 * The fold rules of the backward sweep of codegen/folding.ts. The selection rules (select_*.ts) check `folded` and
 * match the same shapes again.
 */
import { foldRules, operationRange } from "../codegen/fold_rules.ts";
import { applyFoldRules, type FoldRule } from "../codegen/folding.ts";
import { fold, foldPure, isCompare, isFloatCompare } from "../codegen/folding.ts";
import { REGION, regionKind } from "../ir/regions.ts";
import { OP } from "../ir/ops.ts";
import { TY, TY_BANK } from "../ir/types.ts";
import { type Arm64Lowering, FOLD } from "./lowering_context.ts";

/** Folds a WRAP whose user needs only the low half of a register. */
function foldWrap(s: Arm64Lowering, id: number, user: number): void {
  if (s.op[id] === OP.WRAP) foldPure(s, id, user);
}

/** Folds an inversion into a vector operation that has a form with an inverted operand. */
function foldInverse(s: Arm64Lowering, id: number, user: number): boolean {
  return s.op[id] === OP.VNOT && foldPure(s, id, user);
}

/** Folds the condition `id` of a branch, select or trap. */
function foldCondition(s: Arm64Lowering, id: number, user: number): void {
  const o = s.op[id];
  if (foldChain(s, id, user)) return;
  if (o === OP.AND || o === OP.WRAP || o === OP.VANY_TRUE || o === OP.VALL_TRUE) {
    foldPure(s, id, user);
  } else if (isCompare(o)) {
    if (s.uses[id] === 1) foldPure(s, id, user);
    else if (s.uses[id] === s.conditionUses[id] && s.folded[id] === 0 && repeatable(s, id)) {
      s.folded[id] = FOLD.REPEATED;
      s.uses[s.a[id]] += s.uses[id] - 1;
      s.uses[s.b[id]] += s.uses[id] - 1;
    }
  }
}

/** Whether `user` could fold value `id`. */
function isFoldable(s: Arm64Lowering, id: number, user: number): boolean {
  return s.uses[id] === 1 && s.blockOf[id] === s.blockOf[user] && s.folded[id] === 0;
}

/** Whether compare `id` has a form that only the first comparison of a chain can have. */
function isRich(s: Arm64Lowering, id: number): boolean {
  const x = s.a[id];
  const y = s.b[id];
  if (isFloatCompare(s.op[id])) return s.op[y] === OP.CONST;
  return (s.isZero(y) && (s.op[x] === OP.AND || isCompare(s.op[x]))) || isConstantShift(s, y);
}

/**
 * Folds condition `id` if it is the AND or OR of comparisons. An operand of an OR may also be any i32; an operand of an
 * AND must be the result of a comparison: that is 0 or 1.
 */
function foldChain(s: Arm64Lowering, id: number, user: number): boolean {
  const { op, a, b, ty } = s;
  const all = op[id] === OP.AND;
  if ((!all && op[id] !== OP.OR) || ty[id] !== TY.I32 || !isFoldable(s, id, user)) return false;
  let first = a[id];
  let second = b[id];
  if (all ? !isCompare(op[first]) || !isCompare(op[second]) : op[first] === OP.CONST || op[second] === OP.CONST) {
    return false;
  }
  const canBeSecond = isCompare(op[second]) && isFoldable(s, second, id);
  if (!isCompare(op[first]) || !isFoldable(s, first, id)) {
    if (!canBeSecond) return false;
    [first, second] = [second, first];
  } else if (canBeSecond && isRich(s, second) && !isRich(s, first)) [first, second] = [second, first];
  fold(s, id, user, FOLD.CHAIN);
  fold(s, first, id, FOLD.FIRST);
  if (isCompare(op[second]) && isFoldable(s, second, id)) fold(s, second, id, FOLD.CHAINED);
  return true;
}

/** Whether compare `id`, which is used only as a condition, is made once at each of its uses: if there are two. */
function repeatable(s: Arm64Lowering, id: number): boolean {
  return s.uses[id] === 2 && s.op[s.a[id]] !== OP.CONST;
}

/** Whether `id` is a shift by a constant, which a shifted operand can do. */
export function isConstantShift(s: Arm64Lowering, id: number): boolean {
  const o = s.op[id];
  return (o === OP.SHL || o === OP.SHR_U || o === OP.SHR_S) && s.op[s.b[id]] === OP.CONST;
}

/**
 * Folds value `id` into `user` as a shifted operand, or, if `arithmetic`, as an extended one; returns whether it did.
 */
function foldOperand(s: Arm64Lowering, id: number, user: number, arithmetic: boolean): boolean {
  if (isConstantShift(s, id)) return foldPure(s, id, user);
  return arithmetic && s.foldsExtensions && foldExtension(s, id, user);
}

/** Folds the extension of an i32 into the 64-bit addition or subtraction `user` (key uxtw-add). */
function foldExtension(s: Arm64Lowering, id: number, user: number): boolean {
  const o = s.op[id];
  if ((o !== OP.EXTEND_S && o !== OP.EXTEND_U) || !foldPure(s, id, user)) return false;
  foldWrap(s, s.a[id], id);
  s.options.counts.foldedExtensions++;
  return true;
}

/** Folds a zero extension, which takes no code: registers hold every i32 zero-extended. */
function foldZeros(s: Arm64Lowering, id: number, user: number): void {
  if (s.op[id] === OP.EXTEND_U) foldPure(s, id, user);
}

function foldSum(s: Arm64Lowering, id: number): void {
  const { op } = s;
  const x = s.a[id];
  const y = s.b[id];
  const commutes = op[id] === OP.ADD;
  foldWrap(s, y, id);
  foldWrap(s, x, id);
  // A constant becomes the immediate, and then the other operand is a register.
  if (op[y] === OP.CONST || (commutes && op[x] === OP.CONST)) return;
  if (op[y] === OP.MUL && foldPure(s, y, id)) return;
  if (commutes && op[x] === OP.MUL && foldPure(s, x, id)) return;
  if (foldOperand(s, y, id, true)) return;
  if (commutes) foldOperand(s, x, id, true);
}

function foldAnd(s: Arm64Lowering, id: number): void {
  const { op, folded } = s;
  const x = s.a[id];
  const y = s.b[id];
  if (folded[id] === FOLD.CHAIN) return;
  foldOperands(s, id);
  // A test of bits takes its operands as they are.
  if (folded[id] !== 0 || op[x] === OP.CONST) return;
  if (op[y] === OP.CONST) {
    // A field: (x >> n) & mask.
    if (op[x] === OP.SHR_U && op[s.b[x]] === OP.CONST && isLowMask(s, y)) foldPure(s, x, id);
    return;
  }
  if (!foldOperand(s, y, id, false)) foldOperand(s, x, id, false);
}

function foldOr(s: Arm64Lowering, id: number): void {
  const x = s.a[id];
  const y = s.b[id];
  if (s.folded[id] === FOLD.CHAIN) return;
  foldOperands(s, id);
  if (s.op[y] === OP.CONST || s.op[x] === OP.CONST) return;
  if (!foldOperand(s, y, id, false)) foldOperand(s, x, id, false);
}

/** Folds the conversions without code of both operands. */
function foldOperands(s: Arm64Lowering, id: number): void {
  foldWrap(s, s.a[id], id);
  foldWrap(s, s.b[id], id);
  foldZeros(s, s.a[id], id);
  foldZeros(s, s.b[id], id);
}

function foldShift(s: Arm64Lowering, id: number): void {
  foldWrap(s, s.a[id], id);
  foldWrap(s, s.b[id], id);
  foldZeros(s, s.a[id], id);
}

/** A field of 32 bits. Users of a folded WRAP read the low half of its operand. */
function foldField(s: Arm64Lowering, id: number): void {
  const x = s.a[id];
  if (s.folded[id] === 0 && s.op[x] === OP.SHR_U && s.op[s.b[x]] === OP.CONST) foldPure(s, x, id);
}

function foldStore(s: Arm64Lowering, id: number): void {
  const y = s.b[id];
  foldMemoryAddress(s, id);
  if (TY_BANK[s.ty[y]] === 1) foldWrap(s, y, id);
  foldZeros(s, y, id);
}

function foldIntegerCompare(s: Arm64Lowering, id: number): void {
  const { op, folded } = s;
  const x = s.a[id];
  const y = s.b[id];
  if (folded[id] === FOLD.REPEATED) return;
  foldWrap(s, x, id);
  foldWrap(s, y, id);
  if (folded[id] === FOLD.CHAINED) {
    foldZeros(s, x, id);
    foldZeros(s, y, id);
    return;
  }
  if (s.isZero(y) && (op[id] === OP.EQ || op[id] === OP.NE)) {
    if (folded[id] !== FOLD.FIRST && foldChain(s, x, id)) return;
    if ((op[x] === OP.AND || isCompare(op[x])) && foldPure(s, x, id)) return;
  }
  foldZeros(s, x, id);
  if (op[x] !== OP.CONST && isConstantShift(s, y)) foldPure(s, y, id);
  else foldZeros(s, y, id);
}

/** The address of an access to memory 0, which a guarded access extends by itself. */
function foldMemoryAddress(s: Arm64Lowering, id: number): void {
  if (!s.explicit && regionKind(s.c[id]) === REGION.MEMORY0) foldWrap(s, s.a[id], id);
}

function foldEitherInverse(s: Arm64Lowering, id: number): void {
  if (!foldInverse(s, s.b[id], id)) foldInverse(s, s.a[id], id);
}

function foldOperandWrap(s: Arm64Lowering, id: number): void {
  foldWrap(s, s.a[id], id);
}

function foldSelect(s: Arm64Lowering, id: number): void {
  foldCondition(s, s.c[id], id);
}

function foldBranch(s: Arm64Lowering, id: number): void {
  foldCondition(s, s.a[id], id);
}

function foldInvertedRight(s: Arm64Lowering, id: number): void {
  foldInverse(s, s.b[id], id);
}

function foldInvertedMask(s: Arm64Lowering, id: number): void {
  foldInverse(s, s.c[id], id);
}

const RULES: readonly FoldRule<Arm64Lowering>[] = foldRules<Arm64Lowering>([
  [[OP.ADD, OP.SUB], foldSum],
  [[OP.AND], foldAnd],
  [[OP.OR, OP.XOR], foldOr],
  [[OP.MUL], foldOperands],
  [[OP.SHL, OP.SHR_S, OP.SHR_U, OP.ROTL, OP.ROTR], foldShift],
  [[OP.WRAP], foldField],
  [[OP.CLZ, OP.CTZ, OP.EXTEND8_S, OP.EXTEND16_S, OP.EXTEND_S], foldOperandWrap],
  [operationRange(OP.EQ, OP.GE_U), foldIntegerCompare],
  [[OP.SELECT], foldSelect],
  [[OP.BRANCH, OP.TRAP_IF], foldBranch],
  [operationRange(OP.LOAD, OP.LOAD32_U), foldMemoryAddress],
  [operationRange(OP.STORE, OP.STORE32), foldStore],
  [[OP.VAND, OP.VOR], foldEitherInverse],
  [[OP.VANDNOT], foldInvertedRight],
  [[OP.VBITSELECT], foldInvertedMask],
]);

/** Folds values into their users (backward sweep). */
export function markFolds(s: Arm64Lowering): void {
  applyFoldRules<Arm64Lowering>(s, RULES, 0);
}

/** Whether constant `id` is 2^n − 1. */
export function isLowMask(s: Arm64Lowering, id: number): boolean {
  const low = s.imm[id];
  const high = s.wide(id) === 1 ? s.c[id] : 0;
  if (high === 0) return low !== 0 && (low & (low + 1)) === 0;
  return low === -1 && high !== -1 && (high & (high + 1)) === 0;
}
