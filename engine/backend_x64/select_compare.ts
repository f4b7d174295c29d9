/**
 * Comparisons and the consumers of their flags. One VCode instruction does both (compare row plus a consumer in `aux`),
 * so the allocator can insert nothing in between: a branch, a SETcc, a conditional move, a trap.
 *
 * `resolveCondition` turns a condition value into a compare row, its operands and a condition code; a value that is not
 * folded is tested against zero.
 */
import { canonicalizedBy, SCALAR } from "../ir/canonical_nan.ts";
import { OP } from "../ir/ops.ts";
import { TY } from "../ir/types.ts";
import { CONSTRAINT, operandWord, ROLE } from "../codegen/vcode.ts";
import { isFloatCompare, isIntegerCompare } from "../codegen/folding.ts";
import { X } from "./instructions.ts";
import {
  AUX_CONDITION_SHIFT,
  AUX_CONSUMER_SHIFT,
  CC,
  CC_SWAPPED,
  CONSUMER,
  P,
  STORE_CONDITION,
} from "./machine_ops.ts";
import { foldAddress } from "./addressing.ts";
import { keepsWidth } from "./fold_loads.ts";
import type { X64Lowering } from "./lowering_context.ts";
import { testedVector } from "./select_lanes.ts";
import { source, sourceFloat } from "./source_operands.ts";

// Condition of each integer comparison, in the order of the IR's operations from EQ on.
const INTEGER_CC = Uint8Array.of(CC.E, CC.NE, CC.L, CC.B, CC.G, CC.A, CC.LE, CC.BE, CC.GE, CC.AE);
// The unsigned condition for each: equivalent to the signed comparison of small zero-extended values.
const UNSIGNED_CC = Uint8Array.of(CC.E, CC.NE, CC.B, CC.B, CC.A, CC.A, CC.BE, CC.BE, CC.AE, CC.AE);

/** Resolves value `id` as a condition (negated if `invert`): compare, operands and condition code. */
function resolveCondition(s: X64Lowering, id: number, invert: boolean): void {
  const { op, a, b, folded } = s;
  if (folded[id] === 0 || op[id] === OP.WRAP) {
    testRegister(s, s.reg(id), 0);
    s.compare.cc = CC.NE;
  } else if (op[id] === OP.AND) {
    resolveTest(s, id);
    s.compare.cc = CC.NE;
  } else if (op[id] === OP.VANY_TRUE || op[id] === OP.VALL_TRUE) {
    s.compare.register = testedVector(s, id);
    s.sourceRegister(s.compare.register, false);
    s.compare.row = s.vex(X.PTEST);
    s.compare.imm = 0;
    s.compare.hasRegister = true;
    s.compare.sourceFirst = false;
    s.compare.cc = op[id] === OP.VANY_TRUE ? CC.NE : CC.E;
  } else if (s.isFoldedLoad(id)) {
    source(s, id, false);
    s.compare.row = op[id] === OP.LOAD
      ? X.CMP32_I
      : op[id] === OP.LOAD8_U || op[id] === OP.LOAD8_S
      ? X.CMP8_I
      : X.CMP16_I;
    s.compare.imm = 0;
    s.compare.hasRegister = false;
    s.compare.sourceFirst = true;
    s.compare.cc = CC.NE;
  } else {
    // Comparing a folded comparison with zero keeps or changes its sense.
    while ((op[id] === OP.EQ || op[id] === OP.NE) && s.isZero(b[id]) && isFoldedCompare(s, a[id])) {
      if (op[id] === OP.EQ) invert = !invert;
      id = a[id];
    }
    resolveCompare(s, id);
  }
  if (invert) s.compare.cc ^= 1;
}

function isFoldedCompare(s: X64Lowering, id: number): boolean {
  return s.folded[id] !== 0 && (isIntegerCompare(s.op[id]) || isFloatCompare(s.op[id]));
}

/** test vreg, vreg */
function testRegister(s: X64Lowering, vreg: number, wide: number): void {
  s.sourceRegister(vreg, false);
  s.compare.row = X.TEST32_M + wide;
  s.compare.imm = 0;
  s.compare.register = vreg;
  s.compare.hasRegister = true;
  s.compare.sourceFirst = true;
}

