/**
 * Comparisons and the consumers of their flags. One VCode instruction does both (compare row plus a consumer in `aux`),
 * so the allocator can insert nothing in between: a branch, a CSET, a conditional select, a trap. Branches and traps on
 * zero or on one bit need no flags: the row is then CBZ, CBNZ, TBZ or TBNZ itself, and the condition is NE by
 * convention (EQ: the other row).
 */
import { CONSTRAINT, operandWord, ROLE } from "../codegen/vcode.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { isFloatCompare, isIntegerCompare } from "../codegen/folding.ts";
import { HOLDS, packFirst, packSecond } from "./compare_chain.ts";
import { arithmeticImmediate } from "./immediates.ts";
import { X } from "./instructions.ts";
import { AUX_CONDITION_SHIFT, AUX_CONSUMER_SHIFT, CC, CC_SWAPPED, CONSUMER } from "./machine_ops.ts";
import { testedRegister } from "./select_lanes.ts";
import { isShifted, logicalField } from "./select_integer.ts";
import { type Arm64Lowering, FOLD } from "./lowering_context.ts";

// Condition of each integer comparison, in the order of the IR's operations from EQ on.
const INTEGER_CC = Uint8Array.of(CC.EQ, CC.NE, CC.LT, CC.LO, CC.GT, CC.HI, CC.LE, CC.LS, CC.GE, CC.HS);
// The same for floats, from FEQ on: false when unordered, except for NE.
const FLOAT_CC = Uint8Array.of(CC.EQ, CC.NE, CC.MI, CC.GT, CC.LS, CC.GE);

/**
 * By condition: the amount to add to the constant when equality is added to the condition or removed from it, as in
 * x > c and x ≥ c + 1; 0: no such condition exists.
 */
const NEIGHBOR = Int8Array.of(0, 0, -1, -1, 0, 0, 0, 0, 1, 1, -1, -1, 1, 1);

/** Sets a compare of registers; `second` 0 means that there is none. */
function setCompare(s: Arm64Lowering, row: number, first: number, second: number, imm: number, disp: number): void {
  s.compare.row = row;
  s.compare.first = first;
  s.compare.second = second;
  s.compare.imm = imm;
  s.compare.disp = disp;
  s.compare.third = 0;
  s.compare.fourth = 0;
}

/** Whether condition `id` is folded into the comparison with zero that uses it. */
function isFoldedCondition(s: Arm64Lowering, id: number): boolean {
  return s.folded[id] === FOLD.CHAIN || isFoldedCompare(s, id);
}

function isFoldedCompare(s: Arm64Lowering, id: number): boolean {
  return s.folded[id] !== 0 && (isIntegerCompare(s.op[id]) || isFloatCompare(s.op[id]));
}

/** Resolves value `id` as a condition (negated if `invert`). `jumps`: the consumer is a branch or trap. */
function resolveCondition(s: Arm64Lowering, id: number, invert: boolean, jumps: boolean): void {
  const { op, a, b, folded } = s;
  if (folded[id] === 0 || op[id] === OP.WRAP) {
    resolveZero(s, s.reg(id), 0, jumps);
    s.compare.cc = CC.NE;
  } else if (folded[id] === FOLD.CHAIN) {
    resolveChain(s, id);
  } else if (op[id] === OP.AND) {
    resolveTest(s, id, jumps);
    s.compare.cc = CC.NE;
  } else if (op[id] === OP.VANY_TRUE || op[id] === OP.VALL_TRUE) {
    const x = testedRegister(s, id);
    resolveZero(s, x, s.tested.wide, jumps);
    s.compare.cc = s.tested.cc;
  } else {
    // Comparing a folded comparison with zero keeps or changes its sense.
    while ((op[id] === OP.EQ || op[id] === OP.NE) && s.isZero(b[id]) && isFoldedCondition(s, a[id])) {
      if (op[id] === OP.EQ) invert = !invert;
      id = a[id];
    }
    if (folded[id] === FOLD.CHAIN) resolveChain(s, id);
    else resolveCompare(s, id, jumps);
  }
  if (invert) s.compare.cc ^= 1;
}

function resolveZero(s: Arm64Lowering, vreg: number, wide: number, jumps: boolean): void {
  if (jumps) setCompare(s, X.CBNZ32 + wide, vreg, 0, 0, 0);
  else setCompare(s, X.SUBS_I32 + wide, vreg, 0, 0, 0);
}

/** The number of the only 1 bit of constant `id`, or −1. */
function singleBit(s: Arm64Lowering, id: number): number {
  const low = s.imm[id];
  const high = s.wide(id) === 1 ? s.c[id] : 0;
  if (high === 0 && low !== 0 && (low & (low - 1)) === 0) return 31 - Math.clz32(low);
  if (low === 0 && high !== 0 && (high & (high - 1)) === 0) return 63 - Math.clz32(high);
  return -1;
}

