/**
 * Decides which values are computed where they are used instead of in a register of their own: compares at their branch, shifts and
 * extensions as operands, products that are added, conversions without code. Loads are never folded: arm64 operates on registers.
 *
 * The backward sweep of codegen/folding.ts. The rules that emit (select_*.ts) look at the marks and match the same shapes again.
 */
import { dropUses, fold, foldPure, isCompare, isFloatCompare, isIntegerCompare } from "../codegen/folding.ts";
import { FLAG, OP, OP_FLAGS } from "../ir/ops.ts";
import { TY, TY_BANK } from "../ir/types.ts";
import { type Arm64Lowering, FOLD } from "./lowering_context.ts";

/** Folds a WRAP whose user needs only the low half of a register. */
function foldWrap(s: Arm64Lowering, id: number, user: number): void {
  if (s.op[id] === OP.WRAP) foldPure(s, id, user);
}

/** Folds an inversion into a vector operation that can do it as well. */
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

/** Could `user` fold value `id`? */
function isFoldable(s: Arm64Lowering, id: number, user: number): boolean {
  return s.uses[id] === 1 && s.blockOf[id] === s.blockOf[user] && s.folded[id] === 0;
}

/** Has compare `id` a form that only the first of a chain can have? */
function isRich(s: Arm64Lowering, id: number): boolean {
  const x = s.a[id];
  const y = s.b[id];
  if (isFloatCompare(s.op[id])) return s.op[y] === OP.CONST;
  return (s.isZero(y) && (s.op[x] === OP.AND || isCompare(s.op[x]))) || isConstantShift(s, y);
}

/**
 * Folds condition `id` if it is the AND or OR of comparisons. Instead of one of an OR there may be any i32, instead of one of an AND only the
 * result of a comparison: that is 0 or 1.
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

/** A compare that is only ever a condition is repeated where it is wanted, if it is near. */
function repeatable(s: Arm64Lowering, id: number): boolean {
  return s.uses[id] === 2 && s.op[s.a[id]] !== OP.CONST;
}

/** Is `id` a shift by a constant (to the left, or either way) that a shifted operand can do? */
export function isConstantShift(s: Arm64Lowering, id: number): boolean {
  const o = s.op[id];
  return (o === OP.SHL || o === OP.SHR_U || o === OP.SHR_S) && s.op[s.b[id]] === OP.CONST;
}

/** Can `id` be the second operand of an addition or subtraction: shifted, extended? */
function foldOperand(s: Arm64Lowering, id: number, user: number, arithmetic: boolean): boolean {
  if (isConstantShift(s, id)) return foldPure(s, id, user);
  return arithmetic && s.foldsExtensions && foldExtension(s, id, user);
}

/** Folds the extension of an i32 into the 64-bit addition or subtraction `user` (key uxtw-add). */
function foldExtension(s: Arm64Lowering, id: number, user: number): boolean {
  const o = s.op[id];
  if ((o !== OP.EXTEND_S && o !== OP.EXTEND_U) || !foldPure(s, id, user)) return false;
  foldWrap(s, s.a[id], id);
  s.count("uxtw-add");
  return true;
}

/** Folds a zero extension, which is no code: registers hold every i32 zero-extended. */
function foldZeros(s: Arm64Lowering, id: number, user: number): void {
  if (s.op[id] === OP.EXTEND_U) foldPure(s, id, user);
}