/** test of the operands of AND `id`; the condition is the caller's (E or NE, or B/AE after a bit test). */
function resolveTest(s: X64Lowering, id: number): void {
  let x = s.a[id];
  let y = s.b[id];
  const wide = s.wide(id);
  if (s.op[x] === OP.CONST && s.op[y] !== OP.CONST) [x, y] = [y, x];
  s.compare.hasRegister = false;
  s.compare.sourceFirst = true;
  if (s.op[y] === OP.CONST && (wide === 0 || s.c[y] === 0 || s.isImmediate(y))) {
    const mask = s.imm[y];
    const narrow = wide === 0 || s.c[y] === 0;
    const byte = narrow && mask >= 0 && mask <= 0xff;
    source(s, x, true);
    s.compare.imm = mask;
    if (!s.isFoldedLoad(x) || !keepsWidth(s, x)) {
      s.compare.row = byte ? X.TEST8_I : narrow ? X.TEST32_I : X.TEST64_I;
    } else s.compare.row = s.op[x] === OP.LOAD8_U ? X.TEST8_I : X.TEST32_I + wide;
    return;
  }
  if (s.isFoldedLoad(y)) [x, y] = [y, x];
  const register = s.reg(y);
  source(s, x, true);
  s.compare.row = X.TEST32_M + wide;
  s.compare.imm = 0;
  s.compare.register = register;
  s.compare.hasRegister = true;
}

/** Resolves comparison `id` itself, whether it is folded or not. */
function resolveCompare(s: X64Lowering, id: number): void {
  if (isFloatCompare(s.op[id])) return resolveFloatCompare(s, id);
  const { op, a, b } = s;
  let x = a[id];
  let y = b[id];
  const wide = s.wide(x);
  s.compare.cc = INTEGER_CC[op[id] - OP.EQ];
  if (s.isImmediate(x) && !s.isImmediate(y)) {
    [x, y] = [y, x];
    s.compare.cc = CC_SWAPPED[s.compare.cc];
  }
  if (s.isImmediate(y)) {
    s.compare.hasRegister = false;
    s.compare.sourceFirst = true;
    const load = s.isFoldedLoad(x);
    if (s.imm[y] === 0 && s.folded[x] !== 0 && op[x] === OP.AND) return resolveTest(s, x);
    if (s.imm[y] === 0 && !load) return testRegister(s, s.reg(x), wide);
    s.compare.imm = s.imm[y];
    s.compare.row = X.CMP32_I + wide;
    if (load && op[x] !== OP.LOAD) {
      s.compare.row = op[x] === OP.LOAD8_U || op[x] === OP.LOAD8_S ? X.CMP8_I : X.CMP16_I;
      if (op[x] === OP.LOAD8_U || op[x] === OP.LOAD16_U) s.compare.cc = UNSIGNED_CC[op[id] - OP.EQ];
    }
    source(s, x, true);
    return;
  }
  if (s.isFoldedLoad(x)) {
    [x, y] = [y, x];
    s.compare.cc = CC_SWAPPED[s.compare.cc];
  }
  s.compare.register = s.reg(x);
  s.compare.hasRegister = true;
  s.compare.sourceFirst = false;
  s.compare.imm = 0;
  s.compare.row = X.CMP32_R + wide;
  source(s, y, true);
}

function resolveFloatCompare(s: X64Lowering, id: number): void {
  const o = s.op[id];
  let x = s.a[id];
  let y = s.b[id];
  // Below and below-or-equal would hold for unordered operands: exchange the operands.
  if (o === OP.FLT || o === OP.FLE) [x, y] = [y, x];
  s.compare.cc = o === OP.FEQ ? CC.FE : o === OP.FNE ? CC.FNE : o === OP.FLT || o === OP.FGT ? CC.A : CC.AE;
  s.compare.register = s.reg(x);
  s.compare.hasRegister = true;
  s.compare.sourceFirst = false;
  s.compare.imm = 0;
  s.compare.row = s.vex(X.UCOMISS + (s.ty[x] === TY.F64 ? 1 : 0));
  sourceFloat(s, y);
}

/** Begins the compare with its consumer; the consumer's operands come next, then {@linkcode compareOperands}. */
function beginCompare(s: X64Lowering, consumer: number, aux: number): void {
  s.withSource(
    s.compare.row,
    s.compare.imm,
    (s.compare.cc << AUX_CONDITION_SHIFT) | (consumer << AUX_CONSUMER_SHIFT) | aux,
  );
}