/** Tests AND `id` for bits that are 1. The caller chooses the condition (NE or EQ). */
function resolveTest(s: Arm64Lowering, id: number, jumps: boolean): void {
  let x = s.a[id];
  let y = s.b[id];
  const wide = s.wide(id);
  if (s.op[x] === OP.CONST && s.op[y] !== OP.CONST) [x, y] = [y, x];
  if (s.op[y] === OP.CONST) {
    const bit = singleBit(s, y);
    if (bit >= 0 && jumps) return setCompare(s, X.TBNZ, s.reg(x), 0, 0, bit);
    const field = logicalField(s, y);
    if (field >= 0) return setCompare(s, X.ANDS_I32 + wide, s.reg(x), 0, field, 0);
  }
  const first = s.reg(x);
  setCompare(s, X.ANDS32 + wide, first, s.reg(y), 0, 0);
}

/** Resolves comparison `id` itself, whether it is folded or not. */
function resolveCompare(s: Arm64Lowering, id: number, jumps: boolean): void {
  const { op, a, b } = s;
  let x = a[id];
  let y = b[id];
  if (isFloatCompare(op[id])) {
    s.compare.cc = FLOAT_CC[op[id] - OP.FEQ];
    const double = s.ty[x] === TY.F64 ? 1 : 0;
    const first = s.reg(x);
    if (op[y] === OP.CONST && s.imm[y] === 0 && (double === 0 || s.c[y] === 0)) {
      return setCompare(s, X.FCMP0_S + double, first, 0, 0, 0);
    }
    return setCompare(s, X.FCMP_S + double, first, s.reg(y), 0, 0);
  }
  const wide = s.wide(x);
  let cc = INTEGER_CC[op[id] - OP.EQ];
  if (s.isImmediate(x) && !s.isImmediate(y)) {
    [x, y] = [y, x];
    cc = CC_SWAPPED[cc];
  }
  if (s.isImmediate(y)) {
    const value = s.imm[y];
    if (value === 0) {
      if (s.folded[x] !== 0 && op[x] === OP.AND) {
        resolveTest(s, x, jumps);
        s.compare.cc = cc;
        return;
      }
      if (cc === CC.EQ || cc === CC.NE) {
        resolveZero(s, s.reg(x), wide, jumps);
        s.compare.cc = cc;
        return;
      }
      // The sign alone.
      if (jumps && (cc === CC.LT || cc === CC.GE)) {
        setCompare(s, X.TBNZ, s.reg(x), 0, 0, wide === 1 ? 63 : 31);
        s.compare.cc = cc === CC.LT ? CC.NE : CC.EQ;
        return;
      }
    }
    let field = arithmeticImmediate(Math.abs(value));
    if (field < 0 && NEIGHBOR[cc] !== 0) {
      // x > c is x ≥ c + 1.
      field = arithmeticImmediate(Math.abs(value + NEIGHBOR[cc]));
      if (field >= 0) cc ^= cc < CC.GE ? CC.HS ^ CC.HI : CC.GE ^ CC.GT;
    }
    if (field >= 0) {
      setCompare(s, (value < 0 ? X.ADDS_I32 : X.SUBS_I32) + wide, s.reg(x), 0, field & 0xfff, field >> 12);
      s.compare.cc = cc;
      return;
    }
  }
  const first = s.reg(x);
  if (isShifted(s, y)) {
    const kind = op[y] === OP.SHL ? 0 : op[y] === OP.SHR_U ? 1 : 2;
    setCompare(s, X.SUBS32 + wide, first, s.reg(a[y]), s.imm[b[y]] & (wide === 1 ? 63 : 31), kind);
  } else {
    setCompare(s, X.SUBS32 + wide, first, s.reg(y), 0, 0);
  }
  s.compare.cc = cc;
}