/** Backward sweep: marks what is folded. Needs {@linkcode countUses}. */
export function markFolds(s: Arm64Lowering): void {
  const { f, op, ty, a, b, c, uses, folded } = s;
  const { sched } = f;
  for (let k = f.blockCount - 1; k >= 0; k--) {
    for (let p = f.blockEnd[k] - 1; p >= f.blockStart[k]; p--) {
      const id = sched[p];
      const o = op[id];
      if (uses[id] === 0 && (OP_FLAGS[o] & FLAG.PURE) !== 0) {
        dropUses(s, id);
        continue;
      }
      const x = a[id];
      const y = b[id];
      switch (o) {
        case OP.ADD:
        case OP.SUB:
          foldWrap(s, y, id);
          foldWrap(s, x, id);
          // A constant becomes the immediate, and then the other operand is a register.
          if (op[y] === OP.CONST || (o === OP.ADD && op[x] === OP.CONST)) break;
          if (op[y] === OP.MUL && foldPure(s, y, id)) break;
          if (o === OP.ADD && op[x] === OP.MUL && foldPure(s, x, id)) break;
          if (foldOperand(s, y, id, true)) break;
          if (o === OP.ADD) foldOperand(s, x, id, true);
          break;
        case OP.AND:
          if (folded[id] === FOLD.CHAIN) break;
          foldWrap(s, x, id);
          foldWrap(s, y, id);
          foldZeros(s, x, id);
          foldZeros(s, y, id);
          // A test of bits takes its operands as they are.
          if (folded[id] !== 0 || op[x] === OP.CONST) break;
          if (op[y] === OP.CONST) {
            // A field: (x >> n) & mask.
            if (op[x] === OP.SHR_U && op[b[x]] === OP.CONST && isLowMask(s, y)) foldPure(s, x, id);
            break;
          }
          if (foldOperand(s, y, id, false)) break;
          foldOperand(s, x, id, false);
          break;
        case OP.OR:
        case OP.XOR:
          if (folded[id] === FOLD.CHAIN) break;
          foldWrap(s, x, id);
          foldWrap(s, y, id);
          foldZeros(s, x, id);
          foldZeros(s, y, id);
          if (op[y] === OP.CONST || op[x] === OP.CONST) break;
          if (foldOperand(s, y, id, false)) break;
          foldOperand(s, x, id, false);
          break;
        case OP.MUL:
          foldZeros(s, x, id);
          foldZeros(s, y, id);
          foldWrap(s, x, id);
          foldWrap(s, y, id);
          break;
        case OP.SHL:
        case OP.SHR_S:
        case OP.SHR_U:
        case OP.ROTL:
        case OP.ROTR:
          foldWrap(s, x, id);
          foldWrap(s, y, id);
          foldZeros(s, x, id);
          break;
        case OP.WRAP:
          // A field of 32 bits. Users of a folded WRAP read the low half of what it has.
          if (folded[id] === 0 && op[x] === OP.SHR_U && op[b[x]] === OP.CONST) foldPure(s, x, id);
          break;
        case OP.CLZ:
        case OP.CTZ:
        case OP.EXTEND8_S:
        case OP.EXTEND16_S:
        case OP.EXTEND_S:
          foldWrap(s, x, id);
          break;
        case OP.SELECT:
          foldCondition(s, c[id], id);
          break;
        case OP.BRANCH:
        case OP.TRAP_IF:
          foldCondition(s, x, id);
          break;
        case OP.STORE:
        case OP.STORE8:
        case OP.STORE16:
          if (TY_BANK[ty[y]] === 1) foldWrap(s, y, id);
          foldZeros(s, y, id);
          break;
        case OP.VAND:
        case OP.VOR:
          if (!foldInverse(s, y, id)) foldInverse(s, x, id);
          break;
        case OP.VANDNOT:
          foldInverse(s, y, id);
          break;
        case OP.VBITSELECT:
          foldInverse(s, c[id], id);
          break;
        default:
          if (isIntegerCompare(o) && folded[id] !== FOLD.REPEATED) {
            foldWrap(s, x, id);
            foldWrap(s, y, id);
            if (folded[id] === FOLD.CHAINED) {
              foldZeros(s, x, id);
              foldZeros(s, y, id);
              break;
            }
            if (s.isZero(y) && (o === OP.EQ || o === OP.NE)) {
              if (folded[id] !== FOLD.FIRST && foldChain(s, x, id)) break;
              if ((op[x] === OP.AND || isCompare(op[x])) && foldPure(s, x, id)) break;
            }
            foldZeros(s, x, id);
            if (op[x] !== OP.CONST && isConstantShift(s, y)) foldPure(s, y, id);
            else foldZeros(s, y, id);
          }
      }
    }
  }
}

/** How far the operands of a value are looked at. */
const DEPTH = 3;

/** Is the upper half of the i64 value `id` known to be zero? */
export function isHalf(s: Arm64Lowering, id: number, depth: number = DEPTH): boolean {
  const { op, a, b, c, imm } = s;
  switch (op[id]) {
    case OP.CONST:
      return c[id] === 0;
    case OP.EXTEND_U:
    case OP.LOAD8_U:
    case OP.LOAD16_U:
    case OP.LOAD32_U:
    case OP.CLZ:
    case OP.CTZ:
    case OP.POPCNT:
      return true;
    case OP.SHR_U:
      return op[b[id]] === OP.CONST ? (imm[b[id]] & 32) !== 0 || (depth > 0 && isHalf(s, a[id], depth - 1)) : false;
    case OP.AND:
      return depth > 0 && (isHalf(s, a[id], depth - 1) || isHalf(s, b[id], depth - 1));
    case OP.OR:
    case OP.XOR:
    case OP.SELECT:
      return depth > 0 && isHalf(s, a[id], depth - 1) && isHalf(s, b[id], depth - 1);
  }
  return false;
}

/** Is constant `id` 2^n − 1? */
export function isLowMask(s: Arm64Lowering, id: number): boolean {
  const low = s.imm[id];
  const high = s.wide(id) === 1 ? s.c[id] : 0;
  if (high === 0) return low !== 0 && (low & (low + 1)) === 0;
  return low === -1 && high !== -1 && (high & (high + 1)) === 0;
}