function compareOperands(s: X64Lowering): void {
  if (s.compare.sourceFirst) s.sourceOperands();
  if (s.compare.hasRegister) s.use(s.compare.register);
  if (!s.compare.sourceFirst) s.sourceOperands();
}

/** A comparison used as a value. */
export function selectCompare(s: X64Lowering, id: number): void {
  // Not folded itself: resolve its own compare, peeling a folded one inside EQ(x, 0).
  const { op, a, b } = s;
  if (op[id] === OP.EQ && s.isZero(b[id]) && isFoldedCompare(s, a[id])) resolveCondition(s, a[id], true);
  else if (op[id] === OP.NE && s.isZero(b[id]) && isFoldedCompare(s, a[id])) resolveCondition(s, a[id], false);
  else resolveCompare(s, id);
  beginCompare(s, CONSUMER.SET, 0);
  s.def(id);
  compareOperands(s);
  s.end();
}

/** Store `id` of one byte, the result of compare `value`. */
export function selectStoredCompare(s: X64Lowering, id: number, value: number): void {
  let x = s.a[value];
  let y = s.b[value];
  let cc = INTEGER_CC[s.op[value] - OP.EQ];
  if (s.isImmediate(x) && !s.isImmediate(y)) {
    [x, y] = [y, x];
    cc = CC_SWAPPED[cc];
  }
  const kind = !s.isImmediate(y)
    ? STORE_CONDITION.REGISTERS
    : s.imm[y] === 0
    ? STORE_CONDITION.ZERO
    : STORE_CONDITION.IMMEDIATE;
  const first = s.reg(x);
  const second = kind === STORE_CONDITION.REGISTERS ? s.reg(y) : 0;
  foldAddress(s, id, false);
  const aux = (cc << AUX_CONDITION_SHIFT) | ((kind + s.wide(x)) << AUX_CONSUMER_SHIFT);
  s.withSource(P.STORE_CONDITION, kind === STORE_CONDITION.IMMEDIATE ? s.imm[y] : 0, aux);
  s.sourceOperands();
  s.use(first);
  if (second !== 0) s.use(second);
  s.end();
}

/** The compare that ends a block: branches on value `condition`. */
export function selectBranchCompare(s: X64Lowering, condition: number): void {
  resolveCondition(s, condition, false);
  beginCompare(s, CONSUMER.BRANCH, 0);
  compareOperands(s);
  s.end();
}

/** Traps with `code` if value `condition` is not zero. */
export function selectTrapCompare(s: X64Lowering, condition: number, codeBits: number): void {
  resolveCondition(s, condition, false);
  beginCompare(s, CONSUMER.TRAP, codeBits);
  compareOperands(s);
  s.end();
}

export function selectSelect(s: X64Lowering, id: number): void {
  const ty = s.ty[id];
  if (canonicalizedBy(s.f, id) === SCALAR) return selectCanonicalNaN(s, id);
  const float = ty === TY.F32 || ty === TY.F64 || ty === TY.V128;
  let then = s.regOf(s.a[id], ty);
  let otherwise = s.regOf(s.b[id], ty);
  resolveCondition(s, s.c[id], false);
  // Equality of floats needs two conditions, which a move can take only for "unequal or unordered".
  if (s.compare.cc === CC.FE) {
    [then, otherwise] = [otherwise, then];
    s.compare.cc = CC.FNE;
  }
  const consumer = ty === TY.I32
    ? CONSUMER.MOVE32
    : !float
    ? CONSUMER.MOVE64
    : ty === TY.F32
    ? CONSUMER.MOVE_F32
    : CONSUMER.MOVE_F64;
  beginCompare(s, consumer, 0);
  s.v.operand(operandWord(s.defVreg(id), ROLE.DEF, CONSTRAINT.REUSE, 1));
  s.use(otherwise);
  s.useAny(then);
  compareOperands(s);
  s.end();
}

function selectCanonicalNaN(s: X64Lowering, id: number): void {
  const value = s.reg(s.b[id]);
  s.plain(P.CANONICAL_NAN, 0, 0, s.ty[id] === TY.F64 ? 1 : 0);
  s.defReuse(id, 1);
  s.use(value);
  s.end();
}