/** Resolves value `id` as the conditional comparison of a chain; a value that is not folded is compared with zero. */
function resolveSecond(s: Arm64Lowering, id: number): void {
  const { op, a, b } = s;
  s.chained.imm = 0;
  s.chained.second = 0;
  if (s.folded[id] !== FOLD.CHAINED) {
    s.chained.row = X.CCMP_I32;
    s.chained.cc = CC.NE;
    s.chained.first = s.reg(id);
    return;
  }
  let x = a[id];
  let y = b[id];
  if (isFloatCompare(op[id])) {
    s.chained.row = X.FCCMP_S + (s.ty[x] === TY.F64 ? 1 : 0);
    s.chained.cc = FLOAT_CC[op[id] - OP.FEQ];
    s.chained.first = s.reg(x);
    s.chained.second = s.reg(y);
    return;
  }
  const wide = s.wide(x);
  s.chained.cc = INTEGER_CC[op[id] - OP.EQ];
  if (s.isImmediate(x) && !s.isImmediate(y)) {
    [x, y] = [y, x];
    s.chained.cc = CC_SWAPPED[s.chained.cc];
  }
  s.chained.first = s.reg(x);
  const value = s.isImmediate(y) ? s.imm[y] : 32;
  if (value > -32 && value < 32) {
    s.chained.row = (value < 0 ? X.CCMN_I32 : X.CCMP_I32) + wide;
    s.chained.imm = Math.abs(value);
  } else {
    s.chained.row = X.CCMP32 + wide;
    s.chained.second = s.reg(y);
  }
}

/** The two comparisons of the AND or OR `id`. */
function resolveChain(s: Arm64Lowering, id: number): void {
  const x = s.a[id];
  const isFirst = s.folded[x] === FOLD.FIRST;
  const first = isFirst ? x : s.b[id], second = isFirst ? s.b[id] : x;
  resolveCondition(s, first, false, false);
  resolveSecond(s, second);
  const all = s.op[id] === OP.AND;
  const { cc } = s.chained;
  const condition = all ? s.compare.cc : s.compare.cc ^ 1;
  const flags = HOLDS[all ? cc ^ 1 : cc];
  const { row, imm, disp } = s.compare;
  s.compare.disp = packFirst(row, imm, disp);
  s.compare.imm = packSecond(s.chained.imm, flags, condition, s.compare.second !== 0);
  s.compare.row = s.chained.row;
  s.compare.cc = cc;
  // The first comparison has one register or two, and so has the second.
  if (s.compare.second === 0) {
    s.compare.second = s.chained.first;
    s.compare.third = s.chained.second;
    s.compare.fourth = 0;
  } else {
    s.compare.third = s.chained.first;
    s.compare.fourth = s.chained.second;
  }
}

/** Begins the instruction of the compare resolved last; operands of the consumer follow, then `compareOperands`. */
function beginCompare(s: Arm64Lowering, consumer: number, codeBits: number): void {
  s.plain(
    s.compare.row,
    s.compare.imm,
    s.compare.disp,
    (s.compare.cc << AUX_CONDITION_SHIFT) | (consumer << AUX_CONSUMER_SHIFT) | codeBits,
  );
}

function compareOperands(s: Arm64Lowering): void {
  s.use(s.compare.first);
  if (s.compare.second !== 0) s.use(s.compare.second);
  if (s.compare.third !== 0) s.use(s.compare.third);
  if (s.compare.fourth !== 0) s.use(s.compare.fourth);
}

/** A comparison used as a value. */
export function selectCompare(s: Arm64Lowering, id: number): void {
  // Not folded itself: resolve its own compare, peeling a folded one inside EQ(x, 0).
  const { op, a, b } = s;
  const peels = (op[id] === OP.EQ || op[id] === OP.NE) && s.isZero(b[id]) && isFoldedCondition(s, a[id]);
  if (peels) resolveCondition(s, a[id], op[id] === OP.EQ, false);
  else resolveCompare(s, id, false);
  beginCompare(s, CONSUMER.SET, 0);
  s.def(id);
  compareOperands(s);
  s.end();
}

/** The compare that ends a block: branches on value `condition`. */
export function selectBranchCompare(s: Arm64Lowering, condition: number): void {
  resolveCondition(s, condition, false, true);
  beginCompare(s, CONSUMER.BRANCH, 0);
  compareOperands(s);
  s.end();
}

/** Traps with `code` if value `condition` is not zero. */
export function selectTrapCompare(s: Arm64Lowering, condition: number, codeBits: number): void {
  resolveCondition(s, condition, false, true);
  beginCompare(s, CONSUMER.TRAP, codeBits);
  compareOperands(s);
  s.end();
}

export function selectSelect(s: Arm64Lowering, id: number): void {
  const ty = s.ty[id];
  const then = s.regOf(s.a[id], ty);
  const otherwise = s.regOf(s.b[id], ty);
  resolveCondition(s, s.c[id], false, false);
  const consumer = ty === TY.I32
    ? CONSUMER.MOVE32
    : ty === TY.F32
    ? CONSUMER.MOVE_F32
    : ty === TY.F64 || ty === TY.V128
    ? CONSUMER.MOVE_F64
    : CONSUMER.MOVE64;
  beginCompare(s, consumer, 0);
  s.v.operand(operandWord(s.defVreg(id), ROLE.DEF, CONSTRAINT.REG));
  s.use(then);
  s.use(otherwise);
  compareOperands(s);
  s.end();
}
